"""Kubernetes servers for tests and local use, and tools that test operators with them. Never in production.

`konverge_cluster.embedded` is an API server with its controllers in one Python process. `konverge_cluster.controlplane`
is a real kube-apiserver. `konverge_cluster.testing` is the pytest plug-in that runs a test on both.
"""

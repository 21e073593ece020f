"""Clusters for tests and desks: what plays a Kubernetes server, and what tests operators with it. Never in production.

`konverge_cluster.embedded` is an API server with its controllers in one Python process, `konverge_cluster.controlplane`
a real kube-apiserver, and `konverge_cluster.testing` the pytest plug-in that runs a test on both.
"""

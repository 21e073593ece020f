"""Kubernetes operators in Python: components, a runtime, and an embedded cluster to run them on."""

"""The embedded cluster: a Kubernetes API server in Python with simulated built-in controllers.

The input is requests, in process or over HTTP on loopback. The output is the responses and watch events of a
kube-apiserver v1.36, including the texts of its errors. `ApiServer` implements the semantics, synchronously and without
I/O, over a storage with one revision counter and a bounded log of changes. The controllers in
`controllers` roll out Deployments, run pods and collect garbage. With a simulated clock
everything runs in simulated time, and always in the same way.

Invariant: this package is a server. It shares with the rest of konverge only the model of objects and the semantics of
apply.
"""

from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.cluster import LocalCluster
from konverge_cluster._internal.embedded.controllers import INTEGRATIONS, ImageRules
from konverge_cluster._internal.embedded.storage import StorageChange

__all__ = ["INTEGRATIONS", "ApiServer", "ImageRules", "LocalCluster", "StorageChange", "User"]

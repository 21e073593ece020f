"""The embedded cluster: a Kubernetes API server in Python, and the built-in controllers, played.

In come requests, in process or over HTTP on loopback; out go the answers and the watch events that a kube-apiserver
v1.36 would give, to the wording of its refusals. `ApiServer` has the semantics, synchronously and without I/O, over a
store with one revision counter and a bounded log of changes. `konverge_cluster.embedded.controllers` makes Deployments
roll out, pods run and garbage go. With a simulated clock all of it runs in simulated time, and the same way each time.

Invariant: it is a server. Of the rest of konverge it shares only what an object is and what an apply means.
"""

from konverge_cluster.embedded.access.users import User
from konverge_cluster.embedded.apiserver import ApiServer
from konverge_cluster.embedded.cluster import LocalCluster
from konverge_cluster.embedded.controllers import ImageRules
from konverge_cluster.embedded.storage import StorageChange

__all__ = ["ApiServer", "ImageRules", "LocalCluster", "StorageChange", "User"]

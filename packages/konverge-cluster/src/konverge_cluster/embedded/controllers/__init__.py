"""The built-in controllers of the embedded cluster, played: what makes a cluster out of an API server.

A *player* is one controller: it is told of changes, answers with keys, and for one key at a time decides the next step
and writes it, synchronously, through the API server's Python interface. `ControllerManager` runs them all on one
queue, with
timers on a `Clock`; in simulated time a whole rollout takes milliseconds and happens the same way each time.

In: changes of the API server, the time, `ImageRules`. Out: writes as ``kube-controller-manager``, ``kube-scheduler``
and ``kubelet``, in the steps, with the reasons and the messages of the real ones (v1.36).

Invariant: a settled cluster is silent. Nothing polls, nothing beats; without a change or a due timer nothing happens.
"""

from konverge_cluster.embedded.controllers.image_rules import ContainerBehavior, ImageRules
from konverge_cluster.embedded.controllers.manager import ControllerManager

__all__ = ["ContainerBehavior", "ControllerManager", "ImageRules"]

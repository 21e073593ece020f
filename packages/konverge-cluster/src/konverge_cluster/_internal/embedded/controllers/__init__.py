"""The simulated built-in controllers of the embedded cluster.

A controller receives changes and returns the keys that they affect. For one key at a time it decides the next step and
writes it, synchronously, through the Python interface of the API server. `ControllerManager` runs all controllers on
one queue, with timers on a `Clock`. In simulated time a whole rollout takes milliseconds and always happens in the same
way.

Input: changes of the API server, the time, and `ImageRules`. Output: writes as ``kube-controller-manager``,
``kube-scheduler`` and ``kubelet``, with the steps, reasons and messages of the real controllers (v1.36).

Invariant: a steady cluster is idle. There is no polling and no heartbeat; without a change or a due timer nothing
happens.
"""

from konverge_cluster._internal.embedded.controllers.image_rules import ContainerBehavior, ImageRules
from konverge_cluster._internal.embedded.controllers.integrations import DEFAULT_INTEGRATIONS, INTEGRATIONS
from konverge_cluster._internal.embedded.controllers.manager import ControllerManager

__all__ = ["DEFAULT_INTEGRATIONS", "INTEGRATIONS", "ContainerBehavior", "ControllerManager", "ImageRules"]

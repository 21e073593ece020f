"""What is asked of a pod besides being written: to come to a node (binding), to go away in order (eviction)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge.errors import BadRequestError, ConflictError, TooManyRequestsError
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_time
from konverge.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.localcluster.apiserver import ApiServer

__all__ = ["bind", "evict"]

_POD = GroupVersionKind("", "v1", "Pod")
_BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(api: ApiServer, key: ObjectKey, binding: Any, now: datetime) -> Object:
    """Put a pod on the node that a Binding names.

    Raises:
        BadRequestError: The Binding is about another pod, or about nothing.
        ConflictError: The pod is on a node already.
    """
    _check_name(binding, key, "Binding")
    target = binding.get("target")
    node = str(target.get("name") or "") if isinstance(target, Mapping) else ""
    if not node:
        raise BadRequestError("a binding needs a target with the name of a node")
    pod = api.get(_POD, key)
    if pod["spec"].get("nodeName"):
        why = f'pod {key.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        details = {"name": key.name, "kind": "pods/binding"}
        told = f'Operation cannot be fulfilled on pods/binding "{key.name}": {why}'
        raise ConflictError(told, details=details)
    pod["spec"]["nodeName"] = node
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }
    others = [each for each in pod["status"].get("conditions") or () if each.get("type") != "PodScheduled"]
    pod["status"]["conditions"] = [*others, scheduled]
    api.update(_POD, pod, subresource="binding")
    return _SUCCESS


def evict(api: ApiServer, key: ObjectKey, eviction: Any) -> Object:
    """Delete a pod, unless a PodDisruptionBudget forbids it now.

    Raises:
        BadRequestError: The Eviction is about another pod.
        TooManyRequestsError: A budget forbids it now.
    """
    _check_name(eviction, key, "Eviction")
    pod = api.get(_POD, key)
    for budget in api.list(_BUDGET, namespace=key.namespace):
        if _covers(budget, pod) and (budget.get("status") or {}).get("disruptionsAllowed", 0) < 1:
            told = f"The disruption budget {budget['metadata']['name']} needs more healthy pods than there are"
            raise TooManyRequestsError(
                "Cannot evict pod as it would violate the pod's disruption budget.",
                details={"causes": [{"reason": "DisruptionBudget", "message": told}]},
            )
    options = eviction.get("deleteOptions")
    grace = options.get("gracePeriodSeconds") if isinstance(options, Mapping) else None
    api.delete(_POD, key, grace_seconds=grace if isinstance(grace, int) else None)
    return _SUCCESS


def _check_name(body: Any, key: ObjectKey, kind: str) -> None:
    if not isinstance(body, Mapping) or ObjectKey.of(body).name not in (key.name, ""):
        raise BadRequestError(f"name in URL does not match name in {kind} object")


def _covers(budget: Object, pod: Object) -> bool:
    try:
        selector = LabelSelector.from_object((budget.get("spec") or {}).get("selector"))
    except SelectorSyntaxError:
        return False
    return selector is not None and selector.matches(pod["metadata"].get("labels") or {})

"""The subresources ``binding`` (assigns a pod to a node) and ``eviction`` (deletes a pod with respect to budgets)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_time, is_deleting
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.errors import ApiError, BadRequestError, ConflictError, TooManyRequestsError
from konverge_cluster._internal.embedded.apiserver import ApiServer

__all__ = ["bind_pod", "evict_pod"]

_POD = GroupVersionKind("", "v1", "Pod")
_BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
_SERVER = "kube-apiserver"
_SUCCESS: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind_pod(api: ApiServer, key: ObjectKey, binding: Any, now: datetime, *, dry_run: bool = False) -> Object:
    """Assign a pod to the node that a Binding names.

    Args:
        api: The API server.
        key: The namespace and name of the pod.
        binding: The Binding.
        now: The time of the assignment.
        dry_run: Return the result without storing it.

    Raises:
        BadRequestError: The Binding names another pod or no node.
        ConflictError: The pod already has a node, is being deleted, or has scheduling gates.
    """
    _check_name(binding, key, "Binding")
    target = binding.get("target")
    node = str(target.get("name") or "") if isinstance(target, Mapping) else ""
    if not node:
        raise BadRequestError("a binding needs a target with the name of a node")
    pod = api.get(_POD, key)
    why = _find_obstacle(pod)
    if why:
        details = {"name": key.name, "kind": "pods/binding"}
        message = f'Operation cannot be fulfilled on pods/binding "{key.name}": {why}'
        raise ConflictError(message, details=details)
    pod["spec"]["nodeName"] = node
    scheduled = {
        "type": "PodScheduled",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": format_time(now),
    }
    others = [entry for entry in pod["status"].get("conditions") or () if entry.get("type") != "PodScheduled"]
    pod["status"]["conditions"] = [*others, scheduled]
    api.update(_POD, pod, subresource="binding", dry_run=dry_run)
    return _SUCCESS


def _find_obstacle(pod: Object) -> str:
    """Return the reason why the pod cannot be assigned to a node; empty if it can."""
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if is_deleting(pod):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node:
        return f'pod {name} is already assigned to node "{node}"'
    return f"pod {name} has non-empty .spec.schedulingGates" if pod["spec"].get("schedulingGates") else ""


def evict_pod(api: ApiServer, key: ObjectKey, eviction: Any, now: datetime, *, dry_run: bool = False) -> Object:
    """Delete a pod, unless a PodDisruptionBudget forbids it now.

    Args:
        api: The API server.
        key: The namespace and name of the pod.
        eviction: The Eviction.
        now: The time of the eviction.
        dry_run: Return the result without storing it.

    Raises:
        BadRequestError: The Eviction names another pod.
        TooManyRequestsError: A budget forbids it now.
        ApiError: More than one budget selects the pod.
    """
    _check_name(eviction, key, "Eviction")
    options = eviction.get("deleteOptions")
    options = options if isinstance(options, Mapping) else {}
    dry_run = dry_run or options.get("dryRun") == ["All"]
    pod = api.get(_POD, key)
    if not _is_exempt_from_budgets(pod):
        budgets = [budget for budget in api.list(_BUDGET, namespace=key.namespace) if _selects_pod(budget, pod)]
        if len(budgets) > 1:
            message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise ApiError(message, reason="", code=500)
        for budget in budgets:
            _consume_budget(api, budget, pod, now, dry_run=dry_run)
    grace = options.get("gracePeriodSeconds")
    api.delete(_POD, key, grace_seconds=grace if isinstance(grace, int) else None, dry_run=dry_run)
    return _SUCCESS


def _is_exempt_from_budgets(pod: Object) -> bool:
    """Return True if no budget counts the pod."""
    return is_deleting(pod) or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed", "Pending")


def _consume_budget(api: ApiServer, budget: Object, pod: Object, now: datetime, *, dry_run: bool) -> None:
    """Record the eviction in the budget before its controller counts again, so that the next eviction respects it."""
    status = budget.get("status") or {}
    name, desired, current = (
        budget["metadata"]["name"],
        status.get("desiredHealthy", 0),
        status.get("currentHealthy", 0),
    )
    is_ready = any(
        entry.get("type") == "Ready" and entry.get("status") == "True"
        for entry in (pod.get("status") or {}).get("conditions") or ()
    )
    if not is_ready and (
        budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or (current >= desired and desired > 0)
    ):
        return
    if status.get("disruptionsAllowed", 0) < 1:
        message = f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
        raise TooManyRequestsError(
            "Cannot evict pod as it would violate the pod's disruption budget.",
            details={"causes": [{"reason": "DisruptionBudget", "message": message}]},
        )
    disrupted = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: format_time(now)}
    drawn = {**status, "disruptionsAllowed": status["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
    api.update(_BUDGET, {**budget, "status": drawn}, subresource="status", manager=_SERVER, dry_run=dry_run)


def _check_name(body: Any, key: ObjectKey, kind: str) -> None:
    if not isinstance(body, Mapping) or ObjectKey.of(body).name not in (key.name, ""):
        raise BadRequestError(f"name in URL does not match name in {kind} object")


def _selects_pod(budget: Object, pod: Object) -> bool:
    try:
        selector = LabelSelector.from_object((budget.get("spec") or {}).get("selector"))
    except SelectorSyntaxError:
        return False
    return selector is not None and selector.matches(pod["metadata"].get("labels") or {})

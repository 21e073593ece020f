"""The simulated disruption controller: the number of pods of each PodDisruptionBudget that can be evicted now."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.kube import Object, ObjectKey, find_controller, format_time, is_deleting, parse_time
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import (
    POD,
    POD_DISRUPTION_BUDGET,
    REPLICA_SET,
    STATEFUL_SET,
)
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.pod_state import is_finished, is_ready
from konverge_cluster._internal.embedded.controllers.rollout import read_replicas
from konverge_cluster._internal.embedded.controllers.workload_conditions import find_condition, with_condition

__all__ = ["DisruptionController", "build_budget_status"]

# An evicted pod that still exists after this time was not deleted.
_FORGOTTEN_AFTER = timedelta(minutes=2)


class DisruptionController:
    """The controller. Its keys are those of PodDisruptionBudgets."""

    name = "disruption-controller"
    watches = frozenset({POD_DISRUPTION_BUDGET.group_kind, POD.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a budget, or of the budgets that select a pod."""
        if notice.kind == POD_DISRUPTION_BUDGET.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        states = [state for state in (notice.old, notice.new) if state is not None]
        budgets = self._view.list_kind(POD_DISRUPTION_BUDGET, notice.key.namespace)
        return [ObjectKey.of(budget) for budget in budgets if any(_selects(budget, state) for state in states)]

    def reconcile(self, key: Hashable) -> float | None:
        """Write the status if it changed."""
        assert isinstance(key, ObjectKey)
        budget = self._view.get(POD_DISRUPTION_BUDGET, key)
        if budget is None or is_deleting(budget):
            return None
        pods = [pod for pod in self._view.list_kind(POD, key.namespace) if _selects(budget, pod)]
        status = build_budget_status(budget, pods, self._sum_replicas(pods), self._clock.now())
        if status != (budget.get("status") or {}):
            self._writer.update_status(budget, status)
        return _FORGOTTEN_AFTER.total_seconds() + 1 if status.get("disruptedPods") else None

    def _sum_replicas(self, pods: Sequence[Object]) -> int:
        """Return the sum of the replicas that the pods' controllers request."""
        replicas_by_owner: dict[str, int] = {}
        for pod in pods:
            uid = (find_controller(pod) or {}).get("uid", "")
            owner = self._view.find_by_uid(uid)
            if owner is not None and owner.kind in (REPLICA_SET.group_kind, STATEFUL_SET.group_kind):
                replicas_by_owner[uid] = read_replicas(owner.object)
        return sum(replicas_by_owner.values())


def _selects(budget: Object, pod: Object) -> bool:
    try:
        selector = LabelSelector.from_object(budget["spec"].get("selector"))
    except SelectorSyntaxError:
        return False
    return selector is not None and selector.matches(pod["metadata"].get("labels") or {})


def build_budget_status(budget: Object, pods: Sequence[Object], scale: int, now: datetime) -> Object:
    """Return the status of a budget.

    Args:
        budget: The budget.
        pods: The pods that it selects.
        scale: The number of pods that their controllers request.
        now: The current time.
    """
    before = budget.get("status") or {}
    counted = [pod for pod in pods if not is_finished(pod)]
    expected, desired = _compute_required(budget["spec"], len(counted), scale)
    disrupted = _keep_undeleted(before.get("disruptedPods") or {}, counted, now)
    gone = set(disrupted)
    healthy = sum(
        1 for pod in counted if is_ready(pod) and not is_deleting(pod) and pod["metadata"]["name"] not in gone
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    verdict = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    condition = {
        "type": "DisruptionAllowed",
        "status": verdict[0],
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": format_time(now),
        "reason": verdict[1],
        "message": "",
    }
    conditions: list[Object] = before.get("conditions") or []
    earlier = find_condition(conditions, "DisruptionAllowed")
    if earlier is not None and earlier["status"] == verdict[0]:
        condition["lastTransitionTime"] = earlier["lastTransitionTime"]
    status: Object = {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(conditions, condition, renew=True),
    }
    return status | ({"disruptedPods": disrupted} if disrupted else {})


def _compute_required(spec: Object, count: int, scale: int) -> tuple[int, int]:
    """Return the number of expected pods, and the number of those that must be healthy."""
    most: Any = spec.get("maxUnavailable")
    if most is not None:
        return scale, max(0, scale - _resolve_share(most, scale))
    least: Any = spec.get("minAvailable", 1)
    if isinstance(least, str):
        return scale, _resolve_share(least, scale)
    return count, least


def _resolve_share(value: int | str, total: int) -> int:
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * total // 100)


def _keep_undeleted(disrupted: Object, pods: Sequence[Object], now: datetime) -> Object:
    """Return the pods that were evicted and are not deleted yet."""
    names = {pod["metadata"]["name"] for pod in pods if not is_deleting(pod)}
    return {
        name: moment
        for name, moment in disrupted.items()
        if name in names and now - parse_time(moment) < _FORGOTTEN_AFTER
    }

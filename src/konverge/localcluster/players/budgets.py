"""The disruption controller, played: how many pods of each PodDisruptionBudget may go now."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from konverge.clock import Clock
from konverge.kube import Object, ObjectKey, controller_of, format_time, is_deleting, parse_time
from konverge.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge.localcluster.players.conditions import find, with_condition
from konverge.localcluster.players.kinds import POD, POD_DISRUPTION_BUDGET, REPLICA_SET, STATEFUL_SET
from konverge.localcluster.players.pods import is_finished, is_ready
from konverge.localcluster.players.rollout import replicas_of
from konverge.localcluster.players.view import Notice, View
from konverge.localcluster.players.writing import Writer

__all__ = ["DisruptionBudgets", "budget_status"]

# An evicted pod that is still there after so long was not deleted after all.
_FORGOTTEN_AFTER = timedelta(minutes=2)


class DisruptionBudgets:
    """The player. Its keys are those of budgets."""

    name = "disruption-controller"
    watches = frozenset({POD_DISRUPTION_BUDGET.group_kind, POD.group_kind})

    def __init__(self, view: View, writer: Writer, clock: Clock) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock

    def woken_by(self, notice: Notice) -> Iterable[ObjectKey]:
        """A budget itself; those of a pod's namespace that select it."""
        if notice.kind == POD_DISRUPTION_BUDGET.group_kind:
            return () if notice.type == "DELETED" else (notice.key,)
        states = [state for state in (notice.old, notice.new) if state is not None]
        budgets = self._view.all(POD_DISRUPTION_BUDGET, notice.key.namespace)
        return [ObjectKey.of(budget) for budget in budgets if any(_selects(budget, state) for state in states)]

    def reconcile(self, key: Hashable) -> float | None:
        """Write the status when it changed."""
        assert isinstance(key, ObjectKey)
        budget = self._view.get(POD_DISRUPTION_BUDGET, key)
        if budget is None or is_deleting(budget):
            return None
        pods = [pod for pod in self._view.all(POD, key.namespace) if _selects(budget, pod)]
        status = budget_status(budget, pods, self._scale(pods), self._clock.now())
        if status != (budget.get("status") or {}):
            self._writer.update_status(budget, status)
        return _FORGOTTEN_AFTER.total_seconds() + 1 if status.get("disruptedPods") else None

    def _scale(self, pods: Sequence[Object]) -> int:
        """How many pods their controllers want in all."""
        wanted: dict[str, int] = {}
        for pod in pods:
            uid = (controller_of(pod) or {}).get("uid", "")
            owner = self._view.by_uid(uid)
            if owner is not None and owner.kind in (REPLICA_SET.group_kind, STATEFUL_SET.group_kind):
                wanted[uid] = replicas_of(owner.object)
        return sum(wanted.values())


def _selects(budget: Object, pod: Object) -> bool:
    try:
        selector = LabelSelector.from_object(budget["spec"].get("selector"))
    except SelectorSyntaxError:
        return False
    return selector is not None and selector.matches(pod["metadata"].get("labels") or {})


def budget_status(budget: Object, pods: Sequence[Object], scale: int, now: datetime) -> Object:
    """The status of a budget.

    Args:
        budget: The budget.
        pods: The pods that it selects.
        scale: How many pods their controllers want.
        now: The present.
    """
    before = budget.get("status") or {}
    counted = [pod for pod in pods if not is_finished(pod)]
    expected, desired = _wanted(budget["spec"], len(counted), scale)
    disrupted = _still_there(before.get("disruptedPods") or {}, counted, now)
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
    held = find(conditions, "DisruptionAllowed")
    if held is not None and held["status"] == verdict[0]:
        condition["lastTransitionTime"] = held["lastTransitionTime"]
    status: Object = {
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": with_condition(conditions, condition, renew=True),
    }
    return status | ({"disruptedPods": disrupted} if disrupted else {})


def _wanted(spec: Object, count: int, scale: int) -> tuple[int, int]:
    """How many pods there should be, and how many of them must be healthy."""
    most: Any = spec.get("maxUnavailable")
    if most is not None:
        return scale, max(0, scale - _share(most, scale))
    least: Any = spec.get("minAvailable", 1)
    if isinstance(least, str):
        return scale, _share(least, scale)
    return count, least


def _share(value: int | str, total: int) -> int:
    return value if isinstance(value, int) else -(-int(value.removesuffix("%")) * total // 100)


def _still_there(disrupted: Object, pods: Sequence[Object], now: datetime) -> Object:
    """The pods that were evicted and are not deleted yet."""
    names = {pod["metadata"]["name"] for pod in pods if not is_deleting(pod)}
    return {
        name: moment
        for name, moment in disrupted.items()
        if name in names and now - parse_time(moment) < _FORGOTTEN_AFTER
    }

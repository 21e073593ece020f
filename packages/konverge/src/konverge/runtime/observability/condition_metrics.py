"""Conditions, counted: how many owners are in which state, and if wanted each owner by name.

A series per owner is what dashboards of single objects want and what brings a metrics database down in a cluster with
many. So by default only numbers of owners are exported; with `per_owner` each condition of an owner is one series too,
replaced when its status or reason changes and gone with the owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey
from konverge.runtime.observability import metric_families
from konverge.runtime.observability.metric_families import EXCEEDED
from konverge.runtime.observability.metric_series import FamilySample, SampleValue

__all__ = ["ConditionCounts"]

_MAX_OWNERS = 100_000
_MAX_NAMED_OWNERS = 5_000
_MAX_CONDITIONS = 32  # of one owner: those of other writers come too
_MAX_STATES = 2_000  # reasons are texts of whoever writes the condition


class _OwnerId(NamedTuple):
    group: str  # two owners of one name and kind in different groups are two
    kind: str
    key: ObjectKey


class _ConditionState(NamedTuple):
    labels: tuple[str, ...]  # under which it is counted
    status: str
    reason: str
    since: float


class ConditionCounts:
    """A `konverge.component.reporting.ConditionMetrics` that knows each owner's conditions.

    Args:
        per_owner: Export the conditions of each owner too, of the first 5,000.
        controller: What the label ``controller`` of those says; the owner's kind by default.
    """

    def __init__(self, *, per_owner: bool = False, controller: str = "") -> None:
        self._per_owner = per_owner
        self._controller = controller
        # An owner's states are replaced, never changed: they are read in another thread (`read`).
        self._owners: dict[_OwnerId, Mapping[str, _ConditionState]] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._left_out = 0

    def record(self, owner: Object, conditions: Sequence[Condition]) -> None:
        """Note the present status, reason and transition time of each condition; any other is gone."""
        gvk = GroupVersionKind.of(owner)
        found = _OwnerId(gvk.group, gvk.kind, ObjectKey.of(owner))
        known = self._owners.get(found)
        if known is not None and not known.keys() <= (present := {condition.type for condition in conditions}):
            for gone in known.keys() - present:
                self._subtract_state(known[gone])
            self._owners[found] = {name: state for name, state in known.items() if name in present}
        for condition in conditions:
            self._record_condition(gvk, found, condition)

    def _record_condition(self, gvk: GroupVersionKind, found: _OwnerId, condition: Condition) -> None:
        known = self._owners.get(found)
        is_one_too_many = (
            len(self._owners) >= _MAX_OWNERS
            if known is None
            else condition.type not in known and len(known) >= _MAX_CONDITIONS
        )
        if is_one_too_many:
            self._left_out += 1
            return
        known = known or {}
        before = known.get(condition.type)
        moment = condition.last_transition_time
        since = 0.0 if moment is None else moment.timestamp()
        if before is not None and before[1:] == (condition.status, condition.reason, since):
            return
        self._subtract_state(before)
        labels = (gvk.kind, condition.type, condition.status, condition.reason)
        if labels not in self._counts and len(self._counts) >= _MAX_STATES:
            labels = (gvk.kind, EXCEEDED, condition.status, EXCEEDED)
        self._counts[labels] += 1
        self._owners[found] = {
            **known,
            condition.type: _ConditionState(labels, condition.status, condition.reason, since),
        }

    def forget(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """The owner is gone, and so are its series; nothing happens when it was not known."""
        for state in self._owners.pop(_OwnerId(gvk.group, gvk.kind, key), {}).values():
            self._subtract_state(state)

    def read(self) -> list[FamilySample]:
        """All of them now."""
        found = [
            FamilySample(metric_families.CONDITIONS, tuple(self._counts.items())),
            FamilySample(metric_families.CONDITIONS_LEFT_OUT, (((), float(self._left_out)),)),
        ]
        if self._per_owner:
            found.append(FamilySample(metric_families.OWNER_CONDITION, self._iter_series(tuple(self._owners.items()))))
        return found

    def _subtract_state(self, state: _ConditionState | None) -> None:
        if state is None:
            return
        self._counts[state.labels] -= 1
        if not self._counts[state.labels]:
            del self._counts[state.labels]

    def _iter_series(
        self, owners: tuple[tuple[_OwnerId, Mapping[str, _ConditionState]], ...]
    ) -> Iterator[tuple[tuple[str, ...], SampleValue]]:
        for owner, states in owners[:_MAX_NAMED_OWNERS]:
            namespace, name = owner.key.namespace, owner.key.name
            for condition_type, state in states.items():
                labels = (
                    *(self._controller or owner.kind, owner.kind, name, namespace),
                    *(condition_type, state.status, state.reason, f"{namespace}/{name}"),
                )
                yield labels, state.since

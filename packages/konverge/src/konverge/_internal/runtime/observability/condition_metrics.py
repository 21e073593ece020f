"""Metrics of conditions: the number of owners in each state, and optionally each owner by name.

Dashboards of single objects need one series per owner, but that overloads a metrics database in a cluster with many
owners. By default only numbers of owners are exported. With `per_owner`, each condition of an owner is one series too;
it is replaced when its status or reason changes and removed with the owner.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from konverge._internal.kube import Condition, GroupVersionKind, Object, ObjectKey
from konverge._internal.runtime.observability import metric_families
from konverge._internal.runtime.observability.metric_families import EXCEEDED
from konverge._internal.runtime.observability.metric_series import FamilySample, SampleValue

__all__ = ["ConditionCounts"]

_MAX_OWNERS = 100_000
_MAX_NAMED_OWNERS = 5_000
_MAX_CONDITIONS = 32  # per owner: conditions of other writers count too
_MAX_STATES = 2_000  # reasons are free text of the condition's writer


class _OwnerId(NamedTuple):
    group: str  # owners in different groups may have the same kind and name
    kind: str
    key: ObjectKey


class _ConditionState(NamedTuple):
    labels: tuple[str, ...]  # under which the state is counted
    status: str
    reason: str
    since: float


class ConditionCounts:
    """A `component.reporting.ConditionMetrics` that records each owner's conditions.

    Args:
        per_owner: Export the conditions of each owner too, for the first 5,000 owners.
        controller: Value of the label ``controller`` for these; the owner's kind by default.
    """

    def __init__(self, *, per_owner: bool = False, controller: str = "") -> None:
        self._per_owner = per_owner
        self._controller = controller
        # An owner's states are replaced, never changed: `read` passes them to another thread.
        self._owners: dict[_OwnerId, Mapping[str, _ConditionState]] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._left_out = 0

    def record(self, owner: Object, conditions: Sequence[Condition]) -> None:
        """Record the present status, reason and transition time of each condition; remove all other conditions."""
        gvk = GroupVersionKind.of(owner)
        owner_id = _OwnerId(gvk.group, gvk.kind, ObjectKey.of(owner))
        states = self._owners.get(owner_id)
        if states is not None and not states.keys() <= (present := {condition.type for condition in conditions}):
            for gone in states.keys() - present:
                self._subtract_state(states[gone])
            self._owners[owner_id] = {name: state for name, state in states.items() if name in present}
        for condition in conditions:
            self._record_condition(gvk, owner_id, condition)

    def _record_condition(self, gvk: GroupVersionKind, owner_id: _OwnerId, condition: Condition) -> None:
        states = self._owners.get(owner_id)
        exceeds_limit = (
            len(self._owners) >= _MAX_OWNERS
            if states is None
            else condition.type not in states and len(states) >= _MAX_CONDITIONS
        )
        if exceeds_limit:
            self._left_out += 1
            return
        states = states or {}
        before = states.get(condition.type)
        moment = condition.last_transition_time
        since = 0.0 if moment is None else moment.timestamp()
        if before is not None and before[1:] == (condition.status, condition.reason, since):
            return
        self._subtract_state(before)
        labels = (gvk.kind, condition.type, condition.status, condition.reason)
        if labels not in self._counts and len(self._counts) >= _MAX_STATES:
            labels = (gvk.kind, EXCEEDED, condition.status, EXCEEDED)
        self._counts[labels] += 1
        self._owners[owner_id] = {
            **states,
            condition.type: _ConditionState(labels, condition.status, condition.reason, since),
        }

    def forget(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Remove the series of a deleted owner; an unknown owner has no effect."""
        for state in self._owners.pop(_OwnerId(gvk.group, gvk.kind, key), {}).values():
            self._subtract_state(state)

    def read(self) -> list[FamilySample]:
        """Return the present samples of all families."""
        samples = [
            FamilySample(metric_families.CONDITIONS, tuple(self._counts.items())),
            FamilySample(metric_families.CONDITIONS_LEFT_OUT, (((), float(self._left_out)),)),
        ]
        if self._per_owner:
            samples.append(
                FamilySample(metric_families.OWNER_CONDITION, self._iter_series(tuple(self._owners.items())))
            )
        return samples

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

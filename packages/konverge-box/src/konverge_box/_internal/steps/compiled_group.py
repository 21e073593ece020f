"""The compiled form of a group of the file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from konverge_box._internal.expressions import CompiledCondition, compile_condition
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.file import Group
from konverge_box._internal.steps.compiled_resource import CompiledResource
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.scope import Scope

__all__ = ["CompiledGroup"]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class CompiledGroup:
    """A compiled group.

    Args:
        declared: The group in the file.
        name: The name of its component.
        step: The path of its step in the file, for example ``spec.crds.website.onReconcile``.
        index: Its index among the groups of the step.
        names: The condition types of earlier groups, by name.
        box_name: The box.

    Attributes:
        name: The name of its component.
        condition_type: The type of the component's condition.
        conditions: The conditions under which the group is enabled.
        grace_period: The time within which it must become ready; zero sets no limit.
        waits_for: The condition types of the groups that must be ready first.
        resources: Its entries, in the order in which they are applied.
        time_conditions: Its conditions whose result depends on the time.
        late_paths: The paths that its entries read of ``children`` and ``providers``.
    """

    def __init__(self, declared: Group, name: str, step: str, index: int, names: dict[str, str], box_name: str) -> None:
        where = f"{step}[{index}]"
        self.name = name
        self.condition_type = f"{name[0].upper()}{name[1:]}Ready"
        self.conditions = compile_entry_conditions(declared, where)
        self.suspend = tuple(
            compile_condition(each.to_mapping(), where=f"{where}.suspend[{place}]")
            for place, each in enumerate(declared.suspend)
        )
        self.grace_period = parse_period(declared.grace_period) if declared.grace_period else timedelta(0)
        self.waits_for = tuple(names[each] for each in declared.waits_for)
        self.resources = tuple(
            CompiledResource(each, step, declared.name or "", box_name) for each in declared.resources
        )
        self.late_paths = frozenset[tuple[str, ...]]().union(*(each.late_paths for each in self.resources))
        own = (*self.conditions.when, *self.conditions.any_of, *self.suspend)
        every = (*own, *(condition for resource in self.resources for condition in resource.timed_conditions))
        # Few conditions depend on the time, and that is the same for every reconcile.
        self.time_conditions: tuple[CompiledCondition, ...] = tuple(
            each for each in every if each.find_next_change(_EPOCH) is not None
        )

    def is_suspended(self, scope: Scope) -> bool:
        """Tell whether the workloads of the group must be suspended.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be evaluated.
        """
        holds = (each.holds(scope.names, environment=scope.environment) for each in self.suspend)
        return bool(self.suspend) and all(holds)

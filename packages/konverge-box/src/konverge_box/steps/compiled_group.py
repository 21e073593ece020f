"""A group of the file, compiled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from konverge_box.expressions import CompiledCondition, compile_condition
from konverge_box.expressions.schedules import parse_period
from konverge_box.file import Group
from konverge_box.steps.compiled_resource import CompiledResource
from konverge_box.steps.entry_conditions import compile_entry_conditions
from konverge_box.steps.scope import Scope

__all__ = ["CompiledGroup"]

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


class CompiledGroup:
    """A group.

    Args:
        declared: What the file says.
        name: What its component is called.
        step: The path of its step in the file, for example ``spec.crds.website.onReconcile``.
        index: Its place among the groups of the step.
        names: The condition types of earlier groups, by name.
        box_name: The box.

    Attributes:
        name: What its component is called.
        condition_type: Through which the component reports.
        conditions: When it is on.
        grace_period: How long it may take to become ready; zero is for ever.
        waits_for: The condition types of the groups that have to be ready first.
        resources: Its entries, in the order in which they are made.
        time_conditions: The conditions in it that turn by the passing of time.
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
        own = (*self.conditions.when, *self.conditions.any_of, *self.suspend)
        every = (*own, *(condition for resource in self.resources for condition in resource.timed_conditions))
        # Few depend on the time; whether one does, depends on none.
        self.time_conditions: tuple[CompiledCondition, ...] = tuple(
            each for each in every if each.find_next_change(_EPOCH) is not None
        )

    def is_suspended(self, scope: Scope) -> bool:
        """Tell whether its workloads are to be taken down.

        Raises:
            konverge_box.expressions.ExpressionError: A condition cannot be asked.
        """
        holds = (each.holds(scope.names, environment=scope.environment) for each in self.suspend)
        return bool(self.suspend) and all(holds)

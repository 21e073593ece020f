"""The builder: collects what belongs to a component, and every mistake in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta

from konverge.component.component import Component
from konverge.component.component_spec import RegisteredResource, Unplannable
from konverge.component.data_flow import list_cells, validate_data_flow
from konverge.component.prerequisites import DependsOn, Prerequisite
from konverge.component.resource_options import Option, resolve_options
from konverge.errors import BuildError, format_error
from konverge.feature import Gate
from konverge.primitives.resource_protocol import Resource

__all__ = ["ComponentBuilder"]

# meta/v1 Condition.type, as the API server validates it for conditions that use the type.
_CONDITION_TYPE = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
)


class ComponentBuilder:
    """Builds a `Component`; a component grows conditionally, so it has a builder where resources are plain values.

    No method raises; `build` reports all mistakes at once.

    Args:
        name: The component's name, unique within the operator's custom resource. It is part of the field manager:
            renaming a component leaves the ownership of its fields behind.
        condition_type: The condition on the owner through which it reports, for example ``FrontendReady``.
    """

    def __init__(self, name: str = "", *, condition_type: str = "") -> None:
        self._name = name
        self._condition_type = condition_type
        self._entries: list[RegisteredResource] = []
        self._gate: Gate | None = None
        self._prerequisites: list[Prerequisite] = []
        self._grace_period = timedelta(0)
        self._is_suspended = False
        self._errors: list[str] = []
        self._failures: list[str] = []

    def with_resource(self, resource: Resource | None, *options: Option | None) -> ComponentBuilder:
        """Register a resource. Registration order is execution order.

        Args:
            resource: The primitive.
            *options: How it is treated; none is managed. A None among them is ignored, for options assigned
                conditionally.
        """
        return self._register(resource, options)

    def with_unplannable(
        self, resource: Resource | None, unplannable: Unplannable, *options: Option | None
    ) -> ComponentBuilder:
        """Register a resource whose desired object cannot be known in this reconcile.

        When its turn comes, the component is blocked or fails, with the reason given; later resources are not applied.
        Its live object stays as it is. If the component is disabled, or an option says so, the object is deleted.

        Args:
            resource: A primitive with the identity of the object; it is not rendered.
            unplannable: The reason.
            *options: As for `with_resource`.
        """
        return self._register(resource, options, unplannable)

    def _register(
        self, resource: Resource | None, options: Sequence[Option | None], unplannable: Unplannable | None = None
    ) -> ComponentBuilder:
        if resource is None:
            self._errors.append("a resource is None: expected a primitive. To leave one out, use include_when")
            return self
        if not isinstance(getattr(resource, "identity", None), str):
            self._errors.append(f"a resource is a {type(resource).__name__}: expected a primitive")
            return self
        treatment, mistakes = resolve_options(options)
        identity = resource.identity
        self._errors += [f"{identity}: {mistake}" for mistake in (*resource.errors, *mistakes)]
        twin = next((entry for entry in self._entries if entry.identity == identity), None)
        if twin is not None:
            self._errors.append(
                f"{identity}: registered twice ({twin.treatment.mode.value}, then {treatment.mode.value}); "
                "one object has one treatment"
            )
        self._entries.append(RegisteredResource(resource, treatment, unplannable))
        return self

    def include_when(
        self, condition: bool, factory: Callable[[], Resource | None], *options: Option | None
    ) -> ComponentBuilder:
        """Register what the factory makes if the condition is true, else leave it wholly alone.

        When it is false the factory is not called, and the object is neither created nor read nor deleted. To have an
        owned object removed instead, use `gated_by` or `delete_when`.

        A factory that raises is no mistake of the component's declaration: the component is built, and each of its
        passes fails with what the factory raised, in its condition, before anything is touched.
        """
        if not isinstance(condition, bool):
            self._errors.append(f"include_when(): expected a bool, found {type(condition).__name__}")
            return self
        if not condition:
            return self
        try:
            resource = factory()
        except Exception as error:  # noqa: BLE001  # an author's code, like a guard or a mutation
            self._failures.append(f"failed to construct a resource of include_when(): {format_error(error)}")
            return self
        return self.with_resource(resource, *options)

    def with_feature_gate(self, gate: Gate | None) -> ComponentBuilder:
        """Remove all resources while the gate is off; None is no gate. A component has at most one."""
        if gate is not None:
            if not callable(getattr(gate, "enabled", None)):
                self._errors.append(f"its feature gate: expected one with enabled(), found {type(gate).__name__}")
            if self._gate is not None:
                self._errors.append("it has two feature gates: a component takes one; join them into one gate")
            self._gate = gate
        return self

    def with_prerequisite(self, prerequisite: Prerequisite | None) -> ComponentBuilder:
        """Wait with creation until it is met; several are asked in order. None is ignored."""
        if prerequisite is not None:
            if not callable(getattr(prerequisite, "check", None)):
                found = type(prerequisite).__name__
                self._errors.append(f"a prerequisite: expected one with check(), as by depends_on(), found {found}")
            self._prerequisites.append(prerequisite)
        return self

    def with_grace_period(self, period: timedelta) -> ComponentBuilder:
        """How long the component may converge before it is graded Degraded or Down; zero, the default, is forever."""
        if not isinstance(period, timedelta):
            self._errors.append(f"its grace period: expected a timedelta, found {type(period).__name__}")
            return self
        if period < timedelta(0):
            self._errors.append(f"its grace period is negative ({period}): expected zero (never ends) or more")
        self._grace_period = period
        return self

    def suspend(self, is_suspended: bool) -> ComponentBuilder:
        """Deactivate the component without deleting its configuration; the last call counts."""
        if not isinstance(is_suspended, bool):
            self._errors.append(f"suspend(): expected a bool, found {type(is_suspended).__name__}")
        self._is_suspended = is_suspended
        return self

    def build(self) -> Component:
        """The component.

        Raises:
            konverge.errors.BuildError: With every mistake made since the builder was made.
        """
        mistakes = []
        if not self._name:
            mistakes.append("it has no name: expected a short name such as 'frontend'")
        if not self._condition_type:
            mistakes.append("it has no condition type: expected one such as 'FrontendReady'")
        elif not _CONDITION_TYPE.fullmatch(self._condition_type):
            mistakes.append(f"its condition type is {self._condition_type!r}: expected CamelCase, as 'FrontendReady'")
        if DependsOn(self._condition_type) in self._prerequisites:
            mistakes.append(
                f"it depends on its own condition {self._condition_type}, and would wait for itself: expected the "
                "condition type of another component"
            )
        mistakes += self._errors
        entries = tuple(self._entries)
        cells = list_cells(entries)
        if cells and not self._failures:  # the producer of a cell may be what could not be constructed
            mistakes += validate_data_flow(entries)
        if mistakes:
            raise BuildError(f'component "{self._name}"', mistakes)
        return Component(
            name=self._name,
            condition_type=self._condition_type,
            entries=entries,
            gate=self._gate,
            prerequisites=tuple(self._prerequisites),
            grace_period=self._grace_period,
            is_suspended=self._is_suspended,
            cells=cells,
            construction_errors=tuple(self._failures),
        )

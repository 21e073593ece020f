"""The builder of components, which collects their parts and all errors in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from konverge._internal.component.component import Component
from konverge._internal.component.component_spec import RegisteredResource, Unplannable
from konverge._internal.component.data_flow import list_cells, validate_data_flow
from konverge._internal.component.prerequisites import DependsOn, Prerequisite
from konverge._internal.component.resource_options import (
    OnAbsence,
    Option,
    ResourceMode,
    ResourceTreatment,
    resolve_options,
)
from konverge._internal.feature import Gate
from konverge._internal.primitives.resource_protocol import Resource
from konverge.errors import BuildError, format_error

__all__ = ["ComponentBuilder"]

# meta/v1 Condition.type, as the API server validates it for conditions that use the type.
_CONDITION_TYPE = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"
)


class ComponentBuilder:
    """The builder of a `Component`.

    A component gets parts conditionally; therefore it has a builder, while resources are plain values. No method except
    `build` raises; `build` reports all errors together.

    Args:
        name: The name of the component, unique within the custom resource. It is part of the field manager: after a
            rename, the fields still belong to the old name.
        condition_type: The condition on the owner that reports the component, for example ``FrontendReady``.
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
        """Register a resource; the registration order is the execution order.

        An object has one registration, or two: ``read_only()`` with ``ignore_if_absent()`` to extract what it contains,
        then a managed one.

        Args:
            resource: The primitive.
            *options: Options from `konverge.options`; without any, the resource is managed. None is ignored, so that an
                option can be conditional.
        """
        return self._register(resource, options)

    def with_unplannable(
        self, resource: Resource | None, unplannable: Unplannable, *options: Option | None
    ) -> ComponentBuilder:
        """Register a resource whose desired object cannot be known in this reconcile.

        Instead of an apply, the component is blocked or fails with the reason, and later resources are not processed.
        The live object stays as it is. It is deleted if the component is disabled or an option requires it.

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
        earlier = [index for index, entry in enumerate(self._entries) if entry.identity == identity]
        if earlier and (mistake := self._register_again(earlier, treatment)):
            self._errors.append(f"{identity}: {mistake}")
        self._entries.append(RegisteredResource(resource, treatment, unplannable))
        return self

    def _register_again(self, earlier: Sequence[int], treatment: ResourceTreatment) -> str:
        """Allow an object that is read first and managed afterwards; describe the error in any other pair."""
        first, last = self._entries[earlier[0]], self._entries[earlier[-1]]
        first_mode, mode = first.treatment.mode, treatment.mode
        if len(earlier) == 1 and first_mode is ResourceMode.READ_ONLY and mode is not ResourceMode.READ_ONLY:
            self._entries[earlier[0]] = replace(first, is_managed_later=True)
            if first.treatment.on_absence is OnAbsence.IGNORE:
                return ""
            return "read, then managed: expected ignore_if_absent(), because the component creates it"
        if mode is ResourceMode.READ_ONLY and last.treatment.mode is not ResourceMode.READ_ONLY:
            return "managed, then read: expected extract= on the managed resource, and no second registration"
        return f"registered twice ({last.treatment.mode.value}, then {mode.value}); one object has one treatment"

    def include_when(
        self, condition: bool, factory: Callable[[], Resource | None], *options: Option | None
    ) -> ComponentBuilder:
        """Register the resource that the factory returns if the condition is true; otherwise ignore it.

        If the condition is false, the factory is not called, and the object is neither created nor read nor deleted. To
        delete an owned object instead, use `konverge.options.gated_by` or `konverge.options.delete_when`.

        An exception of the factory is not an error of the declaration: the component is built. Each of its reconciles
        fails with the exception, which the condition reports, before any request.
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
        """Delete all objects of the component while the gate is off; None adds no gate. A component has at most one."""
        if gate is not None:
            if not callable(getattr(gate, "enabled", None)):
                self._errors.append(f"its feature gate: expected one with enabled(), found {type(gate).__name__}")
            if self._gate is not None:
                self._errors.append("it has two feature gates: a component takes one; join them into one gate")
            self._gate = gate
        return self

    def with_prerequisite(self, prerequisite: Prerequisite | None) -> ComponentBuilder:
        """Start the component only after the prerequisite is met. Several are checked in order; None is ignored."""
        if prerequisite is not None:
            if not callable(getattr(prerequisite, "check", None)):
                found = type(prerequisite).__name__
                self._errors.append(f"a prerequisite: expected one with check(), as by depends_on(), found {found}")
            self._prerequisites.append(prerequisite)
        return self

    def with_grace_period(self, period: timedelta) -> ComponentBuilder:
        """Set the time to converge before the component is graded Degraded or Down. Zero, the default, never ends."""
        if not isinstance(period, timedelta):
            self._errors.append(f"its grace period: expected a timedelta, found {type(period).__name__}")
            return self
        if period < timedelta(0):
            self._errors.append(f"its grace period is negative ({period}): expected zero (never ends) or more")
        self._grace_period = period
        return self

    def suspend(self, is_suspended: bool) -> ComponentBuilder:
        """Deactivate the component and keep its configuration; the last call counts."""
        if not isinstance(is_suspended, bool):
            self._errors.append(f"suspend(): expected a bool, found {type(is_suspended).__name__}")
        self._is_suspended = is_suspended
        return self

    def build(self) -> Component:
        """Build the component.

        Raises:
            konverge.errors.BuildError: The declaration has errors; the exception lists all of them.
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
        if cells and not self._failures:  # the producer of a cell may be the resource that could not be constructed
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

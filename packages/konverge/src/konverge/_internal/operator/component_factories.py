"""The functions of an author that build the components of an owner, and the decisions around them. Pure.

`operator.managed_reconcile` reconciles the components; this module builds them one after the other, collects what fails
and summarizes the result in one condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar, cast

from konverge._internal.component import Component, ConditionReason, ReconcileContext, TimeLimit, aggregate
from konverge._internal.crd import decode, find_definition
from konverge._internal.crd.status_class import find_status_class
from konverge._internal.kube import Condition, GroupVersionKind, Object
from konverge._internal.operator.function_calls import Reconciler, accepts, is_async, name_function
from konverge._internal.operator.owner_status import StatusFunction
from konverge.errors import BuildError, format_error

__all__ = [
    "ComponentFactories",
    "ComponentFactory",
    "ComponentsReconcile",
    "build_component",
    "build_error_condition",
    "check_condition_type",
    "list_component_kinds",
]

T = TypeVar("T")

ComponentFactory: TypeAlias = Callable[[T], Component]
"""Builds one component for an owner."""


class ComponentFactories(Generic[T]):
    """The component factories of one owner class, and the functions between them.

    Args:
        parts: In the order of a reconcile: a plain function builds one component for an owner, an async function is
            called with the owner and the context.
        condition_type: The condition that summarizes the components.
        retired: The condition types of components that the operator had before, which are removed from owners.
        status: Returns the status of an owner after its components; None for no status.
    """

    def __init__(
        self,
        parts: Sequence[ComponentFactory[T] | Reconciler[T]],
        condition_type: str,
        retired: Sequence[str] = (),
        status: StatusFunction[T] | None = None,
    ) -> None:
        self.parts = tuple(parts)
        self.condition_type = condition_type
        self.retired = retired if isinstance(retired, str) else tuple(retired)
        self.status = status
        # By index: the condition type of each factory's latest component, the place to report that it fails to build.
        self.known_types: dict[int, str] = {}

    @property
    def factories(self) -> tuple[ComponentFactory[T], ...]:
        """The functions that build components, in order."""
        return tuple(cast("ComponentFactory[T]", part) for part in self.parts if not is_async(part))

    @property
    def functions(self) -> tuple[Reconciler[T], ...]:
        """The functions between components, in order."""
        return tuple(part for part in self.parts if is_async(part))

    def list_errors(self, cls: type[T]) -> list[str]:
        """List the mistakes of the declaration, one sentence each."""
        mistakes = [] if self.factories else ["manages needs at least one function that builds a component"]
        for index, part in enumerate(self.parts):
            if not callable(part):
                mistakes.append(f"expected a function, found {part!r}; give the function itself, without a call")
                continue
            name = name_function(part)
            if part in self.parts[:index]:
                reason = "" if is_async(part) else ": its two components would share their objects"
                mistakes.append(f"{name} is given again{reason}")
            mistakes += _check_parameters(name, part, 2 if is_async(part) else 1)
        if isinstance(self.retired, str):
            mistakes.append(f"retired: expected a list of condition types, found the text {self.retired!r}")
        return mistakes + self._list_status_errors(cls)

    def _list_status_errors(self, cls: type[T]) -> list[str]:
        if self.status is None:
            return []
        if not callable(self.status):
            return [f"status: expected a function, found {self.status!r}"]
        if not find_definition(cls).has_own_status:
            kind = find_definition(cls).gvk.kind
            return [f"status: the status of a {kind} belongs to another controller: expected no status function"]
        if find_status_class(cls) is None:
            return [
                f"status: {cls.__name__} has no field status: expected one with a default, as in "
                "status: AppStatus = field(default_factory=AppStatus)"
            ]
        return _check_parameters(name_function(self.status), self.status, 2)


def _check_parameters(name: str, function: Callable[..., object], expected: int) -> list[str]:
    if accepts(function, expected):
        return []
    if expected == 1:
        hint = "; use async def for a function that gets the owner and the context" if accepts(function, 2) else ""
        return [f"{name}: expected a function of the owner that builds a component, found other parameters{hint}"]
    return [f"{name}: expected a function of the owner and the context, found other parameters"]


class ComponentsReconcile(Generic[T]):
    """The parts of one reconcile of an owner, and its errors.

    A component that fails, or cannot be built, does not stop the others; nor does a function.

    Args:
        components: The factories and functions.
        owner: The owner as an instance of its class.
        ctx: The context of the reconcile.
    """

    def __init__(self, components: ComponentFactories[T], owner: T, ctx: ReconcileContext) -> None:
        self.errors: list[Exception] = []
        self._declared = components
        self._owner = owner
        self._ctx = ctx
        self._components: list[Component] = []
        self._summary_errors: list[str] = []

    def iter_parts(self) -> Iterator[Component | Reconciler[T]]:
        """Build one component after the other; a factory runs after the part before it."""
        for index, part in enumerate(self._declared.parts):
            if is_async(part):
                yield part
                continue
            try:
                component = build_component(self._ctx.call(part, self._owner))
                check_condition_type(component, self._components, self._declared.condition_type)
            except Exception as error:  # noqa: BLE001  # an author's code: the other components continue
                self._collect_build_error(index, name_function(part), error)
                continue
            self._declared.known_types[index] = component.condition_type
            self._components.append(component)
            yield component

    def collect_error(self, what: str, error: Exception) -> None:
        """Collect an error outside of components, for the summary and for the end of the reconcile."""
        self.errors.append(error)
        self._summary_errors.append(f"{what}: {self._ctx.secret_values.hide(format_error(error))}")

    def report_problem(self, problem: str) -> None:
        """Report a problem in the summary, before all others."""
        self._summary_errors = [problem, *self._summary_errors]

    def _collect_build_error(self, index: int, name: str, error: Exception) -> None:
        self.errors.append(error)
        problem = self._ctx.secret_values.hide(format_error(error))
        self._summary_errors.append(f"{name}: {problem}")
        known_type = self._declared.known_types.get(index)
        # Other owners may have the component under another type.
        if known_type is not None and self._ctx.condition(known_type) is not None:
            self._ctx.stage(build_error_condition(self._ctx, known_type, problem))

    def summarize(self) -> None:
        """Remove the retired conditions and stage the condition that summarizes the components."""
        condition_type = self._declared.condition_type
        self._ctx.retire_conditions(*self._declared.retired)
        if self._summary_errors:
            self._ctx.stage(build_error_condition(self._ctx, condition_type, "; ".join(self._summary_errors)))
        else:
            self._ctx.stage(aggregate(condition_type, self._ctx.owner, self._components))

    def raise_errors(self) -> None:
        """Raise what failed, so that the reconcile is repeated."""
        match self.errors:
            case []:
                return
            case [error]:
                raise error
        raise ExceptionGroup("several components failed: " + "; ".join(map(format_error, self.errors)), self.errors)


def build_component(answer: object) -> Component:
    """Return the component that a factory returned.

    Raises:
        TypeError: The value is not a component.
    """
    if not isinstance(answer, Component):
        raise TypeError(f"expected a Component, found {type(answer).__name__}; does it end in .build()?")
    return answer


def list_component_kinds(
    cls: type[T], factories: Sequence[ComponentFactory[T]], owner: Object, limit: TimeLimit
) -> set[GroupVersionKind]:
    """List the kinds of the objects in the components of an owner, without components that cannot be built."""
    kinds: set[GroupVersionKind] = set()
    for factory in factories:
        try:
            component = build_component(limit.call(factory, decode(cls, owner)))
        except Exception:  # noqa: BLE001  # an author's code; the reconcile reports the same error
            continue
        kinds.update(entry.resource.gvk for entry in component.entries)
    return kinds


def check_condition_type(component: Component, earlier: Sequence[Component], summary: str) -> None:
    """Refuse a component whose condition another one writes: the owner would show the last writer's as both.

    Raises:
        konverge.errors.BuildError: The condition type is that of an earlier component, or that of the summary.
    """
    if component.condition_type == summary:
        raise BuildError(
            f'component "{component.name}"',
            [f"its condition type {summary} is that of the owner's summary: expected one of its own"],
        )
    for other in earlier:
        if other.condition_type == component.condition_type:
            raise BuildError(
                f'component "{component.name}"',
                [
                    f'component "{other.name}" has condition type {component.condition_type} too: '
                    "expected two condition types"
                ],
            )


def build_error_condition(ctx: ReconcileContext, condition_type: str, message: str) -> Condition:
    """Return a condition with status False and reason ``Error``."""
    return Condition(condition_type, "False", ConditionReason.ERROR, message, ctx.owner_generation)

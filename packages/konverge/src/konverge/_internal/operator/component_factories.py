"""The functions of an author that build the components of an owner, and the decisions around them. Pure.

`operator.author_reconciler` reconciles the components; this module builds them one after the other, collects
what fails and summarizes the result in one condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeAlias, TypeVar

from konverge._internal.component import Component, ConditionReason, ReconcileContext, TimeLimit, aggregate
from konverge._internal.crd import decode
from konverge._internal.kube import Condition, GroupVersionKind, Object
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
    """The component factories of one owner class.

    Args:
        factories: Each builds one component for an owner.
        condition_type: The condition that summarizes the components.
        retired: The condition types of components that the operator had before, which are removed from owners.
    """

    def __init__(
        self, factories: Sequence[ComponentFactory[T]], condition_type: str, retired: Sequence[str] = ()
    ) -> None:
        self.factories = tuple(factories)
        self.condition_type = condition_type
        self.retired = tuple(retired)
        # By index: the condition type of each factory's latest component, the place to report that it fails to build.
        self.known_types: dict[int, str] = {}


class ComponentsReconcile(Generic[T]):
    """The components that one reconcile of an owner builds, and its errors.

    A component that fails, or cannot be built, does not stop the others.

    Args:
        components: The factories.
        owner: The owner as an instance of its class.
        ctx: The context of the reconcile.
    """

    def __init__(self, components: ComponentFactories[T], owner: T, ctx: ReconcileContext) -> None:
        self.errors: list[Exception] = []
        self._factories = components
        self._owner = owner
        self._ctx = ctx
        self._components: list[Component] = []
        self._build_errors: list[str] = []

    def iter_components(self) -> Iterator[Component]:
        """Build one component after the other; a factory runs after the component before it was reconciled."""
        for index, factory in enumerate(self._factories.factories):
            try:
                component = build_component(self._ctx.call(factory, self._owner))
                check_condition_type(component, self._components, self._factories.condition_type)
            except Exception as error:  # noqa: BLE001  # an author's code: the other components continue
                self._collect_build_error(index, factory, error)
                continue
            self._factories.known_types[index] = component.condition_type
            self._components.append(component)
            yield component

    def _collect_build_error(self, index: int, factory: ComponentFactory[T], error: Exception) -> None:
        self.errors.append(error)
        problem = format_error(error)
        self._build_errors.append(f"{getattr(factory, '__name__', factory)}: {problem}")
        known_type = self._factories.known_types.get(index)
        # Other owners may have the component under another type.
        if known_type is not None and self._ctx.condition(known_type) is not None:
            self._ctx.stage(build_error_condition(self._ctx, known_type, problem))

    def summarize(self) -> None:
        """Remove the retired conditions and stage the condition that summarizes the components."""
        condition_type = self._factories.condition_type
        self._ctx.retire_conditions(*self._factories.retired)
        if self._build_errors:
            self._ctx.stage(build_error_condition(self._ctx, condition_type, "; ".join(self._build_errors)))
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

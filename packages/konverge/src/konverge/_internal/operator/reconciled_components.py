"""The components that a reconcile has run so far, with their conditions and live objects. Pure.

An author's function gets them through `OwnerContext.components`: a status function after all components, a function
between components after the ones before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from konverge._internal.component import ReconcileContext
from konverge._internal.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge._internal.mutation import copy_json
from konverge._internal.operator.kind_argument import Kind, kind_of
from konverge._internal.suggestions import did_you_mean
from konverge.errors import ConfigurationError

__all__ = ["ReconciledComponent", "ReconciledComponents"]


@dataclass(frozen=True, slots=True)
class ReconciledComponent:
    """A component after its reconcile.

    Args:
        name: The name of the component.
        condition: The condition that it has staged.
    """

    name: str
    condition: Condition
    _objects: Mapping[str, Object] = field(default_factory=dict, repr=False)

    @property
    def is_ready(self) -> bool:
        """True if the component's condition is True."""
        return self.condition.status == "True"

    @property
    def objects(self) -> list[Object]:
        """Copies of the live objects that the reconcile applied or read, in order of registration.

        An object that does not exist, or that the component did not reach, is not in the list.
        """
        return [copy_json(obj) for obj in self._objects.values()]

    def find(self, kind: Kind, name: str = "") -> Object | None:
        """Return a copy of the live object of a kind; None if the component has none, or has not reached it.

        Args:
            kind: The kind, for example ``"apps/v1/StatefulSet"``.
            name: The name of the object; required if the component has several objects of the kind.

        Raises:
            ConfigurationError: Several objects of the kind match.
            ValueError: The text is not a kind.
        """
        return _find_object(self._objects.values(), kind_of(kind), name, f'component "{self.name}"')


class ReconciledComponents(Mapping[str, ReconciledComponent]):
    """The components of one reconcile by name, in the order of their reconciles.

    A component that could not be built is missing; its condition and the summary report the reason.

    Args:
        ctx: The context of the reconcile.
    """

    def __init__(self, ctx: ReconcileContext) -> None:
        self._owner = ctx.owner
        self._reconciled = {name: (condition_type, objects) for name, condition_type, objects in ctx.list_reconciled()}

    def __getitem__(self, name: str) -> ReconciledComponent:
        """Return a component.

        Raises:
            KeyError: No component of that name was reconciled; the message lists the names.
        """
        if name not in self._reconciled:
            names = ", ".join(self._reconciled) or "none so far"
            raise KeyError(
                f'component "{name}" was not reconciled: expected one of {names}{did_you_mean(name, self._reconciled)}'
            )
        condition_type, objects = self._reconciled[name]
        condition = find_condition(self._owner, condition_type)
        assert condition is not None, "every reconcile of a component stages its condition"
        return ReconciledComponent(name, condition, objects)

    def __contains__(self, name: object) -> bool:
        """Return True if a component of that name was reconciled."""
        return name in self._reconciled

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the components."""
        return iter(self._reconciled)

    def __len__(self) -> int:
        """Return the number of components."""
        return len(self._reconciled)

    @property
    def are_ready(self) -> bool:
        """True if the conditions of all components are True; also without a component."""
        return all(component.is_ready for component in self.values())

    def find(self, kind: Kind, name: str = "") -> Object | None:
        """Return a copy of the live object of a kind in any component, as `ReconciledComponent.find`.

        Raises:
            ConfigurationError: Several objects of the kind match.
            ValueError: The text is not a kind.
        """
        objects = {identity: obj for _, live in self._reconciled.values() for identity, obj in live.items()}
        return _find_object(objects.values(), kind_of(kind), name, "the components")


def _find_object(objects: Iterable[Object], gvk: GroupVersionKind, name: str, where: str) -> Object | None:
    matching = [
        obj
        for obj in objects
        if GroupVersionKind.of(obj).group_kind == gvk.group_kind and name in ("", ObjectKey.of(obj).name)
    ]
    if len(matching) > 1:
        names = ", ".join(str(ObjectKey.of(obj)) for obj in matching)
        raise ConfigurationError(
            f"{where}: expected one object of the kind {gvk.kind}, found {names}; give the name of one, as in "
            f'find(..., "{ObjectKey.of(matching[0]).name}")'
        )
    return copy_json(matching[0]) if matching else None

"""The plan of a reconcile for the objects of a custom resource, before anything is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge_box._internal.file import BoxResource
from konverge_box._internal.steps.apply_policy import FOREIGN_OBJECT, ObjectAction
from konverge_box._internal.steps.children import Child

__all__ = ["PlannedGroup", "PlannedResource", "ResourcePlan"]


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """The planned action on one object.

    Args:
        resource: The entry of the file.
        gvk: Its kind.
        key: Its namespace and name.
        action: The action.
        explanation: The reason for the action, in words.
        is_owned: It can have an owner reference. Otherwise only a label identifies its owner.
        is_namespaced: Its kind is namespaced.
        object: The object that is applied, with sensitive values; None where nothing is applied, or not yet.
        blocked: The reason why it has to wait; empty without one.
        problem: The error of rendering it; empty without one.
        is_renewed: Its values are generated again, for which the object itself may have to be replaced.
        decided_on: The version of the object on which the decision to generate values is based; empty for an absent
            object, None for an object without such values.
        mark: The hash to add to an annotation of the custom resource once the object exists (`steps.creation_marks`);
            empty if the annotation contains it already, or no mark is necessary.
        foreign_owner: The description of the other owner, if an object that is left unchanged belongs to one; empty
            otherwise.
        complete: Renders the object with the values of earlier groups and providers; None if it is rendered already.
        find_unready: Describes what the live object lacks to be ready, "" for nothing; None for the rule of its kind.
    """

    resource: BoxResource
    gvk: GroupVersionKind
    key: ObjectKey
    action: ObjectAction
    explanation: str
    is_owned: bool = True
    is_namespaced: bool = True
    object: Object | None = None
    blocked: str = ""
    problem: str = ""
    is_renewed: bool = False
    decided_on: str | None = None
    mark: str = ""
    foreign_owner: str = ""
    complete: Callable[[PlannedResource, Mapping[str, Any]], Awaitable[PlannedResource]] | None = field(
        default=None, compare=False
    )
    find_unready: Callable[[Object], str] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        # The file can contain values that the object marks as sensitive.
        return f"PlannedResource({self.action.value} {self.gvk.kind} {self.key})"

    def may_adopt(self, *, default: bool) -> bool:
        """Tell whether an existing object of another owner may be used; `default` applies without ``adopt``."""
        return default if self.resource.adopt is None else self.resource.adopt

    @property
    def is_foreign(self) -> bool:
        """Tell whether it is kept only because it does not belong to the custom resource."""
        return self.action is ObjectAction.SKIP and self.explanation == FOREIGN_OBJECT

    @property
    def is_desired(self) -> bool:
        """Tell whether the object should exist.

        False if it could not be rendered: then its owner is unknown, and an object of its name may be another owner's.
        """
        return self.action in (ObjectAction.APPLY, ObjectAction.LEAVE) and not self.problem


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """The plan of one group, which becomes one component.

    Args:
        name: The name of the component.
        condition_type: The type of its condition.
        entries: Its objects, in the order in which they are applied.
        is_on: The group's conditions hold.
        is_suspended: Its workloads are suspended.
        grace_period: The time within which it must become ready; zero sets no limit.
        waits_for: The condition types of the groups that must be ready first.
    """

    name: str
    condition_type: str
    entries: tuple[PlannedResource, ...] = ()
    is_on: bool = True
    is_suspended: bool = False
    grace_period: timedelta = timedelta(0)
    waits_for: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """The plan of all groups of a custom resource, in the order in which they are reconciled.

    Args:
        groups: The groups of ``onCreate``, then those of ``onReconcile``.
        requeue_at: The time at which the plan can change by itself; None for never.
    """

    groups: tuple[PlannedGroup, ...]
    requeue_at: datetime | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        """The objects that the status can read."""
        return tuple(
            Child(entry.resource, entry.key, is_desired=entry.is_desired)
            for group in self.groups
            for entry in group.entries
        )

"""What a pass is going to do with the objects of a custom resource, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box.file import BoxResource
from konverge_box.steps.apply_policy import FOREIGN_OBJECT, ObjectAction
from konverge_box.steps.children import Child

__all__ = ["PlannedGroup", "PlannedResource", "ResourcePlan"]


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """One object.

    Args:
        resource: What the file declares.
        gvk: Its kind.
        key: Which one it is.
        action: What is done.
        explanation: For people.
        is_owned: It may have an owner reference; otherwise a label alone says whose it is.
        is_namespaced: Its kind has namespaces.
        object: What is applied, with sensitive leaves; None where nothing is, or not yet.
        blocked: What it waits for; empty for nothing.
        problem: Why it cannot be rendered; empty when it can.
        is_renewed: Its values are made anew, for which it may have to be made anew itself.
        mark: What the owner is marked with once it is there; empty if it is marked, or needs no mark.
        foreign_owner: Whose it is if it is left as it is and is not the custom resource's; empty otherwise.
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
    mark: str = ""
    foreign_owner: str = ""

    def __repr__(self) -> str:
        # The file may hold what the object hides.
        return f"PlannedResource({self.action.value} {self.gvk.kind} {self.key})"

    @property
    def is_foreign(self) -> bool:
        """Tell whether it would be deleted if it were the custom resource's."""
        return self.action is ObjectAction.SKIP and self.explanation == FOREIGN_OBJECT

    @property
    def is_desired(self) -> bool:
        """Tell whether it is to be there. With a problem, what is there under its name may be somebody else's."""
        return self.action in (ObjectAction.APPLY, ObjectAction.LEAVE) and not self.problem


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """One group, which becomes one component.

    Args:
        name: The component's.
        condition_type: Through which it reports.
        entries: In the order in which they are made.
        is_on: The group's conditions hold.
        is_suspended: Its workloads are taken down.
        grace_period: How long it may take to become ready; zero is for ever.
        waits_for: The condition types of the groups that have to be ready first.
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
    """All groups of a custom resource, in the order in which they are reconciled.

    Args:
        groups: Those of ``onCreate``, then those of ``onReconcile``.
        requeue_at: When the plan may be another one although nothing has changed; None for never.
    """

    groups: tuple[PlannedGroup, ...]
    requeue_at: datetime | None = None

    @property
    def children(self) -> tuple[Child, ...]:
        """The objects as the status looks at them."""
        return tuple(
            Child(entry.resource, entry.key, is_desired=entry.is_desired)
            for group in self.groups
            for entry in group.entries
        )

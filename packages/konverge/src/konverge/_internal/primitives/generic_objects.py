"""Primitives for any other kind: the object names its kind, and the author's functions judge it.

For a kind that you use often, derive a class from its category in `primitives.kind_categories`, as the
built-in kinds do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, Unpack

from konverge._internal.mutation import ContentEditor, EditCategory, EditFunction, Mutation, Mutator
from konverge._internal.primitives.kind_categories import (
    ConvergingHandler,
    GraceHandler,
    StaticKind,
    SuspensionHandler,
    TaskKind,
    WorkloadKind,
)
from konverge._internal.primitives.primitive import CommonOptions, DesiredObject, LifecycleHandlers, Primitive

__all__ = ["ContentMutator", "Integration", "Static", "Task", "Workload"]

_Mutations: TypeAlias = "Mutation[ContentMutator] | Iterable[Mutation[ContentMutator]]"


class Static(StaticKind["ContentMutator"]):
    """Any object that is ready once it exists; suspension does not change it.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        cluster_scoped: True if the kind is cluster-scoped.
        mutations: One mutation or several, in order.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        cluster_scoped: bool = False,
        mutations: _Mutations = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        self.is_cluster_scoped = cluster_scoped
        super().__init__(obj, mutations=mutations, **common)

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()


class Task(Primitive["ContentMutator"]):
    """Any object that runs to completion. It has no grace status.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        converging_status: Returns Completed, TaskRunning, TaskPending or TaskFailing.
        cluster_scoped: True if the kind is cluster-scoped.
        mutations: One mutation or several, in order.
        suspend: Records the edits that suspend the object (default: none).
        suspension_status: Returns the progress of the suspension (default: Suspended at once).
        delete_on_suspend: True if suspension ends in the deletion of the object.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        converging_status: ConvergingHandler,
        cluster_scoped: bool = False,
        mutations: _Mutations = (),
        suspend: Callable[[ContentMutator], None] | None = None,
        suspension_status: SuspensionHandler | None = None,
        delete_on_suspend: bool = False,
        **common: Unpack[CommonOptions],
    ) -> None:
        self.is_cluster_scoped = cluster_scoped
        handlers = LifecycleHandlers(
            converging_status=converging_status,
            suspend=suspend or TaskKind.default_suspend,
            suspension_status=suspension_status or TaskKind.default_suspension_status,
            delete_on_suspend=delete_on_suspend,
        )
        super().__init__(obj, mutations=mutations, handlers=handlers, **common)
        self.errors: tuple[str, ...] = (*self.errors, *_validate_handler(converging_status))

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()


class _GradedObject(Primitive["ContentMutator"]):
    """Any object that stays, has a converging status and a grace status, and can be suspended.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        converging_status: Returns the converging status of the live object.
        cluster_scoped: True if the kind is cluster-scoped.
        mutations: One mutation or several, in order.
        grace_status: Returns the severity after the grace period (default: Healthy).
        suspend: Records the edits that suspend the object (default: none).
        suspension_status: Returns the progress of the suspension (default: Suspended at once).
        delete_on_suspend: True if suspension ends in the deletion of the object.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        converging_status: ConvergingHandler,
        cluster_scoped: bool = False,
        mutations: _Mutations = (),
        grace_status: GraceHandler | None = None,
        suspend: Callable[[ContentMutator], None] | None = None,
        suspension_status: SuspensionHandler | None = None,
        delete_on_suspend: bool = False,
        **common: Unpack[CommonOptions],
    ) -> None:
        self.is_cluster_scoped = cluster_scoped
        handlers = LifecycleHandlers(
            converging_status=converging_status,
            grace_status=grace_status or WorkloadKind.default_grace_status,
            suspend=suspend or WorkloadKind.default_suspend,
            suspension_status=suspension_status or WorkloadKind.default_suspension_status,
            delete_on_suspend=delete_on_suspend,
        )
        super().__init__(obj, mutations=mutations, handlers=handlers, **common)
        self.errors: tuple[str, ...] = (*self.errors, *_validate_handler(converging_status))

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()


class Workload(_GradedObject):
    """Any object that keeps pods or processes running: Healthy, Creating, Updating, Scaling or Failing."""


class Integration(_GradedObject):
    """Any object that depends on an outside system: Operational, OperationPending or OperationFailing."""


def _validate_handler(converging_status: object) -> tuple[str, ...]:
    if converging_status is not None:
        return ()
    return ("converging_status: expected a function, found None: konverge has no default for this kind",)


class ContentMutator(Mutator):
    """Records edits of any object."""

    def edit_content(self, edit: EditFunction[ContentEditor] | None) -> None:
        """Record an edit of any field by its path."""
        self._edit(EditCategory.CONTENT, ContentEditor, (), edit)

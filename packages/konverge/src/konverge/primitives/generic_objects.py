"""Primitives for any other kind: the object says what it is, the author says how to judge it.

For a kind that is used often, derive a class from its category in `konverge.primitives.kind_categories` instead, as the
built-in kinds do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias, Unpack

from konverge.mutation import ContentEditor, EditCategory, EditFunction, Mutation, Mutator
from konverge.primitives.kind_categories import (
    ConvergingHandler,
    GraceHandler,
    StaticKind,
    SuspensionHandler,
    TaskKind,
    WorkloadKind,
)
from konverge.primitives.primitive import CommonOptions, DesiredObject, LifecycleHandlers, Primitive

__all__ = ["ContentMutator", "Integration", "Static", "Task", "Workload"]

_Mutations: TypeAlias = "Mutation[ContentMutator] | Iterable[Mutation[ContentMutator]]"


class Static(StaticKind["ContentMutator"]):
    """Any object that is ready by existing; suspension leaves it alone.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        cluster_scoped: The kind has no namespaces.
        mutations: One or many, in order.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
        """What the callbacks of the mutations get."""
        return ContentMutator()


class Task(Primitive["ContentMutator"]):
    """Any object that runs to completion. It is not graded.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        converging_status: Answers Completed, TaskRunning, TaskPending or TaskFailing.
        cluster_scoped: The kind has no namespaces.
        mutations: One or many, in order.
        suspend: Records the edits that suspend it; none by default.
        suspension_status: How far it is suspended; by default at once.
        delete_on_suspend: Suspension ends in deletion.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
        self.errors += _validate_handler(converging_status)

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()


class _GradedObject(Primitive["ContentMutator"]):
    """Any object that stays, is judged, graded and can be suspended.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        converging_status: How far the live object is.
        cluster_scoped: The kind has no namespaces.
        mutations: One or many, in order.
        grace_status: How bad it is not to have converged; by default not at all.
        suspend: Records the edits that suspend it; none by default.
        suspension_status: How far it is suspended; by default at once.
        delete_on_suspend: Suspension ends in deletion.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
        self.errors += _validate_handler(converging_status)

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()


class Workload(_GradedObject):
    """Any object that keeps something running; answers Healthy, Creating, Updating, Scaling or Failing."""


class Integration(_GradedObject):
    """Any object that waits for something outside; answers Operational, OperationPending or OperationFailing."""


def _validate_handler(converging_status: object) -> tuple[str, ...]:
    if converging_status is not None:
        return ()
    return ("converging_status is missing: nothing is known of this kind, so its author says when it is ready",)


class ContentMutator(Mutator):
    """Records edits of any object."""

    def edit_content(self, edit: EditFunction[ContentEditor] | None) -> None:
        """Edit any field by its path."""
        self._edit(EditCategory.CONTENT, ContentEditor, (), edit)

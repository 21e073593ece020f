"""Custom: an object of any kind whose status follows the common conventions, judged without code of the author."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

from konverge._internal.kube import Object
from konverge._internal.mutation import Mutation
from konverge._internal.primitives.generic_objects import ContentMutator
from konverge._internal.primitives.kind_categories import (
    ConvergingHandler,
    GraceHandler,
    IntegrationKind,
    SuspensionHandler,
)
from konverge._internal.primitives.kstatus import convergence_by_kstatus, grace_by_kstatus
from konverge._internal.primitives.primitive import CommonOptions, DesiredObject
from konverge._internal.primitives.resource_protocol import Convergence, Grace, Operation

__all__ = ["Custom"]


class Custom(IntegrationKind[ContentMutator]):
    """An object of any kind, ready when its controller reports it by the conventions of `primitives.kstatus`.

    It is an integration, because another controller does the work. konverge does not know how to suspend the kind:
    without `suspend`, suspension changes nothing and deletes nothing.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        cluster_scoped: True if the kind is cluster-scoped.
        required_conditions: One condition type or several that must be True before the object is ready, such as
            ``"Ready"`` or ``("Synced", "Ready")``. The object is not ready while one is absent. Without required
            conditions, an object without any reported status is ready.
        mutations: One mutation or several, in order.
        converging_status: A function in place of kstatus.
        grace_status: A function in place of kstatus.
        suspend: Records the edits that suspend the object (default: none).
        suspension_status: Returns the progress of the suspension (default: Suspended at once).
        delete_on_suspend: True if suspension ends in the deletion of the object.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        cluster_scoped: bool = False,
        required_conditions: str | Iterable[str] = (),
        mutations: Mutation[ContentMutator] | Iterable[Mutation[ContentMutator]] = (),
        converging_status: ConvergingHandler | None = None,
        grace_status: GraceHandler | None = None,
        suspend: Callable[[ContentMutator], None] | None = None,
        suspension_status: SuspensionHandler | None = None,
        delete_on_suspend: bool = False,
        **common: Unpack[CommonOptions],
    ) -> None:
        self.is_cluster_scoped = cluster_scoped
        required = (required_conditions,) if isinstance(required_conditions, str) else tuple(required_conditions)

        def converging(live: Object, operation: Operation) -> Convergence:
            return convergence_by_kstatus(live, required)

        def grace(live: Object) -> Grace:
            return grace_by_kstatus(live, required)

        super().__init__(
            obj,
            mutations=mutations,
            converging_status=converging_status or converging,
            grace_status=grace_status or grace,
            suspend=suspend,
            suspension_status=suspension_status,
            delete_on_suspend=delete_on_suspend,
            **common,
        )
        self.errors: tuple[str, ...] = (*self.errors, *_validate_condition_types(required))

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return the convergence by kstatus, without required conditions."""
        return convergence_by_kstatus(live)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return the grace by kstatus, without required conditions."""
        return grace_by_kstatus(live)


def _validate_condition_types(condition_types: Iterable[object]) -> Iterator[str]:
    for condition_type in condition_types:
        if not isinstance(condition_type, str) or not condition_type:
            yield f"required_conditions: expected condition types such as 'Ready', found {condition_type!r}"

"""Custom: an object of any kind whose status follows the common conventions, judged without any code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives.generic_objects import ContentMutator
from konverge.primitives.kind_categories import ConvergingHandler, GraceHandler, IntegrationKind, SuspensionHandler
from konverge.primitives.kstatus import convergence_by_kstatus, grace_by_kstatus
from konverge.primitives.primitive import CommonOptions, DesiredObject
from konverge.primitives.resource_protocol import Convergence, Grace, Operation

__all__ = ["Custom"]


class Custom(IntegrationKind[ContentMutator]):
    """An object of any kind, ready when its own controller says so in the usual way (`konverge.primitives.kstatus`).

    An integration: what the object stands for is another controller's work. Its kind's own words for being suspended
    are not known, so suspension changes nothing unless `suspend` says what; nor does it delete.

    Args:
        obj: The desired baseline, with apiVersion and kind; copied.
        cluster_scoped: The kind has no namespaces.
        required_conditions: One type of condition or many that must be True before the object is ready, and that are
            waited for where they are absent, such as ``"Ready"`` or ``("Synced", "Ready")``. Without one, an object
            on which nobody has reported yet is ready.
        mutations: One or many, in order.
        converging_status: Instead of kstatus.
        grace_status: Instead of kstatus.
        suspend: Records the edits that suspend it; none by default.
        suspension_status: How far it is suspended; by default at once.
        delete_on_suspend: Suspension ends in deletion.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
        self.errors += tuple(_validate_condition_types(required))

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """By kstatus, without required conditions."""
        return convergence_by_kstatus(live)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """By kstatus, without required conditions."""
        return grace_by_kstatus(live)


def _validate_condition_types(condition_types: Iterable[object]) -> Iterator[str]:
    for found in condition_types:
        if not isinstance(found, str) or not found:
            yield f"required_conditions: expected types of conditions such as 'Ready', found {found!r}"

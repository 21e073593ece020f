"""Gateway: an integration, because another controller makes it listen."""

from __future__ import annotations

from collections.abc import Iterator

from konverge.kube import GroupVersionKind, Object, find_condition
from konverge.primitives.categories import IntegrationKind
from konverge.primitives.gateway_api import GATEWAY_GROUP, Finding, judged, shortcomings, worst
from konverge.primitives.generic import ContentMutator
from konverge.primitives.lifecycle import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.reading import items_at, text_at
from konverge.primitives.reported import generation_of, reported, terminating

__all__ = ["Gateway"]


class Gateway(IntegrationKind[ContentMutator]):
    """A ``gateway.networking.k8s.io/v1`` Gateway. Suspension leaves it in place, with its addresses."""

    gvk = GroupVersionKind(GATEWAY_GROUP, "v1", "Gateway")

    def new_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when it is accepted and programmed by its latest spec, and no listener reports the contrary."""
        return Convergence(*_judged(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down unless it is programmed; Degraded when it is, for a part of its listeners or an older spec."""
        status, reason = _judged(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        programmed = find_condition(live, "Programmed")
        serves = programmed is not None and programmed.status == "True" and not terminating(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Gateway stays in place while suspended")


def _judged(live: Object) -> Finding:
    if why := terminating(live):
        return ConvergingStatus.OPERATION_PENDING, why
    generation = generation_of(live)
    findings = [*shortcomings(live, ("Accepted", "Programmed"), generation), *_listeners(live, generation)]
    return worst(findings, "Gateway is programmed")


def _listeners(live: Object, generation: int) -> Iterator[Finding]:
    """What listeners report against themselves; what they leave out, the Gateway's own conditions answer for."""
    for listener in items_at(live, "status", "listeners"):
        where = f"listener {text_at(listener, 'name')}: "
        for condition_type in ("Accepted", "Programmed", "ResolvedRefs"):
            found = reported({"status": listener}, condition_type, generation)
            if found.is_present and found.status != "True":
                yield judged(found, where)
        conflicted = reported({"status": listener}, "Conflicted", generation)
        if conflicted.status == "True":
            yield ConvergingStatus.OPERATION_FAILING, f"{where}{conflicted.told}"

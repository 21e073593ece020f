"""Gateway: an integration, because another controller implements its listeners."""

from __future__ import annotations

from collections.abc import Iterator

from konverge._internal.kube import GroupVersionKind, Object, find_condition
from konverge._internal.primitives.field_access import read_items, read_text
from konverge._internal.primitives.gateway_api import (
    GATEWAY_GROUP,
    ConditionFinding,
    evaluate_condition,
    find_unmet_conditions,
    select_worst,
)
from konverge._internal.primitives.generic_objects import ContentMutator
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge._internal.primitives.status_conditions import describe_termination, read_condition, read_generation

__all__ = ["Gateway"]


class Gateway(IntegrationKind[ContentMutator]):
    """A ``gateway.networking.k8s.io/v1`` Gateway. Suspension leaves it in place, with its addresses."""

    gvk: GroupVersionKind = GroupVersionKind(GATEWAY_GROUP, "v1", "Gateway")

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when the latest spec is accepted and programmed, and no listener reports otherwise."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down unless it is programmed, and Degraded if only some listeners or an older spec are."""
        status, reason = _evaluate_status(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        programmed = find_condition(live, "Programmed")
        serves = programmed is not None and programmed.status == "True" and not describe_termination(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Gateway stays in place while suspended")


def _evaluate_status(live: Object) -> ConditionFinding:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, why
    generation = read_generation(live)
    findings = [
        *find_unmet_conditions(live, ("Accepted", "Programmed"), generation),
        *_find_listener_findings(live, generation),
    ]
    return select_worst(findings, "Gateway is programmed")


def _find_listener_findings(live: Object, generation: int) -> Iterator[ConditionFinding]:
    """Yield the failures that listeners report; the Gateway's own conditions cover what listeners omit."""
    for listener in read_items(live, "status", "listeners"):
        prefix = f"listener {read_text(listener, 'name')}: "
        for condition_type in ("Accepted", "Programmed", "ResolvedRefs"):
            condition = read_condition({"status": listener}, condition_type, generation)
            if condition.is_present and condition.status != "True":
                yield evaluate_condition(condition, prefix)
        conflicted = read_condition({"status": listener}, "Conflicted", generation)
        if conflicted.status == "True":
            yield ConvergingStatus.OPERATION_FAILING, f"{prefix}{conflicted.description}"

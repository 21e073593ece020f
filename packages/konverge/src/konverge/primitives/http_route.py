"""HTTPRoute: an integration, because the gateways that it names decide on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, find_condition
from konverge.primitives.field_access import read_items, read_text
from konverge.primitives.gateway_api import GATEWAY_GROUP, ConditionFinding, find_unmet_conditions, select_worst
from konverge.primitives.generic_objects import ContentMutator
from konverge.primitives.kind_categories import IntegrationKind
from konverge.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)
from konverge.primitives.status_conditions import describe_termination, read_generation

__all__ = ["HTTPRoute"]


class HTTPRoute(IntegrationKind[ContentMutator]):
    """A ``gateway.networking.k8s.io/v1`` HTTPRoute. Suspension leaves it in place: without backends it answers 5xx."""

    gvk = GroupVersionKind(GATEWAY_GROUP, "v1", "HTTPRoute")

    def create_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when each parent has accepted the latest spec and found what it refers to."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no parent has accepted it; Degraded when one has, though not all of it or an older spec."""
        status, reason = _evaluate_status(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        reports = [report for _, found in _iter_parents(live) for report in found]
        accepted = [find_condition({"status": report}, "Accepted") for report in reports]
        serves = any(each is not None and each.status == "True" for each in accepted) and not describe_termination(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "HTTPRoute stays in place while suspended")


def _evaluate_status(live: Object) -> ConditionFinding:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, why
    parents = list(_iter_parents(live))
    if not parents:
        return ConvergingStatus.OPERATION_PENDING, "Waiting for a parent: spec.parentRefs is empty"
    return select_worst(
        (each for parent in parents for each in _find_parent_findings(*parent, live)), "HTTPRoute is accepted"
    )


def _find_parent_findings(name: str, reports: list[Mapping[str, Any]], live: Object) -> Iterator[ConditionFinding]:
    if not reports:
        yield ConvergingStatus.OPERATION_PENDING, f"Waiting for {name} to report on the route"
    for report in reports:
        yield from find_unmet_conditions(
            {"status": report}, ("Accepted", "ResolvedRefs"), read_generation(live), f"{name}: "
        )


def _iter_parents(live: Object) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Each parent that the spec names, with what controllers report for it; there may be several.

    A report for a parent that the spec no longer names is left out: its controller may be gone, and the report stay.
    """
    namespace = read_text(live, "metadata", "namespace")
    reports = read_items(live, "status", "parents")
    for reference in read_items(live, "spec", "parentRefs"):
        wanted = _normalize_reference(reference, namespace)
        found = [report for report in reports if _normalize_reference(report.get("parentRef"), namespace) == wanted]
        yield f"{read_text(reference, 'kind') or 'Gateway'} {read_text(reference, 'name')}", found


def _normalize_reference(reference: object, namespace: str) -> tuple[Any, ...]:
    """A reference with the API's defaults."""
    fields = reference if isinstance(reference, Mapping) else {}
    return (
        fields.get("group", GATEWAY_GROUP),
        fields.get("kind", "Gateway"),
        fields.get("namespace", namespace),
        fields.get("name"),
        fields.get("sectionName"),
        fields.get("port"),
    )

"""HTTPRoute: an integration, because the gateways that it refers to decide whether to accept it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, find_condition
from konverge._internal.primitives.field_access import read_items, read_text
from konverge._internal.primitives.gateway_api import (
    GATEWAY_GROUP,
    ConditionFinding,
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
from konverge._internal.primitives.status_conditions import describe_termination, read_generation

__all__ = ["HTTPRoute"]


class HTTPRoute(IntegrationKind[ContentMutator]):
    """A ``gateway.networking.k8s.io/v1`` HTTPRoute. Suspension keeps it: gateways respond with 5xx without backends."""

    gvk: GroupVersionKind = GroupVersionKind(GATEWAY_GROUP, "v1", "HTTPRoute")

    def create_mutator(self) -> ContentMutator:
        """Return a new mutator for the callback of one mutation."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational when each parent has accepted the latest spec and resolved its references."""
        return Convergence(*_evaluate_status(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no parent has accepted it, and Degraded if one has, perhaps in part or an older spec."""
        status, reason = _evaluate_status(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        reports = [report for _, parent_reports in _iter_parents(live) for report in parent_reports]
        accepted = [find_condition({"status": report}, "Accepted") for report in reports]
        is_accepted = any(condition is not None and condition.status == "True" for condition in accepted)
        serves = is_accepted and not describe_termination(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "HTTPRoute stays in place while suspended")


def _evaluate_status(live: Object) -> ConditionFinding:
    if why := describe_termination(live):
        return ConvergingStatus.OPERATION_PENDING, why
    parents = list(_iter_parents(live))
    if not parents:
        return ConvergingStatus.OPERATION_PENDING, "Waiting for a parent: spec.parentRefs is empty"
    return select_worst(
        (finding for parent in parents for finding in _find_parent_findings(*parent, live)), "HTTPRoute is accepted"
    )


def _find_parent_findings(name: str, reports: list[Mapping[str, Any]], live: Object) -> Iterator[ConditionFinding]:
    if not reports:
        yield ConvergingStatus.OPERATION_PENDING, f"Waiting for {name} to report on the route"
    for report in reports:
        yield from find_unmet_conditions(
            {"status": report}, ("Accepted", "ResolvedRefs"), read_generation(live), f"{name}: "
        )


def _iter_parents(live: Object) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Yield each parent of the spec with the reports of its controllers; a parent may have several.

    Reports for parents that are no longer in the spec are ignored: they stay if their controller is gone.
    """
    namespace = read_text(live, "metadata", "namespace")
    reports = read_items(live, "status", "parents")
    for reference in read_items(live, "spec", "parentRefs"):
        parent = _normalize_reference(reference, namespace)
        matching = [report for report in reports if _normalize_reference(report.get("parentRef"), namespace) == parent]
        yield f"{read_text(reference, 'kind') or 'Gateway'} {read_text(reference, 'name')}", matching


def _normalize_reference(reference: object, namespace: str) -> tuple[Any, ...]:
    """Return a reference with the API's defaults."""
    fields = reference if isinstance(reference, Mapping) else {}
    return (
        fields.get("group", GATEWAY_GROUP),
        fields.get("kind", "Gateway"),
        fields.get("namespace", namespace),
        fields.get("name"),
        fields.get("sectionName"),
        fields.get("port"),
    )

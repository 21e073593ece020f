"""HTTPRoute: an integration, because the gateways that it names decide on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object, find_condition
from konverge.primitives.categories import IntegrationKind
from konverge.primitives.gateway_api import GATEWAY_GROUP, Finding, shortcomings, worst
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
from konverge.primitives.reported import generation_of, terminating

__all__ = ["HTTPRoute"]


class HTTPRoute(IntegrationKind[ContentMutator]):
    """A ``gateway.networking.k8s.io/v1`` HTTPRoute. Suspension leaves it in place: without backends it answers 5xx."""

    gvk = GroupVersionKind(GATEWAY_GROUP, "v1", "HTTPRoute")

    def new_mutator(self) -> ContentMutator:
        """What the callbacks of the mutations get."""
        return ContentMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Operational when each parent has accepted the latest spec and found what it refers to."""
        return Convergence(*_judged(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no parent has accepted it; Degraded when one has, though not all of it or an older spec."""
        status, reason = _judged(live)
        if status is ConvergingStatus.OPERATIONAL:
            return Grace(GraceStatus.HEALTHY, reason)
        reports = [report for _, found in _parents(live) for report in found]
        accepted = [find_condition({"status": report}, "Accepted") for report in reports]
        serves = any(each is not None and each.status == "True" for each in accepted) and not terminating(live)
        return Grace(GraceStatus.DEGRADED if serves else GraceStatus.DOWN, reason)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "HTTPRoute stays in place while suspended")


def _judged(live: Object) -> Finding:
    if why := terminating(live):
        return ConvergingStatus.OPERATION_PENDING, why
    parents = list(_parents(live))
    if not parents:
        return ConvergingStatus.OPERATION_PENDING, "Waiting for a parent: spec.parentRefs is empty"
    return worst((each for parent in parents for each in _of_parent(*parent, live)), "HTTPRoute is accepted")


def _of_parent(name: str, reports: list[Mapping[str, Any]], live: Object) -> Iterator[Finding]:
    if not reports:
        yield ConvergingStatus.OPERATION_PENDING, f"Waiting for {name} to report on the route"
    for report in reports:
        yield from shortcomings({"status": report}, ("Accepted", "ResolvedRefs"), generation_of(live), f"{name}: ")


def _parents(live: Object) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Each parent that the spec names, with what controllers report for it; there may be several.

    A report for a parent that the spec no longer names is left out: its controller may be gone, and the report stay.
    """
    namespace = text_at(live, "metadata", "namespace")
    reports = items_at(live, "status", "parents")
    for reference in items_at(live, "spec", "parentRefs"):
        wanted = _reference(reference, namespace)
        found = [report for report in reports if _reference(report.get("parentRef"), namespace) == wanted]
        yield f"{text_at(reference, 'kind') or 'Gateway'} {text_at(reference, 'name')}", found


def _reference(reference: object, namespace: str) -> tuple[Any, ...]:
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

"""Format of a kind of requests: the lifecycle uses only this interface, and no fields of a kind.

There are two formats: konverge's own kind (`requests.konverge_requests`) and Tekton's
(`requests.tekton_requests`). All writes are merge patches of the status. Pure.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from konverge._internal.kube import Condition, GroupVersionKind, Object, find_condition, parse_time, set_condition
from konverge_resolution._internal.engine import ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import Reference
from konverge_resolution._internal.requests.request_lifecycle import RequestPhase, RequestState

__all__ = [
    "CONTENT_PLACEHOLDER",
    "IN_PROGRESS",
    "RESOLVED",
    "SUCCEEDED",
    "RequestFormat",
    "RequestSpec",
    "build_request_state",
    "drop_content",
    "format_service_account",
    "get_status",
    "merge_condition",
    "parse_api_time",
]

SUCCEEDED = "Succeeded"
"""Only condition of a request."""

IN_PROGRESS = "ResolutionInProgress"
"""Reason of the condition until the request ends."""

RESOLVED = "Resolved"
"""Reason of a resolved request in konverge's condition, and in the metrics of both kinds."""

_FARTHEST_YEAR = 9000

CONTENT_PLACEHOLDER = "-"
"""Placeholder for existing content of a request in the cache."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """Parsed spec of a request.

    Args:
        resolver: The name of the resolver.
        reference: The reference; None if the spec is invalid.
        user: The Kubernetes user name of the requester.
        error: The error of an invalid spec; None if it is valid.
    """

    resolver: str
    reference: Reference | None = None
    user: str = ""
    error: ResolutionError | None = None


class RequestFormat(Protocol):
    """Format of one kind of requests.

    Attributes:
        gvk: The kind.
        separates_content: Whether consumers support content in another object.
    """

    gvk: GroupVersionKind
    separates_content: bool

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """Parse the spec; the result contains its error, if any."""

    def parse_state(self, obj: Object) -> RequestState:
        """Return the state of the request."""

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """Build the status of a request that has started."""

    def build_success_status(
        self, obj: Object, result: ResolutionResult, started: datetime, now: datetime, *, config_map_name: str = ""
    ) -> Object:
        """Build the status of a request with its result.

        Args:
            obj: The request.
            result: The content and its record.
            started: The time when the engine received it.
            now: The current time.
            config_map_name: The name of the ConfigMap with the content; empty when the status has the content.
        """

    def build_failure_status(
        self, obj: Object, error: ResolutionError, started: datetime | None, now: datetime
    ) -> Object:
        """Build the status of a failed request."""

    def build_completed_status(self, obj: Object, now: datetime) -> Object:
        """Build the status of a request that has content but no condition for it yet."""


def get_status(obj: Object) -> dict[str, Any]:
    """Return the status of an object; empty without one."""
    status = obj.get("status")
    return status if isinstance(status, dict) else {}


def parse_api_time(text: object) -> datetime | None:
    """Parse a time of the API; None for anything else, and for a time so late that an addition could overflow.

    A user who may write a status can write any time, and that must not stop the reconciles of other requests.
    """
    if not isinstance(text, str):
        return None
    try:
        time = parse_time(text)
    except (ValueError, OverflowError):
        return None
    return time if time.year < _FARTHEST_YEAR else None


def build_request_state(obj: Object, *, deadline: object, finished: object) -> RequestState:
    """Build the state of a request from its condition and times.

    Args:
        obj: The request.
        deadline: The deadline as its kind stores it; any value.
        finished: The time of its end as its kind stores it; the condition's transition time replaces an invalid value.
    """
    condition = find_condition(obj, SUCCEEDED)
    status = "" if condition is None else condition.status
    phase = RequestPhase.DONE if status in ("True", "False") else RequestPhase.PENDING if status else RequestPhase.NEW
    created = parse_api_time(obj["metadata"].get("creationTimestamp"))
    assert created is not None, "the API server sets the creation time"
    ended = parse_api_time(finished) or (None if condition is None else condition.last_transition_time)
    return RequestState(
        phase=phase,
        created=created,
        deadline=parse_api_time(deadline),
        finished=ended if phase is RequestPhase.DONE else None,
        has_result=bool(get_status(obj).get("data") or get_status(obj).get("dataRef")),
    )


def merge_condition(obj: Object, condition: Condition, now: datetime) -> list[Any]:
    """Return all conditions of a request with this one; those of other controllers stay."""
    listed = get_status(obj).get("conditions")
    copied: Object = {"status": {"conditions": copy.deepcopy(listed) if isinstance(listed, list) else []}}
    set_condition(copied, condition, now.replace(microsecond=0))
    conditions: list[Any] = copied["status"]["conditions"]
    return conditions


def format_service_account(namespace: str, name: str) -> str:
    """Return the Kubernetes user name of a ServiceAccount."""
    return f"system:serviceaccount:{namespace}:{name}"


def drop_content(obj: Object) -> Object:
    """Return a request without its content for the cache: a thousand finished ones may have a gigabyte of content."""
    obj.get("metadata", {}).pop("managedFields", None)
    status = obj.get("status")
    if isinstance(status, dict) and status.get("data"):
        status["data"] = CONTENT_PLACEHOLDER
    return obj

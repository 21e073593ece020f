"""How a kind of request is read and written: what the lifecycle needs of it, and nothing of its fields.

There are two: konverge's own kind (`konverge_resolution.requests.konverge_requests`) and Tekton's (`.tekton`).
Everything that is
written is a merge patch of the status. Pure.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from konverge.kube import Condition, GroupVersionKind, Object, find_condition, parse_time, set_condition
from konverge_resolution.engine import ResolutionResult
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reference import Reference
from konverge_resolution.requests.request_lifecycle import RequestPhase, RequestState

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
"""The one condition of a request."""

IN_PROGRESS = "ResolutionInProgress"
"""The condition's reason until the end."""

RESOLVED = "Resolved"
"""The reason of one that has its content, in konverge's condition and in the metrics of all."""

_FARTHEST_YEAR = 9000

CONTENT_PLACEHOLDER = "-"
"""What stands for the content of a request in this process's memory: it has some."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What a request asks for.

    Args:
        resolver: The resolver's name.
        reference: The reference; None when there is a mistake.
        user: For whom, as Kubernetes names users.
        error: Why it is no reference; None when it is.
    """

    resolver: str
    reference: Reference | None = None
    user: str = ""
    error: ResolutionError | None = None


class RequestFormat(Protocol):
    """One kind of request.

    Attributes:
        gvk: The kind.
        separates_content: Whether consumers know of content that is in another object.
    """

    gvk: GroupVersionKind
    separates_content: bool

    def parse_spec(self, obj: Object, default_resolver: str) -> RequestSpec:
        """What it asks for; whatever is wrong with it is in the answer."""

    def parse_state(self, obj: Object) -> RequestState:
        """How far it is."""

    def build_pending_status(self, obj: Object, resolver: str, deadline: datetime, now: datetime) -> Object:
        """The status of a request that has begun."""

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
        """The status of a request without one."""

    def build_completed_status(self, obj: Object, now: datetime) -> Object:
        """The status of a request that has content and does not say so yet."""


def get_status(obj: Object) -> dict[str, Any]:
    """The status, empty when there is none."""
    found = obj.get("status")
    return found if isinstance(found, dict) else {}


def parse_api_time(text: object) -> datetime | None:
    """A time as the API writes it; None for anything else, and for one so late that adding to it could overflow.

    Whoever may write a status may write any time there, and it must not stop the passes of all other requests.
    """
    if not isinstance(text, str):
        return None
    try:
        found = parse_time(text)
    except (ValueError, OverflowError):
        return None
    return found if found.year < _FARTHEST_YEAR else None


def build_request_state(obj: Object, *, deadline: object, finished: object) -> RequestState:
    """How far a request is.

    Args:
        obj: The request.
        deadline: Until when it has to end, as its kind says that; anything.
        finished: When it ended, as its kind says that; its condition says it where this is no time.
    """
    condition = find_condition(obj, SUCCEEDED)
    status = "" if condition is None else condition.status
    phase = RequestPhase.DONE if status in ("True", "False") else RequestPhase.PENDING if status else RequestPhase.NEW
    created = parse_api_time(obj["metadata"].get("creationTimestamp"))
    assert created is not None, "a server stamps what it creates"
    ended = parse_api_time(finished) or (None if condition is None else condition.last_transition_time)
    return RequestState(
        phase=phase,
        created=created,
        deadline=parse_api_time(deadline),
        finished=ended if phase is RequestPhase.DONE else None,
        has_result=bool(get_status(obj).get("data") or get_status(obj).get("dataRef")),
    )


def merge_condition(obj: Object, condition: Condition, now: datetime) -> list[Any]:
    """All conditions of a request, with this one; those of others stay."""
    listed = get_status(obj).get("conditions")
    staged: Object = {"status": {"conditions": copy.deepcopy(listed) if isinstance(listed, list) else []}}
    set_condition(staged, condition, now.replace(microsecond=0))
    found: list[Any] = staged["status"]["conditions"]
    return found


def format_service_account(namespace: str, name: str) -> str:
    """A ServiceAccount as Kubernetes names users."""
    return f"system:serviceaccount:{namespace}:{name}"


def drop_content(obj: Object) -> Object:
    """A request as it is held in memory: a thousand finished ones may have a gigabyte of content."""
    obj.get("metadata", {}).pop("managedFields", None)
    status = obj.get("status")
    if isinstance(status, dict) and status.get("data"):
        status["data"] = CONTENT_PLACEHOLDER
    return obj

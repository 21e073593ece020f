"""The cause that the status of a pod shows for not being ready. Pure.

A cause stays the same while the situation does: it contains no restart count and no backoff, which change with each
attempt. Otherwise each attempt would change the condition of the owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object, find_condition
from konverge._internal.message_text import shorten
from konverge._internal.primitives.field_access import read_boolean, read_integer, read_items, read_text

__all__ = ["describe_pod", "format_cause", "is_ready", "is_unscheduled", "list_claim_names", "summarize_pods"]

_MAX_CAUSE_LENGTH = 240
_CRASH_LOOP = "CrashLoopBackOff"
# The kubelet alternates between the two with each attempt.
_PULL_REASONS = frozenset({"ErrImagePull", "ImagePullBackOff"})
_PULL_ERROR = "ErrImagePull: "
# Reasons of a container that starts as expected. If one of them stays, only an event has the cause.
_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})


def format_cause(*parts: str) -> str:
    """Join the parts of a cause with colons, on one line and shortened."""
    return shorten(": ".join(filter(None, (" ".join(part.split()) for part in parts))), _MAX_CAUSE_LENGTH)


def is_ready(pod: Object) -> bool:
    """Return True if the pod is ready, or has ended successfully."""
    condition = find_condition(pod, "Ready")
    return (condition is not None and condition.status == "True") or read_text(pod, "status", "phase") == "Succeeded"


def is_unscheduled(pod: Object) -> bool:
    """Return True if the scheduler has found no node for the pod."""
    condition = find_condition(pod, "PodScheduled")
    return condition is not None and condition.status == "False"


def describe_pod(pod: Object) -> str:
    """Return the cause that the status of the pod shows; empty if it shows none.

    Args:
        pod: A pod that is not ready.
    """
    if read_text(pod, "metadata", "deletionTimestamp"):
        holders = pod["metadata"].get("finalizers")
        listed = ", ".join(map(str, holders)) if isinstance(holders, list) else ""
        return format_cause(f"it is being deleted and has the finalizer {listed}") if listed else ""
    if reason := read_text(pod, "status", "reason"):
        return format_cause(reason, read_text(pod, "status", "message"))
    if is_unscheduled(pod):
        scheduled = find_condition(pod, "PodScheduled")
        assert scheduled is not None
        return format_cause(scheduled.reason, scheduled.message)
    return next(filter(None, map(_describe_container, _iter_container_statuses(pod))), "")


def _iter_container_statuses(pod: Object) -> Iterator[Mapping[str, Any]]:
    yield from read_items(pod, "status", "initContainerStatuses")
    yield from read_items(pod, "status", "containerStatuses")


def _describe_container(container: Mapping[str, Any]) -> str:
    subject = f"container {read_text(container, 'name')}"
    reason = read_text(container, "state", "waiting", "reason")
    message = read_text(container, "state", "waiting", "message")
    if reason in _PULL_REASONS:
        # The message of the backoff repeats the error of the last attempt.
        error = message.partition(_PULL_ERROR)[2] if _PULL_ERROR in message else message
        if error.startswith("Back-off pulling image"):
            error = ""
        return format_cause(f'{subject}: ImagePullBackOff, image "{read_text(container, "image")}"', error)
    last_exit = _describe_exit(container, "lastState")
    if reason == _CRASH_LOOP:
        return format_cause(subject, ", ".join(filter(None, (_CRASH_LOOP, last_exit and f"last {last_exit}"))))
    if reason not in _STARTING:
        return format_cause(subject, reason, message)
    if (present_exit := _describe_exit(container, "state")) and read_integer(
        container, "state", "terminated", "exitCode"
    ):
        return format_cause(subject, present_exit)
    if last_exit and read_integer(container, "restartCount") and not read_boolean(container, "ready"):
        return format_cause(subject, f"restarted after {last_exit}")
    return ""


def _describe_exit(container: Mapping[str, Any], state: str) -> str:
    """Return the end of the container in this state, for example ``exit code 137 (OOMKilled)``; empty without one.

    The message of an ended container is its own output, and not shown.
    """
    entry = container.get(state)
    ended = entry.get("terminated") if isinstance(entry, Mapping) else None
    if not isinstance(ended, Mapping):
        return ""
    reason = read_text(ended, "reason")
    return f"exit code {read_integer(ended, 'exitCode')}" + (f" ({reason})" if reason else "")


def list_claim_names(pod: Object) -> list[str]:
    """Return the names of the pod's PersistentVolumeClaims, those of ephemeral volumes included."""
    names = []
    for volume in read_items(pod, "spec", "volumes"):
        if name := read_text(volume, "persistentVolumeClaim", "claimName"):
            names.append(name)
        elif isinstance(volume.get("ephemeral"), Mapping):
            names.append(f"{read_text(pod, 'metadata', 'name')}-{read_text(volume, 'name')}")
    return names


def summarize_pods(causes: Mapping[str, str]) -> list[str]:
    """Return each cause once, with a pod and the number of further pods; the most frequent cause comes first.

    Args:
        causes: The cause of each pod, by name; an empty one does not count.
    """
    names_by_cause: dict[str, list[str]] = {}
    for name, cause in sorted(causes.items()):
        if cause:
            names_by_cause.setdefault(cause, []).append(name)
    ordered = sorted(names_by_cause.items(), key=lambda entry: -len(entry[1]))
    return [
        f"Pod {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {cause}" for cause, names in ordered
    ]

"""Printers of pods. The status column is one word from many fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge._internal.kube import Object, parse_time
from konverge_cluster._internal.embedded.tables.printers import (
    NONE,
    TablePrinter,
    build_printer,
    format_age,
    format_duration,
    get_field,
)

__all__ = ["POD"]


@dataclass
class _PodSummary:
    """The columns of a pod, accumulated over its containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def add_restarts(self, status: Mapping[str, Any]) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = get_field(status, "lastState", "terminated", "finishedAt")
        if isinstance(ended, str):
            moment = parse_time(ended)
            self.last_restart = moment if self.last_restart is None else max(self.last_restart, moment)


def _build_cells(pod: Object, now: datetime) -> list[Any]:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {entry["name"] for entry in spec.get("initContainers") or () if entry.get("restartPolicy") == "Always"}
    summary = _summarize(pod, status, sidecars)
    total = len(spec.get("containers") or ()) + len(sidecars)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart is not None:
        restarts = f"{restarts} ({format_duration(now - summary.last_restart)} ago)"
    return [
        pod["metadata"]["name"],
        f"{summary.ready}/{total}",
        summary.reason,
        restarts,
        format_age(pod, now),
        get_field(status, "podIP") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _format_readiness_gates(spec, status),
    ]


def _summarize(pod: Object, status: Mapping[str, Any], sidecars: set[str]) -> _PodSummary:
    phase = status.get("phase") or ""
    conditions = {entry.get("type"): entry for entry in status.get("conditions") or ()}
    summary = _PodSummary(status.get("reason") or phase)
    if get_field(conditions.get("PodScheduled"), "reason") == "SchedulingGated":
        summary.reason = "SchedulingGated"
    initializing = _add_init_containers(summary, pod, status, sidecars)
    if not initializing or get_field(conditions.get("Initialized"), "status") == "True":
        if not sidecars:
            summary.restarts, summary.last_restart = 0, None
        is_ready = get_field(conditions.get("Ready"), "status") == "True"
        _add_containers(summary, status.get("containerStatuses") or (), is_ready=is_ready)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            summary.reason = "Unknown"
        elif phase not in ("Succeeded", "Failed"):
            summary.reason = "Terminating"
    return summary


def _add_init_containers(summary: _PodSummary, pod: Object, status: Mapping[str, Any], sidecars: set[str]) -> bool:
    """Add the init containers up to the first unfinished one; return True if there is an unfinished one."""
    total = len(get_field(pod, "spec", "initContainers", default=()))
    for index, container_status in enumerate(status.get("initContainerStatuses") or ()):
        summary.add_restarts(container_status)
        state = container_status.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if container_status.get("name") in sidecars and container_status.get("started"):
            summary.ready += bool(container_status.get("ready"))
            continue
        if ended is not None:
            summary.reason = f"Init:{_describe_termination(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            summary.reason = f"Init:{waiting['reason']}"
        else:
            summary.reason = f"Init:{index}/{total}"
        return True
    return False


def _add_containers(summary: _PodSummary, statuses: Sequence[Mapping[str, Any]], *, is_ready: bool) -> None:
    is_running, failure = False, ""
    for container_status in reversed(statuses):
        summary.add_restarts(container_status)
        state = container_status.get("state") or {}
        ended = state.get("terminated")
        if get_field(state, "waiting", "reason"):
            summary.reason = state["waiting"]["reason"]
        elif ended is not None:
            summary.reason = _describe_termination(ended)
            failure = summary.reason if ended.get("exitCode") else failure
        elif container_status.get("ready") and state.get("running") is not None:
            is_running = True
            summary.ready += 1
    if summary.reason == "Completed":
        if is_running:
            summary.reason = "Running" if is_ready else failure or "NotReady"
        elif failure:
            summary.reason = failure


def _describe_termination(ended: Mapping[str, Any]) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _format_readiness_gates(spec: Mapping[str, Any], status: Mapping[str, Any]) -> str:
    gates = spec.get("readinessGates") or ()
    if not gates:
        return NONE
    passed = {entry.get("type") for entry in status.get("conditions") or () if entry.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in passed for gate in gates)}/{len(gates)}"


POD: TablePrinter = build_printer(
    "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates", _build_cells
)

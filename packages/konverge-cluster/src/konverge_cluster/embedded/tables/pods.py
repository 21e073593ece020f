"""How pods are printed. Their status is a word that the server finds in many places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge.kube import Object, parse_time
from konverge_cluster.embedded.tables.printers import (
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
    """What is known of a pod after so many of its containers."""

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
    sidecars = {each["name"] for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}
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
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
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
    """Take in the init containers up to the first that has not done its work; tell whether there is one."""
    total = len(get_field(pod, "spec", "initContainers", default=()))
    for index, each in enumerate(status.get("initContainerStatuses") or ()):
        summary.add_restarts(each)
        state = each.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if each.get("name") in sidecars and each.get("started"):
            summary.ready += bool(each.get("ready"))
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
    for each in reversed(statuses):
        summary.add_restarts(each)
        state = each.get("state") or {}
        ended = state.get("terminated")
        if get_field(state, "waiting", "reason"):
            summary.reason = state["waiting"]["reason"]
        elif ended is not None:
            summary.reason = _describe_termination(ended)
            failure = summary.reason if ended.get("exitCode") else failure
        elif each.get("ready") and state.get("running") is not None:
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
    passed = {each.get("type") for each in status.get("conditions") or () if each.get("status") == "True"}
    return f"{sum(gate.get('conditionType') in passed for gate in gates)}/{len(gates)}"


POD: TablePrinter = build_printer(
    "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates", _build_cells
)

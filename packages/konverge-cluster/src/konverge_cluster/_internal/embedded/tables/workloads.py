"""Printers of the workload kinds, which create pods."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge._internal.kube import Object, find_controller, parse_time
from konverge_cluster._internal.embedded.tables.printers import (
    NONE,
    TablePrinter,
    build_printer,
    format_age,
    format_containers_and_images,
    format_duration,
    format_labels,
    format_selector,
    format_since,
    get_field,
)

__all__ = ["WORKLOADS"]

# The status of a Job is the first true condition of these, unless it is being deleted.
_JOB_ENDS = {"Complete": "Complete", "Failed": "Failed"}
_JOB_STATES = {"Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet"}


def _get_count(obj: Object, *path: str) -> int:
    count = get_field(obj, *path, default=0)
    return count if isinstance(count, int) else 0


def _deployment(obj: Object, now: datetime) -> list[Any]:
    desired, ready = _get_count(obj, "spec", "replicas"), _get_count(obj, "status", "readyReplicas")
    return [
        obj["metadata"]["name"],
        f"{ready}/{desired}",
        _get_count(obj, "status", "updatedReplicas"),
        _get_count(obj, "status", "availableReplicas"),
        format_age(obj, now),
        *format_containers_and_images(get_field(obj, "spec", "template")),
        format_selector(get_field(obj, "spec", "selector")),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"]["name"],
        _get_count(obj, "spec", "replicas"),
        _get_count(obj, "status", "replicas"),
        _get_count(obj, "status", "readyReplicas"),
        format_age(obj, now),
        *format_containers_and_images(get_field(obj, "spec", "template")),
        format_selector(get_field(obj, "spec", "selector")),
    ]


def _stateful_set(obj: Object, now: datetime) -> list[Any]:
    desired, ready = _get_count(obj, "spec", "replicas"), _get_count(obj, "status", "readyReplicas")
    template = get_field(obj, "spec", "template")
    return [
        obj["metadata"]["name"],
        f"{ready}/{desired}",
        format_age(obj, now),
        *format_containers_and_images(template),
    ]


def _daemon_set(obj: Object, now: datetime) -> list[Any]:
    counts = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    return [
        obj["metadata"]["name"],
        *(_get_count(obj, "status", name) for name in counts),
        format_labels(get_field(obj, "spec", "template", "spec", "nodeSelector")),
        format_age(obj, now),
        *format_containers_and_images(get_field(obj, "spec", "template")),
        format_selector(get_field(obj, "spec", "selector")),
    ]


def _controller_revision(obj: Object, now: datetime) -> list[Any]:
    owner = find_controller(obj)
    controller = NONE
    if owner is not None:
        group, slash, _ = owner["apiVersion"].rpartition("/")
        kind = owner["kind"].lower() + (f".{group}" if slash else "")
        controller = f"{kind}/{owner['name']}"
    return [obj["metadata"]["name"], controller, obj.get("revision", 0), format_age(obj, now)]


def _job(obj: Object, now: datetime) -> list[Any]:
    done, desired = _get_count(obj, "status", "succeeded"), get_field(obj, "spec", "completions")
    if desired is not None:
        completions = f"{done}/{desired}"
    else:
        parallelism = _get_count(obj, "spec", "parallelism")
        completions = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        completions,
        _job_duration(obj.get("status") or {}, now),
        format_age(obj, now),
        *format_containers_and_images(get_field(obj, "spec", "template")),
        format_selector(get_field(obj, "spec", "selector")),
    ]


def _job_status(obj: Object) -> str:
    conditions = get_field(obj, "status", "conditions", default=())
    holding = {entry.get("type") for entry in conditions if entry.get("status") == "True"}
    for name, word in _JOB_ENDS.items():
        if name in holding:
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    return next((word for name, word in _JOB_STATES.items() if name in holding), "Running")


def _job_duration(status: Mapping[str, Any], now: datetime) -> str:
    if "startTime" not in status:
        return ""
    end = parse_time(status["completionTime"]) if "completionTime" in status else now
    return format_duration(end - parse_time(status["startTime"]))


def _cron_job(obj: Object, now: datetime) -> list[Any]:
    last = get_field(obj, "status", "lastScheduleTime")
    suspended = get_field(obj, "spec", "suspend")
    return [
        obj["metadata"]["name"],
        get_field(obj, "spec", "schedule", default=""),
        get_field(obj, "spec", "timeZone") or NONE,
        "<unset>" if suspended is None else str(suspended).capitalize(),
        len(get_field(obj, "status", "active", default=())),
        NONE if last is None else format_since(last, now),
        format_age(obj, now),
        *format_containers_and_images(get_field(obj, "spec", "jobTemplate", "spec", "template")),
        format_selector(get_field(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


_TEMPLATE = "+Containers, +Images"
WORKLOADS: Mapping[str, TablePrinter] = {
    "deployments.apps": build_printer(f"Name, Ready, Up-to-date, Available, Age, {_TEMPLATE}, +Selector", _deployment),
    "replicasets.apps": build_printer(f"Name, Desired#, Current#, Ready#, Age, {_TEMPLATE}, +Selector", _replica_set),
    "statefulsets.apps": build_printer(f"Name, Ready, Age, {_TEMPLATE}", _stateful_set),
    "daemonsets.apps": build_printer(
        f"Name, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, {_TEMPLATE}, +Selector",
        _daemon_set,
    ),
    "controllerrevisions.apps": build_printer("Name, Controller, Revision, Age", _controller_revision),
    "jobs.batch": build_printer(f"Name, Status, Completions, Duration, Age, {_TEMPLATE}, +Selector", _job),
    "cronjobs.batch": build_printer(
        f"Name, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age, {_TEMPLATE}, +Selector", _cron_job
    ),
}

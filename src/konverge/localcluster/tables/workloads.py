"""How the kinds that make pods are printed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from konverge.kube import Object, controller_of, parse_time
from konverge.localcluster.tables.printing import (
    NONE,
    Printed,
    age,
    containers_and_images,
    field,
    human_duration,
    labels_text,
    printed,
    selector_text,
    since,
)

__all__ = ["WORKLOADS"]

# A Job's status is the first of these conditions that holds, unless it is being deleted before.
_JOB_ENDS = {"Complete": "Complete", "Failed": "Failed"}
_JOB_STATES = {"Suspended": "Suspended", "FailureTarget": "FailureTarget", "SuccessCriteriaMet": "SuccessCriteriaMet"}


def _count(obj: Object, *path: str) -> int:
    found = field(obj, *path, default=0)
    return found if isinstance(found, int) else 0


def _deployment(obj: Object, now: datetime) -> list[Any]:
    wanted, ready = _count(obj, "spec", "replicas"), _count(obj, "status", "readyReplicas")
    return [
        obj["metadata"]["name"],
        f"{ready}/{wanted}",
        _count(obj, "status", "updatedReplicas"),
        _count(obj, "status", "availableReplicas"),
        age(obj, now),
        *containers_and_images(field(obj, "spec", "template")),
        selector_text(field(obj, "spec", "selector")),
    ]


def _replica_set(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"]["name"],
        _count(obj, "spec", "replicas"),
        _count(obj, "status", "replicas"),
        _count(obj, "status", "readyReplicas"),
        age(obj, now),
        *containers_and_images(field(obj, "spec", "template")),
        selector_text(field(obj, "spec", "selector")),
    ]


def _stateful_set(obj: Object, now: datetime) -> list[Any]:
    wanted, ready = _count(obj, "spec", "replicas"), _count(obj, "status", "readyReplicas")
    template = field(obj, "spec", "template")
    return [obj["metadata"]["name"], f"{ready}/{wanted}", age(obj, now), *containers_and_images(template)]


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
        *(_count(obj, "status", name) for name in counts),
        labels_text(field(obj, "spec", "template", "spec", "nodeSelector")),
        age(obj, now),
        *containers_and_images(field(obj, "spec", "template")),
        selector_text(field(obj, "spec", "selector")),
    ]


def _controller_revision(obj: Object, now: datetime) -> list[Any]:
    owner = controller_of(obj)
    controller = NONE
    if owner is not None:
        group, slash, _ = owner["apiVersion"].rpartition("/")
        kind = owner["kind"].lower() + (f".{group}" if slash else "")
        controller = f"{kind}/{owner['name']}"
    return [obj["metadata"]["name"], controller, obj.get("revision", 0), age(obj, now)]


def _job(obj: Object, now: datetime) -> list[Any]:
    done, wanted = _count(obj, "status", "succeeded"), field(obj, "spec", "completions")
    if wanted is not None:
        completions = f"{done}/{wanted}"
    else:
        parallelism = _count(obj, "spec", "parallelism")
        completions = f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        completions,
        _job_duration(obj.get("status") or {}, now),
        age(obj, now),
        *containers_and_images(field(obj, "spec", "template")),
        selector_text(field(obj, "spec", "selector")),
    ]


def _job_status(obj: Object) -> str:
    conditions = field(obj, "status", "conditions", default=())
    holding = {each.get("type") for each in conditions if each.get("status") == "True"}
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
    return human_duration(end - parse_time(status["startTime"]))


def _cron_job(obj: Object, now: datetime) -> list[Any]:
    last = field(obj, "status", "lastScheduleTime")
    suspended = field(obj, "spec", "suspend")
    return [
        obj["metadata"]["name"],
        field(obj, "spec", "schedule", default=""),
        field(obj, "spec", "timeZone") or NONE,
        "<unset>" if suspended is None else str(suspended).capitalize(),
        len(field(obj, "status", "active", default=())),
        NONE if last is None else since(last, now),
        age(obj, now),
        *containers_and_images(field(obj, "spec", "jobTemplate", "spec", "template")),
        selector_text(field(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


_TEMPLATE = "+Containers, +Images"
WORKLOADS: Mapping[str, Printed] = {
    "deployments.apps": printed(f"Name, Ready, Up-to-date, Available, Age, {_TEMPLATE}, +Selector", _deployment),
    "replicasets.apps": printed(f"Name, Desired#, Current#, Ready#, Age, {_TEMPLATE}, +Selector", _replica_set),
    "statefulsets.apps": printed(f"Name, Ready, Age, {_TEMPLATE}", _stateful_set),
    "daemonsets.apps": printed(
        f"Name, Desired#, Current#, Ready#, Up-to-date#, Available#, Node Selector, Age, {_TEMPLATE}, +Selector",
        _daemon_set,
    ),
    "controllerrevisions.apps": printed("Name, Controller, Revision, Age", _controller_revision),
    "jobs.batch": printed(f"Name, Status, Completions, Duration, Age, {_TEMPLATE}, +Selector", _job),
    "cronjobs.batch": printed(
        f"Name, Schedule, Timezone, Suspend?, Active#, Last Schedule, Age, {_TEMPLATE}, +Selector", _cron_job
    ),
}

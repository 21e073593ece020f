"""Validation of workload kinds: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.pods import NOT_NEGATIVE, validate_pod_template
from konverge_cluster._internal.embedded.validation.selectors import matches_template, validate_selector

__all__ = [
    "validate_bare_template",
    "validate_cron_job",
    "validate_daemon_set",
    "validate_deployment",
    "validate_job",
    "validate_job_update",
    "validate_replica_set",
    "validate_replication_controller",
    "validate_selector_update",
    "validate_stateful_set",
    "validate_stateful_set_update",
]

_STATEFUL_SET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_PERCENT = re.compile("[0-9]+%")
_PERCENT_FORM = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)


def validate_deployment(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Deployment."""
    spec = obj.get("spec") or {}
    yield from _validate_not_negative(spec, "replicas")
    yield from _validate_pods(spec, "deployment")
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield field_forbidden("spec.strategy.rollingUpdate", detail)
        case "RollingUpdate":
            yield from _validate_rolling_update(rolling or {})
        case _:
            yield field_not_supported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    yield from _validate_not_negative(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and 0 <= deadline <= ready:
        yield field_invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _validate_rolling_update(rolling: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in ("maxUnavailable", "maxSurge"):
        value = rolling.get(name)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield field_invalid(f"spec.strategy.rollingUpdate.{name}", value, _PERCENT_FORM)
        elif isinstance(value, int) and value < 0:
            yield field_invalid(f"spec.strategy.rollingUpdate.{name}", value, NOT_NEGATIVE)
    if rolling.get("maxUnavailable") in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
        unavailable = rolling["maxUnavailable"]
        yield field_invalid(
            "spec.strategy.rollingUpdate.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"
        )


def validate_replica_set(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ReplicaSet."""
    spec = obj.get("spec") or {}
    yield from _validate_not_negative(spec, "replicas", "minReadySeconds")
    yield from _validate_pods(spec, "replicaset")


def validate_replication_controller(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ReplicationController, whose selector is a mapping of labels."""
    spec = obj.get("spec") or {}
    yield from _validate_not_negative(spec, "replicas", "minReadySeconds")
    selector, template = spec.get("selector"), spec.get("template")
    if not selector:
        yield field_required("spec.selector")
    if template is None:
        yield field_required("spec.template")
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(name) != value for name, value in (selector or {}).items()):
        yield field_invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from validate_pod_template(template, "spec.template")


def validate_bare_template(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a PodTemplate."""
    yield from validate_pod_template(obj.get("template") or {}, "template")


def validate_daemon_set(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a DaemonSet."""
    spec = obj.get("spec") or {}
    yield from _validate_pods(spec, "daemonset")
    yield from _validate_not_negative(spec, "minReadySeconds", "revisionHistoryLimit")


def validate_stateful_set(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a StatefulSet."""
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield field_invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield field_invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    yield from _validate_not_negative(spec, "replicas", "minReadySeconds")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        claim_spec = claim.get("spec") or {}
        at = f"spec.volumeClaimTemplates[{index}].spec"
        if not claim_spec.get("accessModes"):
            yield field_required(f"{at}.accessModes", "at least 1 access mode is required")
        if "storage" not in ((claim_spec.get("resources") or {}).get("requests") or {}):
            yield field_required(f"{at}.resources[storage]")
    # The claims become volumes of the pods, whose template need not declare them.
    template = dict(spec.get("template") or {})
    pod = dict(template.get("spec") or {})
    claims = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}}
        for claim in spec.get("volumeClaimTemplates") or ()
        if (name := (claim.get("metadata") or {}).get("name"))
    ]
    named = {claim["name"] for claim in claims}
    pod["volumes"] = [*(volume for volume in pod.get("volumes") or () if volume.get("name") not in named), *claims]
    template["spec"] = pod
    yield from _validate_pods(spec | {"template": template}, "statefulset")


def _validate_pods(spec: Mapping[str, Any], kind: str) -> Iterator[FieldError]:
    """Yield errors of the selector, the template and their match; pods of these kinds always restart."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    wrong = list(validate_selector(selector, "spec.selector"))
    yield from wrong
    if wrong:
        yield field_invalid("spec.selector", selector, "invalid label selector")
    elif selector is None:
        yield field_required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield field_invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    if not wrong and not matches_template(selector, template):
        labels = (template.get("metadata") or {}).get("labels")
        yield field_invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from validate_pod_template(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in (None, "Always"):
        yield field_not_supported("spec.template.spec.restartPolicy", policy, ("Always",))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield field_forbidden("spec.template.spec.activeDeadlineSeconds", detail)


def validate_selector_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error if the selector of a Deployment, ReplicaSet or DaemonSet changes."""
    selector = (new.get("spec") or {}).get("selector")
    if selector != (old.get("spec") or {}).get("selector"):
        yield field_invalid("spec.selector", selector, IMMUTABLE)


def validate_stateful_set_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error if an immutable field of a StatefulSet changes."""
    before, after = (
        {name: value for name, value in (obj.get("spec") or {}).items() if name not in _STATEFUL_SET_MUTABLE}
        for obj in (old, new)
    )
    if before != after:
        *most, last = (f"'{name}'" for name in _STATEFUL_SET_MUTABLE)
        fields = f"{', '.join(most)} and {last}"
        yield field_forbidden("spec", f"updates to statefulset spec for fields other than {fields} are forbidden")


def validate_job(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Job."""
    spec = obj.get("spec") or {}
    if spec.get("selector") is None:
        yield field_required("spec.selector")
    else:
        yield from validate_selector(spec["selector"], "spec.selector")
    template = spec.get("template") or {}
    if not matches_template(spec.get("selector"), template):
        labels = (template.get("metadata") or {}).get("labels")
        yield field_invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _validate_job_spec(spec, "spec")


def _validate_job_spec(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if (spec.get(name) or 0) < 0:
            yield field_invalid(f"{field}.{name}", spec[name], NOT_NEGATIVE)
    template = spec.get("template") or {}
    yield from validate_pod_template(template, f"{field}.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        detail = 'valid values: "OnFailure", "Never"'
        yield field_required(f"{field}.template.spec.restartPolicy", detail)


def validate_job_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of a Job's immutable fields."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for name in ("completions", "selector", "template", "completionMode"):
        if before.get(name) != after.get(name):
            yield field_invalid(f"spec.{name}", after.get(name), IMMUTABLE)


def validate_cron_job(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a CronJob."""
    spec = obj.get("spec") or {}
    schedule = spec.get("schedule", "")
    if not schedule:
        yield field_required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        schedule_fields = schedule.split()
        detail = f"expected exactly 5 fields, found {len(schedule_fields)}: [{' '.join(schedule_fields)}]"
        yield field_invalid("spec.schedule", schedule, detail)
    if len(obj["metadata"].get("name") or "") > 52:
        yield field_invalid("metadata.name", obj["metadata"]["name"], "must be no more than 52 characters")
    policies = ("Allow", "Forbid", "Replace")
    if spec.get("concurrencyPolicy") not in policies:
        yield field_not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), policies)
    yield from _validate_job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if (spec.get(name) or 0) < 0:
            yield field_invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)


def _validate_not_negative(spec: Mapping[str, Any], *names: str) -> Iterator[FieldError]:
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield field_invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)

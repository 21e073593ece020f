"""Validation of workload kinds: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.containers import NOT_NEGATIVE
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.pods import validate_pod_template
from konverge_cluster._internal.embedded.validation.schedules import find_schedule_error
from konverge_cluster._internal.embedded.validation.selectors import matches_template, validate_selector
from konverge_cluster._internal.embedded.validation.storage_kinds import validate_claim_spec

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
_OVER_ALL = "must not be greater than 100%"
_NOTHING = (0, "0%")
_COMPLETION_MODES = ("NonIndexed", "Indexed")
_FAILURE_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_REPLACEMENT_POLICIES = ("Failed", "TerminatingOrFailed")
_MANAGER_FORM = 'must be a domain-prefixed path (such as "acme.io/foo")'
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
    if deadline is not None and deadline <= ready:
        yield field_invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _validate_rolling_update(rolling: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in ("maxUnavailable", "maxSurge"):
        yield from _validate_share(rolling.get(name), f"spec.strategy.rollingUpdate.{name}")
    if _exceeds_all(rolling.get("maxUnavailable")):
        yield field_invalid("spec.strategy.rollingUpdate.maxUnavailable", rolling["maxUnavailable"], _OVER_ALL)
    if rolling.get("maxUnavailable") in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
        unavailable = rolling["maxUnavailable"]
        yield field_invalid(
            "spec.strategy.rollingUpdate.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"
        )


def _validate_share(value: Any, field: str) -> Iterator[FieldError]:
    if isinstance(value, str) and not _PERCENT.fullmatch(value):
        yield field_invalid(field, value, _PERCENT_FORM)
    elif isinstance(value, int) and value < 0:
        yield field_invalid(field, value, NOT_NEGATIVE)


def _exceeds_all(value: Any) -> bool:
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None and int(value[:-1]) > 100


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
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate":
        yield from _validate_daemon_update(strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate")
    elif strategy.get("type") != "OnDelete":
        written = {"Type": strategy.get("type", ""), "RollingUpdate": strategy.get("rollingUpdate")}
        yield field_not_supported("spec.updateStrategy", written, ("RollingUpdate", "OnDelete"))


def _validate_daemon_update(rolling: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable"), rolling.get("maxSurge")
    for name in ("maxUnavailable", "maxSurge"):
        yield from _validate_share(rolling.get(name), f"{field}.{name}")
        if _exceeds_all(rolling.get(name)):
            yield field_invalid(f"{field}.{name}", rolling[name], _OVER_ALL)
    has_surge = surge is not None and surge not in _NOTHING
    if unavailable in _NOTHING and not has_surge:
        yield field_required(f"{field}.maxUnavailable", "cannot be 0 when maxSurge is 0")
    elif unavailable not in _NOTHING and has_surge:
        yield field_invalid(f"{field}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")


def validate_stateful_set(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a StatefulSet."""
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield field_invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield field_invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    rolling = strategy.get("rollingUpdate")
    if rolling is not None and strategy.get("type") == "OnDelete":
        written = {"Partition": rolling.get("partition"), "MaxUnavailable": rolling.get("maxUnavailable")}
        detail = "only allowed for updateStrategy 'RollingUpdate'"
        yield field_invalid("spec.updateStrategy.rollingUpdate", written, detail)
    elif rolling is not None and (rolling.get("partition") or 0) < 0:
        yield field_invalid("spec.updateStrategy.rollingUpdate.partition", rolling["partition"], NOT_NEGATIVE)
    start = (spec.get("ordinals") or {}).get("start") or 0
    if start < 0:
        yield field_invalid("spec.ordinals.start", start, NOT_NEGATIVE)
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for event in ("whenDeleted", "whenScaled"):
        if event in retention and retention[event] not in ("Retain", "Delete"):
            at = f"spec.persistentVolumeClaimRetentionPolicy.{event}"
            yield field_not_supported(at, retention[event], ("Retain", "Delete"))
    yield from _validate_not_negative(spec, "replicas", "minReadySeconds")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        yield from validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
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
    yield from _validate_job_mode(spec, field)
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        detail = 'valid values: "OnFailure", "Never"'
        yield field_required(f"{field}.template.spec.restartPolicy", detail)


def _validate_job_mode(spec: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield errors of the completion mode and of the policies; some policies need the mode Indexed."""
    mode, needs_index = spec.get("completionMode", "NonIndexed"), "requires indexed completion mode"
    if mode not in _COMPLETION_MODES:
        yield field_not_supported(f"{field}.completionMode", mode, _COMPLETION_MODES)
    if mode == "Indexed" and spec.get("completions") is None:
        yield field_required(f"{field}.completions", "when completion mode is Indexed")
    for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
        if spec.get(name) is not None and spec[name] < 0:
            yield field_invalid(f"{field}.{name}", spec[name], NOT_NEGATIVE)
        if spec.get(name) is not None and mode != "Indexed":
            yield field_invalid(f"{field}.{name}", spec[name], needs_index)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield field_required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    success = spec.get("successPolicy")
    if success is not None and mode != "Indexed":
        yield field_invalid(f"{field}.successPolicy", {"Rules": success.get("rules")}, needs_index)
    elif success is not None and not success.get("rules"):
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield field_required(f"{field}.successPolicy.rules", detail)
    for index, rule in enumerate((spec.get("podFailurePolicy") or {}).get("rules") or ()):
        at = f"{field}.podFailurePolicy.rules[{index}]"
        if rule.get("action") not in _FAILURE_ACTIONS:
            yield field_not_supported(f"{at}.action", rule.get("action", ""), _FAILURE_ACTIONS)
        if rule.get("onExitCodes") is None and not rule.get("onPodConditions"):
            detail = "specifying one of OnExitCodes and OnPodConditions is required"
            yield FieldError(at, "FieldValueInvalid", f"Invalid value: {detail}")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None and replacement not in _REPLACEMENT_POLICIES:
        yield field_not_supported(f"{field}.podReplacementPolicy", replacement, _REPLACEMENT_POLICIES)
    manager = spec.get("managedBy")
    if manager is not None and not all(manager.partition("/")[::2]):
        yield field_invalid(f"{field}.managedBy", manager, _MANAGER_FORM)


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
    elif "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield field_invalid("spec.schedule", schedule, detail)
    elif error := find_schedule_error(schedule):
        yield field_invalid("spec.schedule", schedule, error)
    zone = spec.get("timeZone")
    if zone is not None and not _is_time_zone(zone):
        yield field_invalid("spec.timeZone", zone, f"unknown time zone {zone}")
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


def _is_time_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True

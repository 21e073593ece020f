"""The rules of the kinds that make pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import Object
from konverge.localcluster.validation.mistakes import (
    IMMUTABLE,
    Mistake,
    forbidden,
    invalid,
    required,
    unsupported,
)
from konverge.localcluster.validation.pods import NOT_NEGATIVE, template_mistakes
from konverge.localcluster.validation.selectors import matches_template, selector_mistakes

__all__ = [
    "cron_job_mistakes",
    "daemon_set_mistakes",
    "deployment_mistakes",
    "job_mistakes",
    "job_update_mistakes",
    "replica_set_mistakes",
    "selector_update_mistakes",
    "stateful_set_mistakes",
    "stateful_set_update_mistakes",
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


def deployment_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a Deployment."""
    spec = obj.get("spec") or {}
    yield from _not_negative(spec, "replicas")
    yield from _pods_mistakes(spec, "deployment")
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                told = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden("spec.strategy.rollingUpdate", told)
        case "RollingUpdate":
            yield from _rolling_mistakes(rolling or {})
        case _:
            yield unsupported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    yield from _not_negative(spec, "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and 0 <= deadline <= ready:
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _rolling_mistakes(rolling: Mapping[str, Any]) -> Iterator[Mistake]:
    for name in ("maxUnavailable", "maxSurge"):
        value = rolling.get(name)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            yield invalid(f"spec.strategy.rollingUpdate.{name}", value, _PERCENT_FORM)
        elif isinstance(value, int) and value < 0:
            yield invalid(f"spec.strategy.rollingUpdate.{name}", value, NOT_NEGATIVE)
    if rolling.get("maxUnavailable") in (0, "0%") and rolling.get("maxSurge") in (0, "0%"):
        unavailable = rolling["maxUnavailable"]
        yield invalid("spec.strategy.rollingUpdate.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


def replica_set_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a ReplicaSet."""
    spec = obj.get("spec") or {}
    yield from _not_negative(spec, "replicas", "minReadySeconds")
    yield from _pods_mistakes(spec, "replicaset")


def daemon_set_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a DaemonSet."""
    spec = obj.get("spec") or {}
    yield from _pods_mistakes(spec, "daemonset")
    yield from _not_negative(spec, "minReadySeconds", "revisionHistoryLimit")


def stateful_set_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a StatefulSet."""
    spec = obj.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") not in ("RollingUpdate", "OnDelete"):
        yield invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'")
    yield from _not_negative(spec, "replicas", "minReadySeconds")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        wanted = claim.get("spec") or {}
        at = f"spec.volumeClaimTemplates[{index}].spec"
        if not wanted.get("accessModes"):
            yield required(f"{at}.accessModes", "at least 1 access mode is required")
        if "storage" not in ((wanted.get("resources") or {}).get("requests") or {}):
            yield required(f"{at}.resources[storage]")
    # The claims are volumes of the pods, which need not declare them.
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
    yield from _pods_mistakes(spec | {"template": template}, "statefulset")


def _pods_mistakes(spec: Mapping[str, Any], kind: str) -> Iterator[Mistake]:
    """The selector, the template, and that they fit; pods of these kinds restart forever."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    wrong = list(selector_mistakes(selector, "spec.selector"))
    yield from wrong
    if wrong:
        yield invalid("spec.selector", selector, "invalid label selector")
    elif selector is None:
        yield required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid("spec.selector", selector, f"empty selector is invalid for {kind}")
    if not wrong and not matches_template(selector, template):
        labels = (template.get("metadata") or {}).get("labels")
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from template_mistakes(template, "spec.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in (None, "Always"):
        yield unsupported("spec.template.spec.restartPolicy", policy, ("Always",))
    if (template.get("spec") or {}).get("activeDeadlineSeconds") is not None:
        told = "activeDeadlineSeconds in ReplicaSet is not Supported"
        yield forbidden("spec.template.spec.activeDeadlineSeconds", told)


def selector_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """The selector of a Deployment, ReplicaSet or DaemonSet stays."""
    selector = (new.get("spec") or {}).get("selector")
    if selector != (old.get("spec") or {}).get("selector"):
        yield invalid("spec.selector", selector, IMMUTABLE)


def stateful_set_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """Most of a StatefulSet stays."""
    before, after = (
        {name: value for name, value in (obj.get("spec") or {}).items() if name not in _STATEFUL_SET_MUTABLE}
        for obj in (old, new)
    )
    if before != after:
        *most, last = (f"'{name}'" for name in _STATEFUL_SET_MUTABLE)
        fields = f"{', '.join(most)} and {last}"
        yield forbidden("spec", f"updates to statefulset spec for fields other than {fields} are forbidden")


def job_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a Job."""
    spec = obj.get("spec") or {}
    if spec.get("selector") is None:
        yield required("spec.selector")
    else:
        yield from selector_mistakes(spec["selector"], "spec.selector")
    template = spec.get("template") or {}
    if not matches_template(spec.get("selector"), template):
        labels = (template.get("metadata") or {}).get("labels")
        yield invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")
    yield from _job_spec_mistakes(spec, "spec")


def _job_spec_mistakes(spec: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    for name in ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"):
        if (spec.get(name) or 0) < 0:
            yield invalid(f"{field}.{name}", spec[name], NOT_NEGATIVE)
    template = spec.get("template") or {}
    yield from template_mistakes(template, f"{field}.template")
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy == "Always":
        told = 'valid values: "OnFailure", "Never"'
        yield required(f"{field}.template.spec.restartPolicy", told)


def job_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """What a Job runs stays."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for name in ("completions", "selector", "template", "completionMode"):
        if before.get(name) != after.get(name):
            yield invalid(f"spec.{name}", after.get(name), IMMUTABLE)


def cron_job_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a CronJob."""
    spec = obj.get("spec") or {}
    schedule = spec.get("schedule", "")
    if not schedule:
        yield required("spec.schedule")
    elif not schedule.startswith("@") and len(schedule.split()) != 5:
        found = schedule.split()
        told = f"expected exactly 5 fields, found {len(found)}: [{' '.join(found)}]"
        yield invalid("spec.schedule", schedule, told)
    if len(obj["metadata"].get("name") or "") > 52:
        yield invalid("metadata.name", obj["metadata"]["name"], "must be no more than 52 characters")
    policies = ("Allow", "Forbid", "Replace")
    if spec.get("concurrencyPolicy") not in policies:
        yield unsupported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), policies)
    yield from _job_spec_mistakes((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)


def _not_negative(spec: Mapping[str, Any], *names: str) -> Iterator[Mistake]:
    for name in names:
        if (spec.get(name) or 0) < 0:
            yield invalid(f"spec.{name}", spec[name], NOT_NEGATIVE)

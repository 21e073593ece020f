"""The objects of io.k8s.api.batch.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import core_v1, meta_v1


class PodFailurePolicyOnExitCodesRequirement(TypedDict, total=False):
    containerName: str
    operator: Required[Literal["In", "NotIn"]]
    values: Required[list[int]]


class PodFailurePolicyOnPodConditionsPattern(TypedDict, total=False):
    status: str
    type: Required[str]


class PodFailurePolicyRule(TypedDict, total=False):
    action: Required[Literal["Count", "FailIndex", "FailJob", "Ignore"]]
    onExitCodes: PodFailurePolicyOnExitCodesRequirement
    onPodConditions: list[PodFailurePolicyOnPodConditionsPattern]


class PodFailurePolicy(TypedDict, total=False):
    rules: Required[list[PodFailurePolicyRule]]


class SuccessPolicyRule(TypedDict, total=False):
    succeededCount: int
    succeededIndexes: str


class SuccessPolicy(TypedDict, total=False):
    rules: Required[list[SuccessPolicyRule]]


class JobSpec(TypedDict, total=False):
    activeDeadlineSeconds: int
    backoffLimit: int
    backoffLimitPerIndex: int
    completionMode: Literal["Indexed", "NonIndexed"]
    completions: int
    managedBy: str
    manualSelector: bool
    maxFailedIndexes: int
    parallelism: int
    podFailurePolicy: PodFailurePolicy
    podReplacementPolicy: Literal["Failed", "TerminatingOrFailed"]
    selector: meta_v1.LabelSelector
    successPolicy: SuccessPolicy
    suspend: bool
    template: Required[core_v1.PodTemplateSpec]
    ttlSecondsAfterFinished: int


class JobTemplateSpec(TypedDict, total=False):
    metadata: meta_v1.ObjectMeta
    spec: JobSpec


class CronJobSpec(TypedDict, total=False):
    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"]
    failedJobsHistoryLimit: int
    jobTemplate: Required[JobTemplateSpec]
    schedule: Required[str]
    startingDeadlineSeconds: int
    successfulJobsHistoryLimit: int
    suspend: bool
    timeZone: str


class CronJobStatus(TypedDict, total=False):
    active: list[core_v1.ObjectReference]
    lastScheduleTime: str
    lastSuccessfulTime: str


class CronJob(TypedDict, total=False):
    apiVersion: Literal["batch/v1"]
    kind: Literal["CronJob"]
    metadata: meta_v1.ObjectMeta
    spec: Required[CronJobSpec]
    status: CronJobStatus


class JobCondition(TypedDict, total=False):
    lastProbeTime: str
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class UncountedTerminatedPods(TypedDict, total=False):
    failed: list[str]
    succeeded: list[str]


class JobStatus(TypedDict, total=False):
    active: int
    completedIndexes: str
    completionTime: str
    conditions: list[JobCondition]
    failed: int
    failedIndexes: str
    ready: int
    startTime: str
    succeeded: int
    terminating: int
    uncountedTerminatedPods: UncountedTerminatedPods


class Job(TypedDict, total=False):
    apiVersion: Literal["batch/v1"]
    kind: Literal["Job"]
    metadata: meta_v1.ObjectMeta
    spec: JobSpec
    status: JobStatus

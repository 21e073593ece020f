"""The objects of io.k8s.api.policy.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, TypedDict

from konverge.types import meta_v1


class PodDisruptionBudgetSpec(TypedDict, total=False):
    maxUnavailable: int | str
    minAvailable: int | str
    selector: meta_v1.LabelSelector
    unhealthyPodEvictionPolicy: Literal["AlwaysAllow", "IfHealthyBudget"]


class PodDisruptionBudgetStatus(TypedDict, total=False):
    conditions: list[meta_v1.Condition]
    currentHealthy: int
    desiredHealthy: int
    disruptedPods: dict[str, str]
    disruptionsAllowed: int
    expectedPods: int
    observedGeneration: int


class PodDisruptionBudget(TypedDict, total=False):
    apiVersion: Literal["policy/v1"]
    kind: Literal["PodDisruptionBudget"]
    metadata: meta_v1.ObjectMeta
    spec: PodDisruptionBudgetSpec
    status: PodDisruptionBudgetStatus

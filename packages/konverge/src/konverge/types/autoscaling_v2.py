"""The objects of io.k8s.api.autoscaling.v2 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import meta_v1


class MetricTarget(TypedDict, total=False):
    averageUtilization: int
    averageValue: meta_v1.Quantity
    type: Required[str]
    value: meta_v1.Quantity


class ContainerResourceMetricSource(TypedDict, total=False):
    container: Required[str]
    name: Required[str]
    target: Required[MetricTarget]


class MetricValueStatus(TypedDict, total=False):
    averageUtilization: int
    averageValue: meta_v1.Quantity
    value: meta_v1.Quantity


class ContainerResourceMetricStatus(TypedDict, total=False):
    container: Required[str]
    current: Required[MetricValueStatus]
    name: Required[str]


class CrossVersionObjectReference(TypedDict, total=False):
    apiVersion: str
    kind: Required[str]
    name: Required[str]


class MetricIdentifier(TypedDict, total=False):
    name: Required[str]
    selector: meta_v1.LabelSelector


class ExternalMetricSource(TypedDict, total=False):
    metric: Required[MetricIdentifier]
    target: Required[MetricTarget]


class ExternalMetricStatus(TypedDict, total=False):
    current: Required[MetricValueStatus]
    metric: Required[MetricIdentifier]


class HPAScalingPolicy(TypedDict, total=False):
    periodSeconds: Required[int]
    type: Required[str]
    value: Required[int]


class HPAScalingRules(TypedDict, total=False):
    policies: list[HPAScalingPolicy]
    selectPolicy: str
    stabilizationWindowSeconds: int
    tolerance: meta_v1.Quantity


class HorizontalPodAutoscalerBehavior(TypedDict, total=False):
    scaleDown: HPAScalingRules
    scaleUp: HPAScalingRules


class ObjectMetricSource(TypedDict, total=False):
    describedObject: Required[CrossVersionObjectReference]
    metric: Required[MetricIdentifier]
    target: Required[MetricTarget]


class PodsMetricSource(TypedDict, total=False):
    metric: Required[MetricIdentifier]
    target: Required[MetricTarget]


class ResourceMetricSource(TypedDict, total=False):
    name: Required[str]
    target: Required[MetricTarget]


class MetricSpec(TypedDict, total=False):
    containerResource: ContainerResourceMetricSource
    external: ExternalMetricSource
    object: ObjectMetricSource
    pods: PodsMetricSource
    resource: ResourceMetricSource
    type: Required[str]


class HorizontalPodAutoscalerSpec(TypedDict, total=False):
    behavior: HorizontalPodAutoscalerBehavior
    maxReplicas: Required[int]
    metrics: list[MetricSpec]
    minReplicas: int
    scaleTargetRef: Required[CrossVersionObjectReference]


class HorizontalPodAutoscalerCondition(TypedDict, total=False):
    lastTransitionTime: str
    message: str
    reason: str
    status: Required[str]
    type: Required[str]


class ObjectMetricStatus(TypedDict, total=False):
    current: Required[MetricValueStatus]
    describedObject: Required[CrossVersionObjectReference]
    metric: Required[MetricIdentifier]


class PodsMetricStatus(TypedDict, total=False):
    current: Required[MetricValueStatus]
    metric: Required[MetricIdentifier]


class ResourceMetricStatus(TypedDict, total=False):
    current: Required[MetricValueStatus]
    name: Required[str]


class MetricStatus(TypedDict, total=False):
    containerResource: ContainerResourceMetricStatus
    external: ExternalMetricStatus
    object: ObjectMetricStatus
    pods: PodsMetricStatus
    resource: ResourceMetricStatus
    type: Required[str]


class HorizontalPodAutoscalerStatus(TypedDict, total=False):
    conditions: list[HorizontalPodAutoscalerCondition]
    currentMetrics: list[MetricStatus]
    currentReplicas: int
    desiredReplicas: Required[int]
    lastScaleTime: str
    observedGeneration: int


class HorizontalPodAutoscaler(TypedDict, total=False):
    apiVersion: Literal["autoscaling/v2"]
    kind: Literal["HorizontalPodAutoscaler"]
    metadata: meta_v1.ObjectMeta
    spec: Required[HorizontalPodAutoscalerSpec]
    status: HorizontalPodAutoscalerStatus

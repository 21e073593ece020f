"""Kinds that a box can declare, in the order in which a group creates them, with the short forms of each.

A short form is a field of the resource that sets a field of the object. It has the Kubernetes name of that field where
one exists. Fields without a short form belong in ``manifest``, in the form of the Kubernetes API.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from konverge._internal.kube import GroupVersionKind

__all__ = ["CUSTOM", "KINDS", "MAIN", "BoxKind", "ObjectPath", "find_child_kind"]

MAIN = "*"
"""The path step that stands for the one container that short forms describe."""

ObjectPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BoxKind:
    """One kind that a box can declare.

    Args:
        key: The name of its list in a group: the plural of the kind in camel case.
        gvk: The kind; None for ``custom``, where each resource gives its own.
        namespaced: Whether its objects belong to a namespace.
        pods: Path of its pod template, which has ``metadata`` and ``spec``; None for a kind without pods.
        selects: Path of the labels by which it selects its pods; by default they are made of the resource's name.
        short: The path in the object for each short form.
    """

    key: str
    gvk: GroupVersionKind | None
    namespaced: bool = True
    pods: ObjectPath | None = None
    selects: ObjectPath | None = None
    short: dict[str, ObjectPath] = field(default_factory=dict)

    @property
    def singular(self) -> str:
        """The name under ``children`` for the first object of the kind."""
        return self.key if self.gvk is None else _lower_first_letter(self.gvk.kind)

    @property
    def plural(self) -> str:
        """The name under ``children`` for all objects of the kind, keyed by name."""
        return f"{self.key}s" if self.gvk is None else self.key


def _lower_first_letter(kind: str) -> str:
    return "httpRoute" if kind == "HTTPRoute" else kind[0].lower() + kind[1:]


_CONTAINER = (
    "image",
    "imagePullPolicy",
    "command",
    "args",
    "workingDir",
    "ports",
    "env",
    "envFrom",
    "resources",
    "volumeMounts",
    "startupProbe",
    "livenessProbe",
    "readinessProbe",
    "lifecycle",
    "securityContext",
)
_POD = (
    "volumes",
    "initContainers",
    "serviceAccountName",
    "nodeSelector",
    "tolerations",
    "affinity",
    "topologySpreadConstraints",
    "imagePullSecrets",
    "priorityClassName",
    "terminationGracePeriodSeconds",
    "hostNetwork",
)
_TEMPLATE = ("spec", "template")
_JOB_TEMPLATE = ("spec", "jobTemplate", "spec", "template")


def _build_pod_paths(at: ObjectPath, *more: str, spec: ObjectPath = ("spec",)) -> dict[str, ObjectPath]:
    return {
        **{name: (*at, "spec", "containers", MAIN, name) for name in _CONTAINER},
        **{name: (*at, "spec", name) for name in _POD},
        "podSecurityContext": (*at, "spec", "securityContext"),
        "podLabels": (*at, "metadata", "labels"),
        "podAnnotations": (*at, "metadata", "annotations"),
        **{name: (*spec, name) for name in more},
    }


def _build_spec_paths(*names: str) -> dict[str, ObjectPath]:
    return {name: ("spec", name) for name in names}


def _build_top_paths(*names: str) -> dict[str, ObjectPath]:
    return {name: (name,) for name in names}


def _build_workload(key: str, kind: str, *fields: str) -> BoxKind:
    """Return a kind of the group ``apps``: a pod template, and a selector of labels."""
    short = _build_pod_paths(_TEMPLATE, *fields, "selector")
    return BoxKind(key, GroupVersionKind("apps", "v1", kind), pods=_TEMPLATE, selects=_LABELS, short=short)


_JOB = ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism")
_RBAC = "rbac.authorization.k8s.io"
_LABELS = ("spec", "selector", "matchLabels")

CUSTOM = "custom"

_ALL = (
    BoxKind("namespaces", GroupVersionKind("", "v1", "Namespace"), namespaced=False),
    BoxKind(
        "customResourceDefinitions",
        GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        namespaced=False,
    ),
    BoxKind("resourceQuotas", GroupVersionKind("", "v1", "ResourceQuota"), short=_build_spec_paths("hard", "scopes")),
    BoxKind("limitRanges", GroupVersionKind("", "v1", "LimitRange"), short=_build_spec_paths("limits")),
    BoxKind(
        "secrets",
        GroupVersionKind("", "v1", "Secret"),
        short=_build_top_paths("type", "data", "stringData", "immutable"),
    ),
    BoxKind(
        "configMaps", GroupVersionKind("", "v1", "ConfigMap"), short=_build_top_paths("data", "binaryData", "immutable")
    ),
    BoxKind(
        "networkPolicies",
        GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy"),
        short=_build_spec_paths("podSelector", "policyTypes", "ingress", "egress"),
    ),
    BoxKind(
        "serviceAccounts",
        GroupVersionKind("", "v1", "ServiceAccount"),
        short=_build_top_paths("imagePullSecrets", "automountServiceAccountToken"),
    ),
    BoxKind(
        "clusterRoles",
        GroupVersionKind(_RBAC, "v1", "ClusterRole"),
        namespaced=False,
        short=_build_top_paths("rules", "aggregationRule"),
    ),
    BoxKind(
        "clusterRoleBindings",
        GroupVersionKind(_RBAC, "v1", "ClusterRoleBinding"),
        namespaced=False,
        short=_build_top_paths("roleRef", "subjects"),
    ),
    BoxKind("roles", GroupVersionKind(_RBAC, "v1", "Role"), short=_build_top_paths("rules")),
    BoxKind(
        "roleBindings", GroupVersionKind(_RBAC, "v1", "RoleBinding"), short=_build_top_paths("roleRef", "subjects")
    ),
    BoxKind(
        "persistentVolumes",
        GroupVersionKind("", "v1", "PersistentVolume"),
        namespaced=False,
        short=_build_spec_paths(
            "accessModes",
            "capacity",
            "storageClassName",
            "persistentVolumeReclaimPolicy",
            "volumeMode",
            "hostPath",
            "csi",
            "nfs",
        ),
    ),
    BoxKind(
        "persistentVolumeClaims",
        GroupVersionKind("", "v1", "PersistentVolumeClaim"),
        short={
            **_build_spec_paths("accessModes", "storageClassName", "volumeName", "volumeMode", "resources"),
            "storage": ("spec", "resources", "requests", "storage"),
        },
    ),
    BoxKind(CUSTOM, None, short=_build_top_paths("spec")),
    _build_workload("replicaSets", "ReplicaSet", "replicas", "minReadySeconds"),
    _build_workload(
        "deployments",
        "Deployment",
        "replicas",
        "strategy",
        "minReadySeconds",
        "progressDeadlineSeconds",
        "revisionHistoryLimit",
    ),
    _build_workload("daemonSets", "DaemonSet", "updateStrategy", "minReadySeconds"),
    _build_workload(
        "statefulSets",
        "StatefulSet",
        "replicas",
        "serviceName",
        "volumeClaimTemplates",
        "updateStrategy",
        "podManagementPolicy",
    ),
    BoxKind(
        "services",
        GroupVersionKind("", "v1", "Service"),
        selects=("spec", "selector"),
        short=_build_spec_paths(
            "type", "ports", "selector", "clusterIP", "externalName", "sessionAffinity", "loadBalancerClass"
        ),
    ),
    BoxKind(
        "jobs",
        GroupVersionKind("batch", "v1", "Job"),
        pods=_TEMPLATE,
        short={**_build_pod_paths(_TEMPLATE, *_JOB, "suspend"), "restartPolicy": (*_TEMPLATE, "spec", "restartPolicy")},
    ),
    BoxKind(
        "cronJobs",
        GroupVersionKind("batch", "v1", "CronJob"),
        pods=_JOB_TEMPLATE,
        short={
            **_build_pod_paths(_JOB_TEMPLATE, *_JOB, spec=("spec", "jobTemplate", "spec")),
            **_build_spec_paths(
                "schedule",
                "timeZone",
                "concurrencyPolicy",
                "suspend",
                "startingDeadlineSeconds",
                "successfulJobsHistoryLimit",
                "failedJobsHistoryLimit",
            ),
            "restartPolicy": (*_JOB_TEMPLATE, "spec", "restartPolicy"),
        },
    ),
    BoxKind(
        "ingresses",
        GroupVersionKind("networking.k8s.io", "v1", "Ingress"),
        short=_build_spec_paths("ingressClassName", "rules", "tls", "defaultBackend"),
    ),
    BoxKind(
        "gateways",
        GroupVersionKind("gateway.networking.k8s.io", "v1", "Gateway"),
        short=_build_spec_paths("gatewayClassName", "listeners", "addresses"),
    ),
    BoxKind(
        "httpRoutes",
        GroupVersionKind("gateway.networking.k8s.io", "v1", "HTTPRoute"),
        short=_build_spec_paths("parentRefs", "hostnames", "rules"),
    ),
    BoxKind(
        "horizontalPodAutoscalers",
        GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler"),
        short=_build_spec_paths("scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"),
    ),
    BoxKind(
        "podDisruptionBudgets",
        GroupVersionKind("policy", "v1", "PodDisruptionBudget"),
        selects=_LABELS,
        short=_build_spec_paths("minAvailable", "maxUnavailable", "selector", "unhealthyPodEvictionPolicy"),
    ),
    BoxKind(
        "pods",
        GroupVersionKind("", "v1", "Pod"),
        pods=(),
        short={**_build_pod_paths(()), "restartPolicy": ("spec", "restartPolicy")},
    ),
)

KINDS: dict[str, BoxKind] = {kind.key: kind for kind in _ALL}
"""The kinds by key, in the order in which a group creates them: dependencies come first."""


def find_child_kind(word: str) -> BoxKind | None:
    """Return the kind of ``children.<word>``: its plural names all objects, its singular the first; None if unknown."""
    return next((kind for kind in _ALL if word in (kind.plural, kind.singular)), None)

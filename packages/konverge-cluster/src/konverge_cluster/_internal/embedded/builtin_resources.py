"""The table of built-in kinds that the embedded server serves, for discovery, storage and selectors.

Names, verbs, short names, categories and selectable fields come from the discovery of kube-apiserver v1.36.
"""

from __future__ import annotations

from konverge._internal.apply import Schema, find_builtin_schema
from konverge._internal.apply.schema import DEDUCED
from konverge._internal.kube import GroupVersionKind, RestMapping
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage_conversion import EventConversion, StorageConversion
from konverge_cluster._internal.embedded.webhooks.configuration_schema import build_configuration_schema

__all__ = ["list_builtin_resources"]

_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
_ALL = ("all",)
_STATUS = frozenset({"status"})
_SCALABLE = frozenset({"status", "scale"})


def _build_resource(
    group: str,
    kind: str,
    plural: str,
    *short_names: str,
    version: str = "v1",
    namespaced: bool = True,
    categories: tuple[str, ...] = (),
    subresources: frozenset[str] = frozenset(),
    verbs: frozenset[str] = _VERBS,
    storage: str | None = None,
    generation: bool = False,
    creates_on_update: bool = False,
    unconditional_update: bool = True,
    fields: tuple[str, ...] = (),
    conversion: StorageConversion | None = None,
    schema: Schema | None = None,
) -> ServedResource:
    mapping = RestMapping(
        gvk=GroupVersionKind(group, version, kind),
        plural=plural,
        namespaced=namespaced,
        singular=kind.lower(),
        short_names=short_names,
        verbs=verbs,
        subresources=subresources,
        categories=categories,
    )
    return ServedResource(
        mapping=mapping,
        storage=storage or mapping.plural + (f".{group}" if group else ""),
        has_generation=generation,
        creates_on_update=creates_on_update,
        unconditional_update=unconditional_update,
        selectable_fields=fields,
        schema=schema or find_builtin_schema(mapping.gvk) or DEDUCED,
        conversion=conversion,
        has_schema_defaults=schema is not None,
    )


_POD_FIELDS = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
)
_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_EVENTS_GROUP_FIELDS = (
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
)


def list_builtin_resources() -> tuple[ServedResource, ...]:
    """Return all built-in resources in the order of discovery, which sorts them within a group."""
    return (
        _build_resource("", "ConfigMap", "configmaps", "cm"),
        _build_resource("", "Endpoints", "endpoints", "ep", creates_on_update=True),
        _build_resource("", "Event", "events", "ev", creates_on_update=True, fields=_EVENT_FIELDS),
        _build_resource("", "LimitRange", "limitranges", "limits", creates_on_update=True),
        _build_resource(
            "",
            "Namespace",
            "namespaces",
            "ns",
            verbs=_VERBS - {"deletecollection"},
            subresources=frozenset({"status", "finalize"}),
            fields=("status.phase",),
            namespaced=False,
        ),
        _build_resource(
            "", "Node", "nodes", "no", subresources=_STATUS, fields=("spec.unschedulable",), namespaced=False
        ),
        _build_resource("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=_STATUS),
        _build_resource("", "PersistentVolume", "persistentvolumes", "pv", subresources=_STATUS, namespaced=False),
        _build_resource(
            "",
            "Pod",
            "pods",
            "po",
            categories=_ALL,
            subresources=frozenset({"status", "binding", "eviction", "log"}),
            generation=True,
            fields=_POD_FIELDS,
        ),
        _build_resource("", "PodTemplate", "podtemplates", generation=True),
        _build_resource(
            "",
            "ReplicationController",
            "replicationcontrollers",
            "rc",
            categories=_ALL,
            subresources=_SCALABLE,
            generation=True,
            fields=("status.replicas",),
        ),
        _build_resource("", "ResourceQuota", "resourcequotas", "quota", subresources=_STATUS),
        _build_resource("", "Secret", "secrets", fields=("type",)),
        _build_resource("", "ServiceAccount", "serviceaccounts", "sa", subresources=frozenset({"token"})),
        _build_resource(
            "",
            "Service",
            "services",
            "svc",
            categories=_ALL,
            subresources=_STATUS,
            creates_on_update=True,
            fields=("spec.clusterIP", "spec.type"),
        ),
        _build_resource("apps", "ControllerRevision", "controllerrevisions"),
        _build_resource(
            "apps", "DaemonSet", "daemonsets", "ds", categories=_ALL, subresources=_STATUS, generation=True
        ),
        _build_resource(
            "apps", "Deployment", "deployments", "deploy", categories=_ALL, subresources=_SCALABLE, generation=True
        ),
        _build_resource(
            "apps",
            "ReplicaSet",
            "replicasets",
            "rs",
            categories=_ALL,
            subresources=_SCALABLE,
            generation=True,
            fields=("status.replicas",),
        ),
        _build_resource(
            "apps", "StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=_SCALABLE, generation=True
        ),
        # The same objects as the events of the core group, with other field names.
        _build_resource(
            "events.k8s.io",
            "Event",
            "events",
            "ev",
            storage="events",
            creates_on_update=True,
            fields=_EVENTS_GROUP_FIELDS,
            conversion=EventConversion(),
        ),
        _build_resource(
            "autoscaling",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "hpa",
            version="v2",
            categories=_ALL,
            subresources=_STATUS,
        ),
        _build_resource("batch", "CronJob", "cronjobs", "cj", categories=_ALL, subresources=_STATUS, generation=True),
        _build_resource(
            "batch",
            "Job",
            "jobs",
            categories=_ALL,
            subresources=_STATUS,
            generation=True,
            fields=("status.successful",),
        ),
        _build_resource("networking.k8s.io", "IngressClass", "ingressclasses", generation=True, namespaced=False),
        _build_resource("networking.k8s.io", "Ingress", "ingresses", "ing", subresources=_STATUS, generation=True),
        _build_resource("networking.k8s.io", "NetworkPolicy", "networkpolicies", "netpol", generation=True),
        _build_resource(
            "node.k8s.io",
            "RuntimeClass",
            "runtimeclasses",
            creates_on_update=True,
            unconditional_update=False,
            namespaced=False,
        ),
        _build_resource(
            "policy",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "pdb",
            subresources=_STATUS,
            generation=True,
            unconditional_update=False,
        ),
        _build_resource(
            "rbac.authorization.k8s.io",
            "ClusterRoleBinding",
            "clusterrolebindings",
            creates_on_update=True,
            namespaced=False,
        ),
        _build_resource(
            "rbac.authorization.k8s.io", "ClusterRole", "clusterroles", creates_on_update=True, namespaced=False
        ),
        _build_resource("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", creates_on_update=True),
        _build_resource("rbac.authorization.k8s.io", "Role", "roles", creates_on_update=True),
        _build_resource("scheduling.k8s.io", "PriorityClass", "priorityclasses", "pc", namespaced=False),
        _build_resource("storage.k8s.io", "StorageClass", "storageclasses", "sc", namespaced=False),
        _build_resource(
            "apiextensions.k8s.io",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "crd",
            "crds",
            categories=("api-extensions",),
            subresources=_STATUS,
            generation=True,
            unconditional_update=False,
            namespaced=False,
        ),
        _build_resource(
            "coordination.k8s.io",
            "Lease",
            "leases",
            creates_on_update=True,
            unconditional_update=False,
        ),
        _build_resource("discovery.k8s.io", "EndpointSlice", "endpointslices", generation=True),
        _build_resource(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            generation=True,
            namespaced=False,
            schema=build_configuration_schema(is_mutating=True),
        ),
        _build_resource(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            generation=True,
            namespaced=False,
            schema=build_configuration_schema(is_mutating=False),
        ),
    )

"""The built-in kinds that the embedded server serves, as a table: what discovery, storage and selectors need of them.

Names, verbs, short names, categories and selectable fields are those that a kube-apiserver v1.36 tells of itself.
"""

from __future__ import annotations

from konverge.apply import Schema, builtin_schema
from konverge.apply.schema import DEDUCED
from konverge.kube import GroupVersionKind, ResourceMapping
from konverge.localcluster.conversion import Conversion, EventForm
from konverge.localcluster.resources import Resource
from konverge.localcluster.webhooks.kinds import configuration_schema

__all__ = ["builtin_resources"]

_VERBS = frozenset({"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"})
_ALL = ("all",)
_STATUS = frozenset({"status"})
_SCALABLE = frozenset({"status", "scale"})


def _resource(
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
    conversion: Conversion | None = None,
    schema: Schema | None = None,
) -> Resource:
    mapping = ResourceMapping(
        gvk=GroupVersionKind(group, version, kind),
        plural=plural,
        namespaced=namespaced,
        singular=kind.lower(),
        short_names=short_names,
        verbs=verbs,
        subresources=subresources,
        categories=categories,
    )
    return Resource(
        mapping=mapping,
        storage=storage or mapping.plural + (f".{group}" if group else ""),
        has_generation=generation,
        creates_on_update=creates_on_update,
        unconditional_update=unconditional_update,
        selectable_fields=fields,
        schema=schema or builtin_schema(mapping.gvk) or DEDUCED,
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


def builtin_resources() -> tuple[Resource, ...]:
    """All of them, in the order in which discovery lists them (it sorts within a group by itself)."""
    return (
        _resource("", "ConfigMap", "configmaps", "cm"),
        _resource("", "Endpoints", "endpoints", "ep", creates_on_update=True),
        _resource("", "Event", "events", "ev", creates_on_update=True, fields=_EVENT_FIELDS),
        _resource(
            "",
            "Namespace",
            "namespaces",
            "ns",
            verbs=_VERBS - {"deletecollection"},
            subresources=frozenset({"status", "finalize"}),
            fields=("status.phase",),
            namespaced=False,
        ),
        _resource("", "Node", "nodes", "no", subresources=_STATUS, fields=("spec.unschedulable",), namespaced=False),
        _resource("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=_STATUS),
        _resource("", "PersistentVolume", "persistentvolumes", "pv", subresources=_STATUS, namespaced=False),
        _resource(
            "",
            "Pod",
            "pods",
            "po",
            categories=_ALL,
            subresources=frozenset({"status", "binding", "eviction", "log"}),
            generation=True,
            fields=_POD_FIELDS,
        ),
        _resource("", "Secret", "secrets", fields=("type",)),
        _resource("", "ServiceAccount", "serviceaccounts", "sa", subresources=frozenset({"token"})),
        _resource(
            "",
            "Service",
            "services",
            "svc",
            categories=_ALL,
            subresources=_STATUS,
            creates_on_update=True,
            fields=("spec.clusterIP", "spec.type"),
        ),
        _resource("apps", "ControllerRevision", "controllerrevisions"),
        _resource("apps", "DaemonSet", "daemonsets", "ds", categories=_ALL, subresources=_STATUS, generation=True),
        _resource(
            "apps", "Deployment", "deployments", "deploy", categories=_ALL, subresources=_SCALABLE, generation=True
        ),
        _resource(
            "apps",
            "ReplicaSet",
            "replicasets",
            "rs",
            categories=_ALL,
            subresources=_SCALABLE,
            generation=True,
            fields=("status.replicas",),
        ),
        _resource(
            "apps", "StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=_SCALABLE, generation=True
        ),
        # The same objects as the core group's events, under other field names.
        _resource(
            "events.k8s.io",
            "Event",
            "events",
            "ev",
            storage="events",
            creates_on_update=True,
            fields=_EVENTS_GROUP_FIELDS,
            conversion=EventForm(),
        ),
        _resource(
            "autoscaling",
            "HorizontalPodAutoscaler",
            "horizontalpodautoscalers",
            "hpa",
            version="v2",
            categories=_ALL,
            subresources=_STATUS,
        ),
        _resource("batch", "CronJob", "cronjobs", "cj", categories=_ALL, subresources=_STATUS, generation=True),
        _resource(
            "batch",
            "Job",
            "jobs",
            categories=_ALL,
            subresources=_STATUS,
            generation=True,
            fields=("status.successful",),
        ),
        _resource("networking.k8s.io", "Ingress", "ingresses", "ing", subresources=_STATUS, generation=True),
        _resource("networking.k8s.io", "NetworkPolicy", "networkpolicies", "netpol", generation=True),
        _resource(
            "policy",
            "PodDisruptionBudget",
            "poddisruptionbudgets",
            "pdb",
            subresources=_STATUS,
            generation=True,
            unconditional_update=False,
        ),
        _resource(
            "rbac.authorization.k8s.io",
            "ClusterRoleBinding",
            "clusterrolebindings",
            creates_on_update=True,
            namespaced=False,
        ),
        _resource("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", creates_on_update=True, namespaced=False),
        _resource("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", creates_on_update=True),
        _resource("rbac.authorization.k8s.io", "Role", "roles", creates_on_update=True),
        _resource("storage.k8s.io", "StorageClass", "storageclasses", "sc", namespaced=False),
        _resource(
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
        _resource(
            "coordination.k8s.io",
            "Lease",
            "leases",
            creates_on_update=True,
            unconditional_update=False,
        ),
        _resource("discovery.k8s.io", "EndpointSlice", "endpointslices", generation=True),
        _resource(
            "admissionregistration.k8s.io",
            "MutatingWebhookConfiguration",
            "mutatingwebhookconfigurations",
            generation=True,
            namespaced=False,
            schema=configuration_schema(is_mutating=True),
        ),
        _resource(
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration",
            "validatingwebhookconfigurations",
            generation=True,
            namespaced=False,
            schema=configuration_schema(is_mutating=False),
        ),
    )

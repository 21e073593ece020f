"""The list of what the embedded cluster lacks, collected from the code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources
from konverge_cluster._internal.embedded.limitations.ignored_fields import iter_ignored_fields
from konverge_cluster._internal.embedded.limitations.unserved_resources import iter_unserved
from konverge_cluster._internal.embedded.validation.cel_expressions import UNSUPPORTED_FUNCTIONS

__all__ = ["COVERED_CONTROLLERS", "MISSING_CONTROLLERS", "Limitation", "format_limitations", "list_limitations"]


class Limitation(NamedTuple):
    """One thing that a real cluster has and the embedded cluster has not.

    Attributes:
        area: The part of the cluster.
        subject: The resource, the field, the controller or the feature.
        effect: What happens instead.
    """

    area: str
    subject: str
    effect: str


# The controllers of kube-controller-manager that simulated ones replace, each with the name of the simulated one.
COVERED_CONTROLLERS: Mapping[str, str] = {
    "clusterrole-aggregation-controller": "clusterrole-aggregation-controller",
    "daemonset-controller": "daemon-set-controller",
    "deployment-controller": "deployment-controller",
    "disruption-controller": "disruption-controller",
    "endpoints-controller": "endpoints-controller",
    "endpointslice-controller": "endpoints-controller",
    "garbage-collector-controller": "garbage-collector-controller",
    "job-controller": "job-controller",
    "namespace-controller": "namespace-controller",
    "persistentvolume-binder-controller": "persistentvolume-controller",
    "persistentvolume-expander-controller": "volume-provisioner",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "replicaset-controller": "replicaset-controller",
    "root-ca-certificate-publisher-controller": "serviceaccount-controller",
    "serviceaccount-controller": "serviceaccount-controller",
    "statefulset-controller": "statefulset-controller",
    "ttl-after-finished-controller": "job-controller",
}
# The other controllers of kube-controller-manager, each with what is not done.
MISSING_CONTROLLERS: Mapping[str, str] = {
    "bootstrap-signer-controller": "no cluster-info for new nodes",
    "certificatesigningrequest-approving-controller": "no certificates of nodes",
    "certificatesigningrequest-cleaner-controller": "no certificates of nodes",
    "certificatesigningrequest-signing-controller": "no certificates of nodes",
    "cloud-node-lifecycle-controller": "no cloud",
    "cronjob-controller": "a CronJob creates no Jobs",
    "device-taint-eviction-controller": "no devices",
    "endpointslice-mirroring-controller": "Endpoints that a client writes get no EndpointSlice",
    "ephemeral-volume-controller": "an ephemeral volume gets no claim",
    "horizontal-pod-autoscaler-controller": "an autoscaler gets no status and scales nothing",
    "kube-apiserver-serving-clustertrustbundle-publisher-controller": "no ClusterTrustBundles",
    "legacy-serviceaccount-token-cleaner-controller": "no tokens in Secrets",
    "node-ipam-controller": "the node has no range of pod addresses",
    "node-lifecycle-controller": "the conditions of a node have no consequences",
    "node-route-controller": "no cloud",
    "persistentvolume-attach-detach-controller": "no volumes are attached",
    "pod-garbage-collector-controller": "finished pods remain",
    "podcertificaterequest-cleaner-controller": "no certificates of pods",
    "podgroup-protection-controller": "no PodGroups",
    "replicationcontroller-controller": "a ReplicationController creates no pods",
    "resourceclaim-controller": "no devices",
    "resourcepoolstatusrequest-controller": "no devices",
    "resourcequota-controller": "a ResourceQuota gets no status",
    "selinux-warning-controller": "no SELinux",
    "service-cidr-controller": "one fixed range of Service addresses",
    "service-lb-controller": "a Service of the type LoadBalancer gets no address",
    "serviceaccount-token-controller": "no tokens in Secrets",
    "storage-version-migrator-controller": "stored objects are not rewritten in another version",
    "storageversion-garbage-collector-controller": "one API server only",
    "taint-eviction-controller": "no pod is evicted by a taint",
    "token-cleaner-controller": "no bootstrap tokens",
    "ttl-controller": "no kubelet reads Secrets",
    "validatingadmissionpolicy-status-controller": "no admission policies",
    "volumeattributesclass-protection-controller": "no VolumeAttributesClasses",
}
# What no table of the code contains.
_FEATURES = (
    Limitation("Requests", "compression, Audit-Id, priority and fairness", "the response has no such headers"),
    Limitation(
        "Requests", "protobuf, CBOR and YAML responses", "the response is JSON; a client that needs another gets 406"
    ),
    Limitation("Requests", "protobuf bodies of definitions and webhook configurations", "refused; send JSON"),
    Limitation("Requests", "/openapi/v2, /metrics, /logs", "refused with 404"),
    Limitation("Requests", "descriptions in /openapi/v3", "kubectl explain shows types only"),
    Limitation("Access", "users by client certificate or OpenID Connect", "only tokens are known"),
    Limitation(
        "Access", "impersonate-on and the other constrained verbs", "only the verb impersonate allows to act as others"
    ),
    Limitation(
        "Access",
        "admin, edit, view and the other default roles",
        'only with roles (authorization="rbac"); otherwise everyone may do everything, and they do not exist',
    ),
    Limitation("Admission", "webhooks for pods/binding, pods/eviction and serviceaccounts/token", "not called"),
    Limitation("Admission", "matchConditions of webhooks", "refused"),
    Limitation("Admission", "AppArmor profiles in annotations", "not copied to the fields of the containers"),
    Limitation(
        "Custom resources", "types and costs of CEL rules", "not checked with the definition, but when a rule runs"
    ),
    Limitation(
        "Custom resources", "owners of fields of another version behind a conversion webhook", "kept unconverted"
    ),
    Limitation("Nodes", "taints, and cordoned nodes", "the scheduler does not look at them"),
    Limitation(
        "Nodes", "containers", "nothing runs: image rules decide when a pod is ready, and logs have a few lines"
    ),
    Limitation(
        "Nodes", "volumes, environment and probes of containers", "a missing ConfigMap or Secret does not hold a pod"
    ),
    Limitation(
        "Network", "Services, Ingresses, NetworkPolicies", "objects only: no traffic, no addresses from outside"
    ),
)


_PROSE_AREAS = frozenset(limitation.area for limitation in _FEATURES)


def list_limitations() -> list[Limitation]:
    """Return everything that the embedded cluster lacks, by area."""
    found = [*_list_unserved(), *_list_controllers(), *_list_ignored(), *_list_functions(), *_FEATURES]
    areas = list(dict.fromkeys(limitation.area for limitation in found))
    return sorted(found, key=lambda limitation: areas.index(limitation.area))


def format_limitations(limitations: Iterable[Limitation], *, markdown: bool) -> str:
    """Return the list as text: the subjects and effects of each area below its name."""
    areas: dict[str, list[Limitation]] = {}
    for limitation in limitations:
        areas.setdefault(limitation.area, []).append(limitation)
    blocks = []
    for area, found in areas.items():
        if markdown:
            rows = [f"| {_format_cell(limitation)} | {limitation.effect} |" for limitation in found]
            blocks.append("\n".join([f"### {area}", "", "| what | on the embedded cluster |", "|---|---|", *rows]))
        else:
            width = max(len(limitation.subject) for limitation in found)
            rows = [f"  {limitation.subject:<{width}}  {limitation.effect}" for limitation in found]
            blocks.append("\n".join([area, *rows]))
    return "\n\n".join(blocks)


def _format_cell(limitation: Limitation) -> str:
    return limitation.subject if limitation.area in _PROSE_AREAS else f"`{limitation.subject}`"


def _list_unserved() -> Iterator[Limitation]:
    for api_version, name, kind in iter_unserved():
        is_part = "/" in name
        subject = f"{name} ({api_version})" if is_part else f"{kind} ({api_version})"
        yield Limitation("Subresources" if is_part else "Kinds", subject, "not served: 404")


def _list_controllers() -> Iterator[Limitation]:
    for name, effect in MISSING_CONTROLLERS.items():
        yield Limitation("Controllers", name, effect)


def _list_ignored() -> Iterator[Limitation]:
    kinds = {resource.storage: resource.gvk.kind for resource in reversed(list_builtin_resources())}
    for storage, field in iter_ignored_fields():
        subject = f"{kinds[storage]} {field.path}".rstrip()
        yield Limitation("Fields without effect", subject, f"{field.effect}; warned of in the response")


def _list_functions() -> Iterator[Limitation]:
    two_variables = {"all", "exists"}
    names = [f"{name} with two variables" if name in two_variables else name for name in sorted(UNSUPPORTED_FUNCTIONS)]
    effect = "not checked, and warned of in the response"
    yield Limitation("Custom resources", "CEL rules with optional fields", effect)
    yield Limitation("Custom resources", "CEL rules with other functions", f"{effect}: {', '.join(names)}")

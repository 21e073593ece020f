"""Access to resources, and the RBAC rules that permit it: a minimal and deterministic list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from konverge._internal.crd import find_definition, to_plural
from konverge._internal.kube import GroupVersionKind, Object

__all__ = [
    "READ",
    "WRITE",
    "AccessScope",
    "PolicyRule",
    "ResourceAccess",
    "build_rules",
    "guess_plural",
    "is_cluster_scoped",
]

READ = ("get", "list", "watch")
"""The verbs for reads from a shared cache."""

WRITE = ("create", "patch")
"""The verbs for server-side apply: the API server requires both if the object does not exist yet."""

# The cluster-scoped built-in kinds, which a Role cannot grant.
_CLUSTER_SCOPED = frozenset(
    {
        ("", "ComponentStatus"),
        ("", "Namespace"),
        ("", "Node"),
        ("", "PersistentVolume"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("apiregistration.k8s.io", "APIService"),
        ("authentication.k8s.io", "SelfSubjectReview"),
        ("authentication.k8s.io", "TokenReview"),
        ("authorization.k8s.io", "SelfSubjectAccessReview"),
        ("authorization.k8s.io", "SelfSubjectRulesReview"),
        ("authorization.k8s.io", "SubjectAccessReview"),
        ("certificates.k8s.io", "CertificateSigningRequest"),
        ("certificates.k8s.io", "ClusterTrustBundle"),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
        ("networking.k8s.io", "IPAddress"),
        ("networking.k8s.io", "IngressClass"),
        ("networking.k8s.io", "ServiceCIDR"),
        ("node.k8s.io", "RuntimeClass"),
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
        ("resource.k8s.io", "DeviceClass"),
        ("resource.k8s.io", "ResourceSlice"),
        ("scheduling.k8s.io", "PriorityClass"),
        ("storage.k8s.io", "CSIDriver"),
        ("storage.k8s.io", "CSINode"),
        ("storage.k8s.io", "StorageClass"),
        ("storage.k8s.io", "VolumeAttachment"),
        ("storage.k8s.io", "VolumeAttributesClass"),
    }
)
# The kinds whose plural does not follow the rule for plurals.
_PLURALS = {("", "Endpoints"): "endpoints", ("gateway.networking.k8s.io", "Gateway"): "gateways"}


class AccessScope(Enum):
    """The scope of an access."""

    OWNERS = "in the namespaces of the owners"
    CLUSTER = "for kinds without a namespace"
    HOME = "in the operator's own namespace"
    NAMESPACE = "in one other namespace"


@dataclass(frozen=True, slots=True, order=True)
class PolicyRule:
    """A rule of a Role or ClusterRole; every tuple is sorted."""

    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    resource_names: tuple[str, ...] = ()

    def to_manifest(self) -> Object:
        """Return the rule in the form of a role."""
        manifest: Object = {"apiGroups": list(self.api_groups), "resources": list(self.resources)}
        if self.resource_names:
            manifest["resourceNames"] = list(self.resource_names)
        return manifest | {"verbs": list(self.verbs)}


@dataclass(frozen=True, slots=True)
class ResourceAccess:
    """Access to the objects of one resource.

    Args:
        group: The API group.
        resource: The plural, and after a slash the subresource: ``pods/log``.
        verbs: The API's verbs.
        scope: The scope of the access.
        names: The names of the objects; empty for all. RBAC cannot restrict a creation or a list to names.
        namespace: The namespace for the scope `AccessScope.NAMESPACE`; otherwise empty.
    """

    group: str
    resource: str
    verbs: tuple[str, ...]
    scope: AccessScope = AccessScope.OWNERS
    names: tuple[str, ...] = ()
    namespace: str = ""

    @classmethod
    def of(
        cls, kind: GroupVersionKind | type[Any], verbs: Iterable[str], *, plural: str = "", subresource: str = ""
    ) -> ResourceAccess:
        """Return the access to a kind.

        Args:
            kind: The kind, or a custom resource class.
            verbs: The API's verbs, for example `READ`.
            plural: The kind's plural (default: by the API's rule, which holds for all built-in kinds).
            subresource: A subresource, for example ``status``.

        Raises:
            ValueError: There are no verbs.
            konverge.errors.BuildError: The class is not a custom resource.
        """
        verbs = tuple(verbs)
        if not verbs:
            raise ValueError(f"the access to {kind}: expected at least one verb, found none")
        if isinstance(kind, GroupVersionKind):
            resource, is_namespaced, group = guess_plural(kind), not is_cluster_scoped(kind), kind.group
        else:
            definition = find_definition(kind)
            resource, is_namespaced, group = definition.plural, definition.namespaced, definition.gvk.group
        resource = plural or resource
        return cls(
            group,
            f"{resource}/{subresource}" if subresource else resource,
            verbs,
            AccessScope.OWNERS if is_namespaced else AccessScope.CLUSTER,
        )


def build_rules(uses: Iterable[ResourceAccess]) -> tuple[PolicyRule, ...]:
    """Build the minimal sorted list of rules; resources with the same verbs share one rule."""
    verbs: defaultdict[tuple[str, str, tuple[str, ...]], set[str]] = defaultdict(set)
    for use in uses:
        verbs[use.group, use.resource, tuple(sorted(use.names))].update(use.verbs)
    resources: defaultdict[tuple[str, tuple[str, ...], tuple[str, ...]], set[str]] = defaultdict(set)
    for (group, resource, names), used in verbs.items():
        used -= verbs.get((group, resource, ()), set()) if names else set()
        if used:
            resources[group, tuple(sorted(used)), names].add(resource)
    return tuple(
        sorted(
            PolicyRule((group,), tuple(sorted(names_of_resources)), used_verbs, names)
            for (group, used_verbs, names), names_of_resources in resources.items()
        )
    )


def is_cluster_scoped(gvk: GroupVersionKind) -> bool:
    """Return True for a cluster-scoped built-in kind; kinds that are not built in count as namespaced."""
    return gvk.group_kind in _CLUSTER_SCOPED


def guess_plural(gvk: GroupVersionKind) -> str:
    """Return the plural of a kind: correct for built-in kinds, and for others that follow the rule."""
    return _PLURALS.get(gvk.group_kind) or to_plural(gvk.kind)

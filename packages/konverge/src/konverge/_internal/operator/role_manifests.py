"""The manifests that grant an operator its permissions: a ServiceAccount, roles and bindings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge._internal.operator.observed_access import ObservedAccess
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge._internal.operator.rbac_rules import AccessScope, PolicyRule
from konverge.errors import ConfigurationError

__all__ = ["OBSERVED", "build_role_manifests"]

OBSERVED = "konverge.dev/observed"
"""The annotation of a role with the access that only a run has shown: resource and verbs, separated by semicolons."""

_API_GROUP = "rbac.authorization.k8s.io"


def build_role_manifests(
    permissions: RequiredPermissions, account: ObjectKey, namespaces: Sequence[str] = ()
) -> list[Object]:
    """Build the ServiceAccount, the roles with the same name and their bindings, in the order of their application.

    Args:
        permissions: The permissions.
        account: The ServiceAccount of the operator's Pods; its namespace has the Leases.
        namespaces: The namespaces of the owners, one Role each; if empty, a ClusterRole for all namespaces.

    Raises:
        ConfigurationError: A name is invalid.
    """
    mistakes = [
        *(f"account {account.name!r}: {mistake}" for mistake in validate_dns_subdomain(account.name)),
        *(
            f"namespace {namespace!r}: {mistake}"
            for namespace in (account.namespace, *namespaces)
            for mistake in validate_dns_label(namespace)
        ),
    ]
    if mistakes:
        raise ConfigurationError("; ".join(mistakes))
    metadata = {"name": account.name, "namespace": account.namespace}
    manifests: list[Object] = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}]
    everywhere = permissions.cluster_rules
    elsewhere = dict(permissions.other_rules)
    if not namespaces:
        everywhere = (*permissions.rules, *everywhere)
    manifests += _build_role_and_binding("", everywhere, account, _list_observed(permissions, "", bool(namespaces)))
    for namespace in sorted({*namespaces, account.namespace, *elsewhere}):
        rules = permissions.rules if namespace in namespaces else ()
        home = permissions.home_rules if namespace == account.namespace else ()
        observed = _list_observed(permissions, namespace, namespace in namespaces)
        manifests += _build_role_and_binding(
            namespace, (*rules, *home, *elsewhere.get(namespace, ())), account, observed
        )
    return manifests


def _list_observed(permissions: RequiredPermissions, namespace: str, has_roles: bool) -> Iterator[ObservedAccess]:
    """Yield the observed access in one role.

    Args:
        permissions: The permissions.
        namespace: The namespace of the role; empty for the ClusterRole.
        has_roles: True if the namespaces of the owners have their own roles; for a namespace, if it is one of them.
    """
    for access in permissions.observed:
        if access.scope == AccessScope.OWNERS.name:
            is_in_role = has_roles if namespace else not has_roles
        else:
            is_in_role = access.namespace == namespace
        if is_in_role:
            yield access


def _build_role_and_binding(
    namespace: str, rules: Sequence[PolicyRule], account: ObjectKey, observed: Iterable[ObservedAccess]
) -> Iterator[Object]:
    """Yield a role and its binding; nothing without rules."""
    if not rules:
        return
    kind = "Role" if namespace else "ClusterRole"
    metadata: Object = {"name": account.name, "namespace": namespace} if namespace else {"name": account.name}
    listed = [rule.to_manifest() for rule in sorted(rules)]
    text = "; ".join(map(str, sorted(observed)))
    annotations = {"annotations": {OBSERVED: text}} if text else {}
    yield {
        "apiVersion": f"{_API_GROUP}/v1",
        "kind": kind,
        "metadata": metadata | annotations,
        "rules": listed,
    }
    yield {
        "apiVersion": f"{_API_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _API_GROUP, "kind": kind, "name": account.name},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }

"""The manifests that grant an operator its permissions: an account, roles, and what binds them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from konverge.errors import ConfigurationError
from konverge.kube import Object, ObjectKey
from konverge.kube.name_validation import validate_dns_label, validate_dns_subdomain
from konverge.operator.permission_derivation import RequiredPermissions
from konverge.operator.rbac_rules import PolicyRule

__all__ = ["build_role_manifests"]

_API_GROUP = "rbac.authorization.k8s.io"


def build_role_manifests(
    permissions: RequiredPermissions, account: ObjectKey, namespaces: Sequence[str] = ()
) -> list[Object]:
    """The ServiceAccount, the roles of the same name and their bindings, in the order in which they can be applied.

    Args:
        permissions: What is granted.
        account: The ServiceAccount that the operator's Pods run under; its namespace is where leases are.
        namespaces: The namespaces of the owners, each of which gets a Role; none for a ClusterRole for all of them.

    Raises:
        ConfigurationError: A name is none.
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
    found: list[Object] = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}]
    everywhere = permissions.cluster_rules if namespaces else (*permissions.rules, *permissions.cluster_rules)
    found += _build_role_and_binding("", everywhere, account)
    for namespace in sorted({*namespaces, account.namespace}):
        rules = permissions.rules if namespace in namespaces else ()
        home = permissions.home_rules if namespace == account.namespace else ()
        found += _build_role_and_binding(namespace, (*rules, *home), account)
    return found


def _build_role_and_binding(namespace: str, rules: Sequence[PolicyRule], account: ObjectKey) -> Iterator[Object]:
    """A role and its binding; nothing without rules."""
    if not rules:
        return
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": account.name, "namespace": namespace} if namespace else {"name": account.name}
    listed = [rule.to_manifest() for rule in sorted(rules)]
    yield {"apiVersion": f"{_API_GROUP}/v1", "kind": kind, "metadata": metadata, "rules": listed}
    yield {
        "apiVersion": f"{_API_GROUP}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _API_GROUP, "kind": kind, "name": account.name},
        "subjects": [{"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}],
    }

"""The rules that the operator's account has in the cluster, compared with those that the new version needs.

The rules come from the roles that are bound to the account. Another authorizer than RBAC can add permissions, which no
role shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.operator.permission_check import allows, group_missing, list_required_access
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge._internal.upgrade.findings import PermissionsReport
from konverge.errors import NotFoundError

__all__ = ["GrantedRules", "compare_permissions", "read_granted_rules"]

_GROUP = "rbac.authorization.k8s.io"
_ALL = ""


@dataclass(slots=True)
class GrantedRules:
    """The rules of an account.

    Attributes:
        roles: The names of the bound roles.
        rules: The rules by namespace; empty for all namespaces.
        own: The rules of the roles with the account's own name, as ``konverge rbac`` prints them, by namespace.
    """

    roles: list[str] = field(default_factory=list)
    rules: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    own: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    def list_rules(self, namespace: str) -> list[Mapping[str, Any]]:
        """Return the rules that apply in a namespace; empty for the rules in all namespaces."""
        return [*self.rules.get(_ALL, ()), *(self.rules.get(namespace, ()) if namespace else ())]


async def read_granted_rules(client: Client, account: ObjectKey) -> GrantedRules:
    """Read the roles that are bound to an account or to a group of all accounts.

    Raises:
        konverge.errors.KonvergeError: The bindings or roles cannot be read.
    """
    granted = GrantedRules()
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        async for binding in client.items(GroupVersionKind(_GROUP, "v1", kind)):
            if any(_is_subject(subject, account, binding) for subject in binding.get("subjects") or ()):
                await _add_role(client, binding, account, granted)
    return granted


async def _add_role(client: Client, binding: Object, account: ObjectKey, granted: GrantedRules) -> None:
    reference, namespace = binding["roleRef"], ObjectKey.of(binding).namespace
    kind, name = reference["kind"], reference["name"]
    key = ObjectKey(namespace if kind == "Role" else "", name)
    try:
        role = await client.get(GroupVersionKind(_GROUP, "v1", kind), key)
    except NotFoundError:
        return  # a binding to a role that does not exist grants nothing
    rules = [rule for rule in role.get("rules") or () if isinstance(rule, Mapping)]
    granted.rules.setdefault(namespace, []).extend(rules)
    is_own = any(_is_account(subject, account, binding) for subject in binding.get("subjects") or ())
    if is_own:
        granted.roles.append(f"{kind} {key}")
        if name == account.name:
            granted.own.setdefault(namespace, []).extend(rules)


def _is_subject(subject: Mapping[str, Any], account: ObjectKey, binding: Object) -> bool:
    if subject.get("kind") == "Group":
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated")
        return subject.get("name") in groups
    return _is_account(subject, account, binding)


def _is_account(subject: Mapping[str, Any], account: ObjectKey, binding: Object) -> bool:
    if subject.get("kind") == "User":
        return bool(subject.get("name") == f"system:serviceaccount:{account.namespace}:{account.name}")
    namespace = subject.get("namespace") or ObjectKey.of(binding).namespace
    return subject.get("kind") == "ServiceAccount" and (namespace, subject.get("name")) == tuple(account)


def compare_permissions(
    granted: GrantedRules,
    needed: RequiredPermissions,
    possible: RequiredPermissions,
    account: ObjectKey,
    namespaces: Sequence[str] = (),
) -> PermissionsReport:
    """Return the rules that the account lacks and those that nothing uses.

    Args:
        granted: The rules in the cluster.
        needed: The permissions that each run of the new version needs.
        possible: The permissions that it needs with every option of ``konverge run``.
        account: The ServiceAccount.
        namespaces: The namespaces of the owners; if empty, those in which the account has rules.
    """
    places = tuple(namespaces) or _find_namespaces(granted, needed, account)
    missing = [
        access
        for access in dict.fromkeys(list_required_access(needed, account.namespace, places))
        if not allows(granted.list_rules(access.namespace), access)
    ]
    return PermissionsReport(
        account=str(account),
        roles=tuple(dict.fromkeys(granted.roles)),
        missing=tuple(str(entry) for entry in group_missing(missing, account.name)),
        unneeded=tuple(_iter_unneeded(granted, possible, account)),
        gaps=needed.gaps,
    )


def _find_namespaces(granted: GrantedRules, needed: RequiredPermissions, account: ObjectKey) -> tuple[str, ...]:
    """Return the namespaces of the owners, by the rules: all if a rule for all namespaces permits any access."""
    required = list(list_required_access(RequiredPermissions(needed.rules), account.namespace, ()))
    everywhere = granted.rules.get(_ALL, ())
    if any(allows(everywhere, access) for access in required):
        return ()
    return tuple(
        sorted(
            namespace
            for namespace, rules in granted.rules.items()
            if namespace and any(allows(rules, access) for access in required)
        )
    )


def _iter_unneeded(granted: GrantedRules, possible: RequiredPermissions, account: ObjectKey) -> Iterator[str]:
    """Yield each verb on a resource in the operator's own roles that no option of this version uses."""
    used = {
        (access.group, access.resource, access.verb) for access in list_required_access(possible, account.namespace, ())
    }
    for namespace, rules in sorted(granted.own.items()):
        where = f"Role {account.name} in namespace {namespace}" if namespace else f"ClusterRole {account.name}"
        unneeded: dict[tuple[str, str], list[str]] = {}
        for group, resource, verb in _iter_grants(rules):
            if (group, resource, verb) not in used and verb not in unneeded.setdefault((group, resource), []):
                unneeded[group, resource].append(verb)
        for (group, resource), verbs in sorted(unneeded.items()):
            if verbs:
                yield f"{where}: {', '.join(sorted(verbs))} of {f'{resource}.{group}' if group else resource}"


def _iter_grants(rules: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for rule in rules:
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                for verb in rule.get("verbs") or ():
                    yield group, resource, verb

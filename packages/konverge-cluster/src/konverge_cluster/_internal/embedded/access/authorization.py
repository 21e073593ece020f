"""Role-based access control (RBAC): evaluation of the stored Roles and bindings for a user and a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from konverge._internal.kube import Object, ObjectKey
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.access.request_attributes import RequestAttributes
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = [
    "AlwaysAllowAuthorizer",
    "AuthorizationDecision",
    "Authorizer",
    "RbacAuthorizer",
    "UserRules",
    "new_forbidden",
]

_GROUP = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"
_EVERYTHING: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERY_PATH: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}


class AuthorizationDecision(NamedTuple):
    """The result of an authorization check, with its reason."""

    allowed: bool
    reason: str = ""


class UserRules(NamedTuple):
    """The rules that apply to a user, and the errors of their collection."""

    rules: list[Object]
    error: str = ""


class Authorizer(Protocol):
    """Decides which requests a user may send."""

    def authorize(self, user: User, attributes: RequestAttributes) -> AuthorizationDecision:
        """Decide whether the user may send the request."""

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """Return all rules that apply to the user in a namespace."""


class AlwaysAllowAuthorizer:
    """Allows every request of every user."""

    def authorize(self, user: User, attributes: RequestAttributes) -> AuthorizationDecision:
        """Allow the request without any check."""
        return AuthorizationDecision(True, "the embedded cluster allows everything")

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """Return rules that allow everything."""
        return UserRules([_EVERYTHING, _EVERY_PATH])


class RbacAuthorizer:
    """Decides by the stored Roles, ClusterRoles and their bindings.

    Args:
        storage: The storage with these objects.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def authorize(self, user: User, attributes: RequestAttributes) -> AuthorizationDecision:
        """Allow the request if a rule of a bound role matches."""
        if _MASTERS in user.groups:
            return AuthorizationDecision(True)
        problems: list[str] = []
        for rule, source in self._iter_rules(user, attributes.namespace, problems):
            if _allows(rule, attributes):
                return AuthorizationDecision(True, f"RBAC: allowed by {source}")
        return AuthorizationDecision(False, f"RBAC: {_join_errors(problems)}" if problems else "")

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """Return the rules of all roles that are bound to the user."""
        if _MASTERS in user.groups:
            return UserRules([_EVERYTHING, _EVERY_PATH])
        problems: list[str] = []
        rules = [rule for rule, _ in self._iter_rules(user, namespace, problems)]
        return UserRules(rules, _join_errors(problems))

    def _iter_rules(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[Object, str]]:
        for binding in self._storage.list_objects(f"clusterrolebindings.{_GROUP}"):
            yield from self._iter_bound_rules(binding.object, "ClusterRoleBinding", user, "", problems)
        if namespace:
            for binding in self._storage.list_objects(f"rolebindings.{_GROUP}", namespace):
                yield from self._iter_bound_rules(binding.object, "RoleBinding", user, namespace, problems)

    def _iter_bound_rules(
        self, binding: Object, kind: str, user: User, namespace: str, problems: list[str]
    ) -> Iterator[tuple[Object, str]]:
        subject = next(
            (entry for entry in binding.get("subjects") or () if _matches_subject(entry, user, namespace)), None
        )
        if subject is None:
            return
        reference = binding["roleRef"]
        role = self._find_role(reference, namespace)
        if role is None:
            problems.append(f"{reference['kind'].lower()}.{_GROUP} {quote(reference['name'])} not found")
            return
        name = binding["metadata"]["name"]
        full_name = f"{name}/{namespace}" if namespace else name
        role_name = f"{reference['kind']} {quote(reference['name'])}"
        source = f"{kind} {quote(full_name)} of {role_name} to {_format_subject(subject)}"
        for rule in role.get("rules") or ():
            yield rule, source

    def _find_role(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        if reference["kind"] == "ClusterRole":
            stored = self._storage.get(f"clusterroles.{_GROUP}", ObjectKey("", reference["name"]))
        else:
            stored = self._storage.get(f"roles.{_GROUP}", ObjectKey(namespace, reference["name"]))
        return None if stored is None else stored.object


def _join_errors(problems: list[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _matches_subject(subject: Mapping[str, Any], user: User, namespace: str) -> bool:
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(name == user.name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            return user.name == f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}"
        case _:
            return False


def _format_subject(subject: Mapping[str, Any]) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace', '')}"
    return f"{subject['kind']} {quote(name)}"


def _allows(rule: Mapping[str, Any], attributes: RequestAttributes) -> bool:
    if not _matches_any(rule.get("verbs"), attributes.verb):
        return False
    if attributes.path:
        return any(_matches_path(pattern, attributes.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _matches_any(rule.get("apiGroups"), attributes.group)
        and any(_matches_resource(pattern, attributes) for pattern in rule.get("resources") or ())
        and (not names or attributes.name in names)
    )


def _matches_any(patterns: list[str] | None, word: str) -> bool:
    return patterns is not None and ("*" in patterns or word in patterns)


def _matches_resource(pattern: str, attributes: RequestAttributes) -> bool:
    if pattern in ("*", attributes.full_resource):
        return True
    return bool(attributes.subresource) and pattern == f"*/{attributes.subresource}"


def _matches_path(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def new_forbidden(user: User, attributes: RequestAttributes, reason: str) -> ForbiddenError:
    """Return error 403 with the text of a real server."""
    why = f": {reason}" if reason else ""
    who = f"User {quote(user.name)} cannot {attributes.verb}"
    if attributes.path:
        return ForbiddenError(f"forbidden: {who} path {quote(attributes.path)}{why}")
    where = f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    what = f"{attributes.resource}.{attributes.group}" if attributes.group else attributes.resource
    named = f"{what} {quote(attributes.name)}" if attributes.name else what
    details = {"name": attributes.name, "group": attributes.group, "kind": attributes.resource}
    return ForbiddenError(
        f"{named} is forbidden: {who} resource {quote(attributes.full_resource)} "
        f"in API group {quote(attributes.group)} {where}{why}",
        details={name: value for name, value in details.items() if value},
    )

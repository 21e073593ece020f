"""Role-based access control: whether the stored Roles and bindings let somebody do something, and by which of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from konverge.errors import ForbiddenError
from konverge.kube import Object, ObjectKey
from konverge_cluster.embedded.access.request_attributes import RequestAttributes
from konverge_cluster.embedded.access.users import User
from konverge_cluster.embedded.storage import Storage
from konverge_cluster.embedded.validation.field_errors import quote

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
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str = ""


class UserRules(NamedTuple):
    """The rules that hold for a user, and what went wrong when they were gathered."""

    rules: list[Object]
    error: str = ""


class Authorizer(Protocol):
    """Decides."""

    def authorize(self, user: User, wanted: RequestAttributes) -> AuthorizationDecision:
        """Whether the user may."""

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """All that the user may do in a namespace."""


class AlwaysAllowAuthorizer:
    """Everybody may do everything."""

    def authorize(self, user: User, wanted: RequestAttributes) -> AuthorizationDecision:
        """Yes."""
        return AuthorizationDecision(True, "the embedded cluster allows everything")

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """Everything."""
        return UserRules([_EVERYTHING, _EVERY_PATH])


class RbacAuthorizer:
    """The stored Roles, ClusterRoles and their bindings decide.

    Args:
        storage: Where they are.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def authorize(self, user: User, wanted: RequestAttributes) -> AuthorizationDecision:
        """Whether a rule of a role that is bound to the user allows it."""
        if _MASTERS in user.groups:
            return AuthorizationDecision(True)
        problems: list[str] = []
        for rule, source in self._iter_rules(user, wanted.namespace, problems):
            if _allows(rule, wanted):
                return AuthorizationDecision(True, f"RBAC: allowed by {source}")
        return AuthorizationDecision(False, f"RBAC: {_join_errors(problems)}" if problems else "")

    def list_rules(self, user: User, namespace: str) -> UserRules:
        """The rules of all roles that are bound to the user."""
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
            (each for each in binding.get("subjects") or () if _matches_subject(each, user, namespace)), None
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


def _allows(rule: Mapping[str, Any], wanted: RequestAttributes) -> bool:
    if not _matches_any(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_matches_path(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _matches_any(rule.get("apiGroups"), wanted.group)
        and any(_matches_resource(pattern, wanted) for pattern in rule.get("resources") or ())
        and (not names or wanted.name in names)
    )


def _matches_any(patterns: list[str] | None, word: str) -> bool:
    return patterns is not None and ("*" in patterns or word in patterns)


def _matches_resource(pattern: str, wanted: RequestAttributes) -> bool:
    if pattern in ("*", wanted.full_resource):
        return True
    return bool(wanted.subresource) and pattern == f"*/{wanted.subresource}"


def _matches_path(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def new_forbidden(user: User, wanted: RequestAttributes, reason: str) -> ForbiddenError:
    """403, as the server says it."""
    why = f": {reason}" if reason else ""
    who = f"User {quote(user.name)} cannot {wanted.verb}"
    if wanted.path:
        return ForbiddenError(f"forbidden: {who} path {quote(wanted.path)}{why}")
    where = f"in the namespace {quote(wanted.namespace)}" if wanted.namespace else "at the cluster scope"
    what = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    named = f"{what} {quote(wanted.name)}" if wanted.name else what
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return ForbiddenError(
        f"{named} is forbidden: {who} resource {quote(wanted.full_resource)} "
        f"in API group {quote(wanted.group)} {where}{why}",
        details={name: value for name, value in details.items() if value},
    )

"""Role-based access control: whether the stored Roles and bindings let somebody do something, and by which of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from konverge.errors import ForbiddenError
from konverge.kube import Object, ObjectKey
from konverge.localcluster.access.attributes import Attributes
from konverge.localcluster.access.users import User
from konverge.localcluster.storage import Storage
from konverge.localcluster.validation.mistakes import quoted

__all__ = ["AllowsEverything", "Authorizer", "Decision", "RoleBased", "RulesOf", "forbidden"]

_GROUP = "rbac.authorization.k8s.io"
_MASTERS = "system:masters"
_EVERYTHING: Object = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
_EVERY_PATH: Object = {"verbs": ["*"], "nonResourceURLs": ["*"]}


class Decision(NamedTuple):
    """Whether something is allowed, and why."""

    allowed: bool
    reason: str = ""


class RulesOf(NamedTuple):
    """The rules that hold for a user, and what went wrong when they were gathered."""

    rules: list[Object]
    problem: str = ""


class Authorizer(Protocol):
    """Decides."""

    def decide(self, user: User, wanted: Attributes) -> Decision:
        """Whether the user may."""

    def rules_of(self, user: User, namespace: str) -> RulesOf:
        """All that the user may do in a namespace."""


class AllowsEverything:
    """Everybody may do everything."""

    def decide(self, user: User, wanted: Attributes) -> Decision:
        """Yes."""
        return Decision(True, "the embedded cluster allows everything")

    def rules_of(self, user: User, namespace: str) -> RulesOf:
        """Everything."""
        return RulesOf([_EVERYTHING, _EVERY_PATH])


class RoleBased:
    """The stored Roles, ClusterRoles and their bindings decide.

    Args:
        storage: Where they are.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def decide(self, user: User, wanted: Attributes) -> Decision:
        """Whether a rule of a role that is bound to the user allows it."""
        if _MASTERS in user.groups:
            return Decision(True)
        problems: list[str] = []
        for rule, source in self._rules(user, wanted.namespace, problems):
            if _allows(rule, wanted):
                return Decision(True, f"RBAC: allowed by {source}")
        return Decision(False, f"RBAC: {_joined(problems)}" if problems else "")

    def rules_of(self, user: User, namespace: str) -> RulesOf:
        """The rules of all roles that are bound to the user."""
        if _MASTERS in user.groups:
            return RulesOf([_EVERYTHING, _EVERY_PATH])
        problems: list[str] = []
        rules = [rule for rule, _ in self._rules(user, namespace, problems)]
        return RulesOf(rules, _joined(problems))

    def _rules(self, user: User, namespace: str, problems: list[str]) -> Iterator[tuple[Object, str]]:
        for binding in self._storage.items(f"clusterrolebindings.{_GROUP}"):
            yield from self._bound(binding.object, "ClusterRoleBinding", user, "", problems)
        if namespace:
            for binding in self._storage.items(f"rolebindings.{_GROUP}", namespace):
                yield from self._bound(binding.object, "RoleBinding", user, namespace, problems)

    def _bound(
        self, binding: Object, kind: str, user: User, namespace: str, problems: list[str]
    ) -> Iterator[tuple[Object, str]]:
        subject = next((each for each in binding.get("subjects") or () if _means(each, user, namespace)), None)
        if subject is None:
            return
        reference = binding["roleRef"]
        role = self._role(reference, namespace)
        if role is None:
            problems.append(f"{reference['kind'].lower()}.{_GROUP} {quoted(reference['name'])} not found")
            return
        name = binding["metadata"]["name"]
        full_name = f"{name}/{namespace}" if namespace else name
        role_name = f"{reference['kind']} {quoted(reference['name'])}"
        source = f"{kind} {quoted(full_name)} of {role_name} to {_shown(subject)}"
        for rule in role.get("rules") or ():
            yield rule, source

    def _role(self, reference: Mapping[str, Any], namespace: str) -> Object | None:
        if reference["kind"] == "ClusterRole":
            stored = self._storage.get(f"clusterroles.{_GROUP}", ObjectKey("", reference["name"]))
        else:
            stored = self._storage.get(f"roles.{_GROUP}", ObjectKey(namespace, reference["name"]))
        return None if stored is None else stored.object


def _joined(problems: list[str]) -> str:
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _means(subject: Mapping[str, Any], user: User, namespace: str) -> bool:
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


def _shown(subject: Mapping[str, Any]) -> str:
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"{name}/{subject.get('namespace', '')}"
    return f"{subject['kind']} {quoted(name)}"


def _allows(rule: Mapping[str, Any], wanted: Attributes) -> bool:
    if not _has(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_covers(pattern, wanted.path) for pattern in rule.get("nonResourceURLs") or ())
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), wanted.group)
        and any(_names(pattern, wanted) for pattern in rule.get("resources") or ())
        and (not names or wanted.name in names)
    )


def _has(patterns: list[str] | None, word: str) -> bool:
    return patterns is not None and ("*" in patterns or word in patterns)


def _names(pattern: str, wanted: Attributes) -> bool:
    if pattern in ("*", wanted.full_resource):
        return True
    return bool(wanted.subresource) and pattern == f"*/{wanted.subresource}"


def _covers(pattern: str, path: str) -> bool:
    return pattern == path or (pattern.endswith("*") and path.startswith(pattern[:-1]))


def forbidden(user: User, wanted: Attributes, reason: str) -> ForbiddenError:
    """403, as the server says it."""
    why = f": {reason}" if reason else ""
    who = f"User {quoted(user.name)} cannot {wanted.verb}"
    if wanted.path:
        return ForbiddenError(f"forbidden: {who} path {quoted(wanted.path)}{why}")
    where = f"in the namespace {quoted(wanted.namespace)}" if wanted.namespace else "at the cluster scope"
    what = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    named = f"{what} {quoted(wanted.name)}" if wanted.name else what
    details = {"name": wanted.name, "group": wanted.group, "kind": wanted.resource}
    return ForbiddenError(
        f"{named} is forbidden: {who} resource {quoted(wanted.full_resource)} "
        f"in API group {quoted(wanted.group)} {where}{why}",
        details={name: value for name, value in details.items() if value},
    )

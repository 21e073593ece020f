"""Protection against escalation: through roles and bindings, users can grant only permissions that they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge.errors import ForbiddenError, NotFoundError
from konverge_cluster._internal.embedded.access.authorization import Authorizer
from konverge_cluster._internal.embedded.access.request_attributes import RequestAttributes
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["check_escalation"]

_GROUP = "rbac.authorization.k8s.io"
_ROLES = {f"roles.{_GROUP}": "roles", f"clusterroles.{_GROUP}": "clusterroles"}
_BINDINGS = {f"rolebindings.{_GROUP}": "rolebindings", f"clusterrolebindings.{_GROUP}": "clusterrolebindings"}
_MASTERS = "system:masters"
_EVERYTHING: Sequence[Object] = (
    {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
    {"verbs": ["*"], "nonResourceURLs": ["*"]},
)


def check_escalation(
    resource: ServedResource, obj: Object, user: User, authorizer: Authorizer, storage: Storage
) -> None:
    """Check that a user may write a role or a binding; other resources pass.

    The verb ``escalate`` on roles and the verb ``bind`` on the bound role allow it too.

    Raises:
        ForbiddenError: The user does not have all granted permissions.
        NotFoundError: The bound role does not exist.
    """
    if _MASTERS in user.groups:
        return
    plural = _ROLES.get(resource.storage) or _BINDINGS.get(resource.storage)
    if plural is None:
        return
    key = ObjectKey.of(obj)
    if resource.storage in _ROLES:
        escalate = RequestAttributes("escalate", group=_GROUP, resource=plural, namespace=key.namespace, name=key.name)
        if authorizer.authorize(user, escalate).allowed:
            return
        held = authorizer.list_rules(user, key.namespace).rules
        if obj.get("aggregationRule") is not None and _list_missing(held, _EVERYTHING):
            reason = "must have cluster-admin privileges to use the aggregationRule"
            raise _new_forbidden(plural, key.name, reason)
        granted: Sequence[Object] = obj.get("rules") or ()
    else:
        reference = obj.get("roleRef") or {}
        bound = "roles" if reference.get("kind") == "Role" else "clusterroles"
        name = reference.get("name", "")
        bind = RequestAttributes("bind", group=_GROUP, resource=bound, namespace=key.namespace, name=name)
        if authorizer.authorize(user, bind).allowed:
            return
        role = storage.get(f"{bound}.{_GROUP}", ObjectKey(key.namespace if bound == "roles" else "", name))
        if role is None:
            details = {"name": name, "group": _GROUP, "kind": plural}
            raise NotFoundError(f"{plural}.{_GROUP} {quote(name)} not found", details=details)
        held = authorizer.list_rules(user, key.namespace).rules
        granted = role.object.get("rules") or ()
    missing = _list_missing(held, granted)
    if missing:
        groups = " ".join(quote(group) for group in user.groups)
        who = f"user {quote(user.name)} (groups=[{groups}])"
        listed = "\n".join(sorted({_format_rule(rule) for rule in _compact(missing)}))
        reason = f"{who} is attempting to grant RBAC permissions not currently held:\n{listed}"
        raise _new_forbidden(plural, key.name, reason)


def _new_forbidden(plural: str, name: str, reason: str) -> ForbiddenError:
    details = {"name": name, "group": _GROUP, "kind": plural}
    return ForbiddenError(f"{plural}.{_GROUP} {quote(name)} is forbidden: {reason}", details=details)


def _list_missing(held: Sequence[Object], granted: Sequence[Object]) -> list[Object]:
    """Return the parts of the granted rules, each with one verb and one target, that no held rule covers."""
    return [part for rule in granted for part in _split(rule) if not any(_covers(own, part) for own in held)]


def _split(rule: Mapping[str, Any]) -> Iterator[Object]:
    for group in rule.get("apiGroups") or ():
        for resource in rule.get("resources") or ():
            for verb in rule.get("verbs") or ():
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = rule.get("resourceNames") or ()
                yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for path in rule.get("nonResourceURLs") or ():
        for verb in rule.get("verbs") or ():
            yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(own: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    if not _includes(own.get("verbs"), part["verbs"][0]):
        return False
    if "nonResourceURLs" in part:
        path = part["nonResourceURLs"][0]
        patterns = own.get("nonResourceURLs") or ()
        return any(one == path or (one.endswith("*") and path.startswith(one[:-1])) for one in patterns)
    names, needed = own.get("resourceNames"), part.get("resourceNames")
    return (
        _includes(own.get("apiGroups"), part["apiGroups"][0])
        and _covers_resource(own.get("resources") or (), part["resources"][0])
        and (not names or (needed is not None and needed[0] in names))
    )


def _includes(words: Sequence[str] | None, word: str) -> bool:
    return words is not None and ("*" in words or word in words)


def _covers_resource(patterns: Sequence[str], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return _includes(patterns, resource) or (bool(slash) and f"*/{subresource}" in patterns)


def _compact(parts: Sequence[Object]) -> list[Object]:
    """Join the verbs of parts with the same resource."""
    joined: dict[tuple[str, ...], Object] = {}
    paths: list[Object] = []
    for part in parts:
        if "nonResourceURLs" in part:
            paths.append(part)
            continue
        key = (*part["apiGroups"], *part["resources"], *part.get("resourceNames", ()))
        if key in joined:
            joined[key] = {**joined[key], "verbs": [*joined[key]["verbs"], *part["verbs"]]}
        else:
            joined[key] = part
    return [*joined.values(), *paths]


def _format_rule(rule: Mapping[str, Any]) -> str:
    fields = (
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("NonResourceURLs", "nonResourceURLs"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    written = (f"{label}:[{' '.join(quote(word) for word in rule[name])}]" for label, name in fields if rule.get(name))
    return f"{{{', '.join(written)}}}"

"""What an operator lacks of its permissions, asked of the API server before the first 403.

A SelfSubjectRulesReview tells all rules of the asking user at once, though not those that an authorizer other than RBAC
may add. So it is believed where it says yes; where it does not, a SelfSubjectAccessReview asks for that one thing.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import yaml

from konverge.kube import Object
from konverge.operator.permission_derivation import RequiredPermissions
from konverge.operator.rbac_rules import PolicyRule, ResourceAccess, build_rules

__all__ = ["MissingPermission", "Reviewer", "find_missing_permissions"]

S = TypeVar("S")
T = TypeVar("T")

_API_VERSION = "authorization.k8s.io/v1"
_MAX_CONCURRENT = 4
# A reviewed namespace that nobody has: what is allowed there is allowed by rules for all namespaces. The server refuses
# to review all of them at once.
_NO_NAMESPACE = "konverge-reviews-no-such-namespace"
_ANY = "*"


class Reviewer(Protocol):
    """What of a client the check needs; `konverge.client.Client` has it."""

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        """Send a review; the answer has its status."""


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """One rule that the operator lacks.

    Args:
        role: The role to which it belongs, as `konverge.operator.role_manifests.manifests` names it.
        namespace: The namespace of the Role; empty for a ClusterRole.
        rule: The rule.
    """

    role: str
    namespace: str
    rule: PolicyRule

    def __str__(self) -> str:
        """One line, with the rule as it can be copied into the role."""
        where = f"Role {self.role} in namespace {self.namespace}" if self.namespace else f"ClusterRole {self.role}"
        rule = yaml.safe_dump(self.rule.to_manifest(), default_flow_style=True, sort_keys=False, width=1 << 16).strip()
        return f"missing permission: add to {where}: {rule}"


class _RequiredAccess(NamedTuple):
    """One thing that must be allowed; in all namespaces without one."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str


async def find_missing_permissions(
    reviewer: Reviewer, permissions: RequiredPermissions, *, role: str, home: str, namespaces: Sequence[str] = ()
) -> list[MissingPermission]:
    """What the reviewer's own user may not do of what it needs, sorted; empty when it may do everything.

    One review of rules for each namespace, and one of access for each thing that those do not allow, a few at a time.
    Cancelling ends all of them; nothing is stored on the server.

    Args:
        reviewer: A client of the user that the operator runs as.
        permissions: What it needs.
        role: The name of its roles: that of its ServiceAccount.
        home: Its own namespace.
        namespaces: The namespaces of the owners; all when empty.

    Raises:
        konverge.errors.ApiError: The server does not answer reviews. (Every user that it knows may ask them, by the
            ClusterRole system:basic-user.)
        konverge.errors.ConnectionFailedError: It cannot be reached.
    """
    wanted = list(dict.fromkeys(_list_required_access(permissions, home, namespaces)))
    places = sorted({one.namespace for one in wanted})
    rules = await _map_concurrently(partial(_fetch_rules, reviewer), places)
    granted = dict(zip(places, rules, strict=True))
    doubted = [one for one in wanted if not _allows(granted[one.namespace], one)]
    answers = await _map_concurrently(partial(_is_allowed, reviewer), doubted)
    lacking: defaultdict[str, list[_RequiredAccess]] = defaultdict(list)
    for one, allowed in zip(doubted, answers, strict=True):
        if not allowed:
            lacking[one.namespace].append(one)
    return [
        MissingPermission(role, namespace, rule)
        for namespace, listed in sorted(lacking.items())
        for rule in build_rules(
            ResourceAccess(one.group, one.resource, (one.verb,), names=(one.name,) if one.name else ())
            for one in listed
        )
    ]


def _list_required_access(
    permissions: RequiredPermissions, home: str, namespaces: Sequence[str]
) -> Iterator[_RequiredAccess]:
    for rules, places in (
        (permissions.rules, namespaces or ("",)),
        (permissions.cluster_rules, ("",)),
        (permissions.home_rules, (home,)),
    ):
        for rule in rules:
            for namespace in places:
                for group in rule.api_groups:
                    for resource in rule.resources:
                        for verb in rule.verbs:
                            for name in rule.resource_names or ("",):
                                yield _RequiredAccess(namespace, group, resource, verb, name)


async def _map_concurrently(ask: Callable[[T], Awaitable[S]], questions: Sequence[T]) -> list[S]:
    """The answers in the order of the questions; the first that fails ends the others."""
    gate = asyncio.Semaphore(_MAX_CONCURRENT)

    async def run_with_slot(question: T) -> S:
        async with gate:
            return await ask(question)

    try:
        async with asyncio.TaskGroup() as tasks:
            asking = [tasks.create_task(run_with_slot(question)) for question in questions]
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in asking]


async def _fetch_rules(reviewer: Reviewer, namespace: str) -> list[Mapping[str, Any]]:
    """The rules that the user has in the namespace; those for all namespaces without one."""
    answer = await reviewer.create(
        {
            "apiVersion": _API_VERSION,
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace or _NO_NAMESPACE},
        }
    )
    status = answer.get("status")
    rules = status.get("resourceRules") if isinstance(status, Mapping) else None
    return [rule for rule in rules if isinstance(rule, Mapping)] if isinstance(rules, list) else []


def _allows(rules: Iterable[Mapping[str, Any]], access: _RequiredAccess) -> bool:
    """Tell whether one of the rules allows it, by the rules of RBAC."""
    return any(
        _rule_has(rule, "verbs", access.verb)
        and _rule_has(rule, "apiGroups", access.group)
        and (_rule_has(rule, "resources", access.resource) or _has_subresource(rule, access.resource))
        and (not rule.get("resourceNames") or access.name in rule["resourceNames"])
        for rule in rules
    )


def _rule_has(rule: Mapping[str, Any], field: str, value: str) -> bool:
    listed = rule.get(field) or ()
    return value in listed or _ANY in listed


def _has_subresource(rule: Mapping[str, Any], resource: str) -> bool:
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"{_ANY}/{subresource}" in (rule.get("resources") or ())


async def _is_allowed(reviewer: Reviewer, access: _RequiredAccess) -> bool:
    resource, _, subresource = access.resource.partition("/")
    attributes = {
        "namespace": access.namespace,
        "verb": access.verb,
        "group": access.group,
        "resource": resource,
        "subresource": subresource,
        "name": access.name,
    }
    answer = await reviewer.create(
        {
            "apiVersion": _API_VERSION,
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }
    )
    status = answer.get("status")
    return isinstance(status, Mapping) and status.get("allowed") is True

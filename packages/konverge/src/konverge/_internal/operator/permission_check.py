"""Check of an operator's permissions with the API server, before the first 403.

A SelfSubjectRulesReview returns all rules of the user, but not those that an authorizer other than RBAC can add.
Therefore only a permission in it counts; for any other one, a SelfSubjectAccessReview is sent.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import yaml

from konverge._internal.kube import Object
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge._internal.operator.rbac_rules import PolicyRule, ResourceAccess, build_rules

__all__ = [
    "MissingPermission",
    "RequiredAccess",
    "Reviewer",
    "allows",
    "find_missing_permissions",
    "group_missing",
    "list_required_access",
]

S = TypeVar("S")
T = TypeVar("T")

_API_VERSION = "authorization.k8s.io/v1"
_MAX_CONCURRENT = 4
# A namespace that does not exist: rules for it are rules for all namespaces. The server refuses a review of all
# namespaces.
_NO_NAMESPACE = "konverge-reviews-no-such-namespace"
_ANY = "*"


class Reviewer(Protocol):
    """The client access of the check; `konverge.client.Client` implements it."""

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        """Create a review; the returned object has its status."""


@dataclass(frozen=True, slots=True)
class MissingPermission:
    """One missing rule.

    Args:
        role: The name of the role, as `operator.role_manifests.manifests` names it.
        namespace: The namespace of the Role; empty for a ClusterRole.
        rule: The rule.
    """

    role: str
    namespace: str
    rule: PolicyRule

    def __str__(self) -> str:
        """Return one line with the rule, in a form that can be copied into the role."""
        where = f"Role {self.role} in namespace {self.namespace}" if self.namespace else f"ClusterRole {self.role}"
        rule = yaml.safe_dump(self.rule.to_manifest(), default_flow_style=True, sort_keys=False, width=1 << 16).strip()
        return f"missing permission: add to {where}: {rule}"


class RequiredAccess(NamedTuple):
    """One required access; in all namespaces if `namespace` is empty."""

    namespace: str
    group: str
    resource: str
    verb: str
    name: str


async def find_missing_permissions(
    reviewer: Reviewer, permissions: RequiredPermissions, *, role: str, home: str, namespaces: Sequence[str] = ()
) -> list[MissingPermission]:
    """Return the missing permissions of the reviewer's user, sorted; empty if none is missing.

    The check sends one rules review for each namespace, and one access review for each access that those do not permit,
    a few in parallel. A cancellation ends all of them; the server stores nothing.

    Args:
        reviewer: A client of the operator's user.
        permissions: The required permissions.
        role: The name of the operator's roles and ServiceAccount.
        home: The operator's own namespace.
        namespaces: The namespaces of the owners; all if empty.

    Raises:
        konverge.errors.ApiError: The server refuses reviews. (The ClusterRole system:basic-user permits them to every
            authenticated user.)
        konverge.errors.ConnectionFailedError: The server is unreachable.
    """
    required = list(dict.fromkeys(list_required_access(permissions, home, namespaces)))
    reviewed = sorted({access.namespace for access in required})
    rules = await _map_concurrently(partial(_fetch_rules, reviewer), reviewed)
    granted = dict(zip(reviewed, rules, strict=True))
    uncertain = [access for access in required if not allows(granted[access.namespace], access)]
    results = await _map_concurrently(partial(_is_allowed, reviewer), uncertain)
    refused = (access for access, is_allowed in zip(uncertain, results, strict=True) if not is_allowed)
    return group_missing(refused, role)


def group_missing(refused: Iterable[RequiredAccess], role: str) -> list[MissingPermission]:
    """Return the rules that permit the accesses, sorted.

    Args:
        refused: The accesses that are not permitted.
        role: The name of the operator's roles.
    """
    missing: defaultdict[str, list[RequiredAccess]] = defaultdict(list)
    for access in refused:
        missing[access.namespace].append(access)
    return [
        MissingPermission(role, namespace, rule)
        for namespace, listed in sorted(missing.items())
        for rule in build_rules(
            ResourceAccess(access.group, access.resource, (access.verb,), names=(access.name,) if access.name else ())
            for access in listed
        )
    ]


def list_required_access(
    permissions: RequiredPermissions, home: str, namespaces: Sequence[str]
) -> Iterator[RequiredAccess]:
    """Yield each access that the permissions grant.

    Args:
        permissions: The permissions.
        home: The operator's own namespace.
        namespaces: The namespaces of the owners; all if empty.
    """
    for rules, places in (
        (permissions.rules, namespaces or ("",)),
        (permissions.cluster_rules, ("",)),
        (permissions.home_rules, (home,)),
        *((rules, (namespace,)) for namespace, rules in permissions.other_rules),
    ):
        for rule in rules:
            for namespace in places:
                for group in rule.api_groups:
                    for resource in rule.resources:
                        for verb in rule.verbs:
                            for name in rule.resource_names or ("",):
                                yield RequiredAccess(namespace, group, resource, verb, name)


async def _map_concurrently(function: Callable[[T], Awaitable[S]], arguments: Sequence[T]) -> list[S]:
    """Return the results in the order of the arguments; the first error cancels the other calls."""
    slots = asyncio.Semaphore(_MAX_CONCURRENT)

    async def run_with_slot(argument: T) -> S:
        async with slots:
            return await function(argument)

    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(run_with_slot(argument)) for argument in arguments]
    except ExceptionGroup as failures:
        first = failures.exceptions[0]
        raise first from first.__cause__
    return [task.result() for task in running]


async def _fetch_rules(reviewer: Reviewer, namespace: str) -> list[Mapping[str, Any]]:
    """Fetch the user's rules in the namespace; an empty namespace means the rules for all namespaces."""
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


def allows(rules: Iterable[Mapping[str, Any]], access: RequiredAccess) -> bool:
    """Return True if one of the rules permits the access, by the semantics of RBAC."""
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


async def _is_allowed(reviewer: Reviewer, access: RequiredAccess) -> bool:
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

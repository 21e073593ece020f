"""The permissions of a ServiceAccount, from the roles of a file or from a cluster, in the form of reviews.

`operator.permission_check.find_missing_permissions` requests the permissions of a `Reviewer`'s own user. The reviewers
here answer the same reviews for the account of an operator that does not run yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge._internal.operator.permission_check import Reviewer
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge._internal.operator.rbac_rules import PolicyRule
from konverge.errors import ConfigurationError

__all__ = ["AccountReviewer", "RolesReviewer", "find_unneeded_rules"]

_RULES_REVIEW = "SelfSubjectRulesReview"
_KINDS = ("ClusterRole", "Role")


class RolesReviewer:
    """Answers reviews with the rules of roles; bindings do not count.

    Args:
        objects: Manifests; those that are no roles are ignored.

    Raises:
        konverge.errors.ConfigurationError: There are no roles, or one has no list of rules.
    """

    def __init__(self, objects: Iterable[Object]) -> None:
        self._rules: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for obj in objects:
            if obj.get("kind") not in _KINDS:
                continue
            metadata = obj.get("metadata")
            metadata = metadata if isinstance(metadata, dict) else {}
            rules = obj.get("rules") or []
            if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
                raise ConfigurationError(f"{obj['kind']} {metadata.get('name', '')}: rules: expected a list of rules")
            namespace = "" if obj["kind"] == "ClusterRole" else str(metadata.get("namespace") or "default")
            self._rules[namespace] += rules
        if not self._rules:
            raise ConfigurationError("expected a Role or a ClusterRole, found none")

    @property
    def rules(self) -> dict[str, list[Mapping[str, Any]]]:
        """The rules by namespace; those of ClusterRoles under an empty name."""
        return dict(self._rules)

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        """Answer a review with the rules of the roles."""
        if obj["kind"] != _RULES_REVIEW:
            return {"status": {"allowed": False}}
        return {"status": {"resourceRules": [*self._rules[""], *self._rules.get(obj["spec"]["namespace"], ())]}}


class AccountReviewer:
    """Asks a cluster about a ServiceAccount, with SubjectAccessReviews.

    Args:
        reviewer: A client whose user can create SubjectAccessReviews.
        account: The ServiceAccount.
    """

    def __init__(self, reviewer: Reviewer, account: ObjectKey) -> None:
        self._reviewer = reviewer
        self._subject = {
            "user": f"system:serviceaccount:{account.namespace}:{account.name}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated"],
        }

    async def create(self, obj: Object, *, field_manager: str = "") -> Object:
        """Answer a review.

        Raises:
            konverge.errors.ApiError: The server refuses the review.
        """
        if obj["kind"] == _RULES_REVIEW:  # only users can list their own rules
            return {"status": {}}
        return await self._reviewer.create({**obj, "kind": "SubjectAccessReview", "spec": obj["spec"] | self._subject})


def find_unneeded_rules(reviewer: RolesReviewer, permissions: RequiredPermissions) -> Iterator[str]:
    """Yield one sentence for each verb of the roles that no derived rule has anywhere."""
    needed: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    rules: list[PolicyRule] = [*permissions.rules, *permissions.cluster_rules, *permissions.home_rules]
    for rule in (*rules, *(rule for _, listed in permissions.other_rules for rule in listed)):
        for group in rule.api_groups:
            for resource in rule.resources:
                needed[group, resource].update(rule.verbs)
    for namespace, listed in sorted(reviewer.rules.items()):
        unneeded: defaultdict[str, set[str]] = defaultdict(set)
        for granted in listed:
            for group in granted.get("apiGroups") or ():
                for resource in granted.get("resources") or ():
                    name = f"{resource}.{group}" if group else str(resource)
                    unneeded[name].update(set(map(str, granted.get("verbs") or ())) - needed[str(group), str(resource)])
        where = f"Role in namespace {namespace}" if namespace else "ClusterRole"
        for name, verbs in sorted(unneeded.items()):
            if verbs:
                yield f"{where}: {name}: {', '.join(sorted(verbs))}"

"""Validation of roles and their bindings."""

from __future__ import annotations

from collections.abc import Iterator

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = [
    "validate_binding_update",
    "validate_cluster_role",
    "validate_cluster_role_binding",
    "validate_role",
    "validate_role_binding",
]

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def validate_role(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Role."""
    yield from _validate_rules(obj, is_namespaced=True)


def validate_cluster_role(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ClusterRole."""
    yield from _validate_rules(obj, is_namespaced=False)
    aggregation = obj.get("aggregationRule")
    if aggregation is None:
        return
    field, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or ()
    if not selectors:
        yield field_required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors):
        yield from validate_selector(selector, f"{field}[{index}]")
        try:
            LabelSelector.from_object(selector)
        except SelectorSyntaxError:
            yield field_invalid(f"{field}[{index}]", None, "invalid label selector.")


def _validate_rules(obj: Object, *, is_namespaced: bool) -> Iterator[FieldError]:
    for index, rule in enumerate(obj.get("rules") or ()):
        at, paths = f"rules[{index}]", rule.get("nonResourceURLs")
        if not rule.get("verbs"):
            yield field_required(f"{at}.verbs", "verbs must contain at least one value")
        if paths:
            if is_namespaced:
                detail = "namespaced rules cannot apply to non-resource URLs"
                yield field_invalid(f"{at}.nonResourceURLs", paths, detail)
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                detail = "rules cannot apply to both regular resources and non-resource URLs"
                yield field_invalid(f"{at}.nonResourceURLs", paths, detail)
            continue
        if not rule.get("apiGroups"):
            yield field_required(f"{at}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield field_required(f"{at}.resources", "resource rules must supply at least one resource")


def validate_role_binding(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a RoleBinding."""
    yield from _validate_binding(obj, ("Role", "ClusterRole"))


def validate_cluster_role_binding(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ClusterRoleBinding."""
    yield from _validate_binding(obj, ("ClusterRole",))


def _validate_binding(obj: Object, kinds: tuple[str, ...]) -> Iterator[FieldError]:
    role = obj.get("roleRef") or {}
    if role.get("apiGroup", "") != _GROUP:
        yield field_not_supported("roleRef.apiGroup", role.get("apiGroup", ""), (_GROUP,))
    if role.get("kind") not in kinds:
        yield field_not_supported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield field_required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        at, kind, name = f"subjects[{index}]", subject.get("kind", ""), subject.get("name", "")
        group, expected = subject.get("apiGroup", ""), "" if kind == "ServiceAccount" else _GROUP
        if not name:
            yield field_required(f"{at}.name")
        if kind not in _SUBJECTS:
            yield field_not_supported(f"{at}.kind", kind, _SUBJECTS)
            continue
        if group != expected:
            yield field_not_supported(f"{at}.apiGroup", group, (expected,))
        if kind == "ServiceAccount":
            for detail in validate_dns_subdomain(name) if name else ():
                yield field_invalid(f"{at}.name", name, detail)
            if not subject.get("namespace") and kinds == ("ClusterRole",):
                yield field_required(f"{at}.namespace")


def validate_binding_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error if a binding changes its role."""
    if old.get("roleRef") != new.get("roleRef"):
        yield field_invalid("roleRef", new.get("roleRef"), "cannot change roleRef")

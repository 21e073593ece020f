"""ValidatingAdmissionPolicies with which the API server itself refuses invalid requests.

Without them an invalid request is created and fails at once. With them its author gets the error. They refuse three
things: reserved labels of the API group without a meaning; a request without a resolver where there is no default; and
a change of a request. An object that existed before stays as it is: of its labels, an update is checked only for those
that it changes. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from konverge._internal.kube import Object, ObjectKey
from konverge_resolution._internal.requests.api_types import REQUEST
from konverge_resolution._internal.requests.resolution_config import DEFAULT_RESOLVER, GENERAL
from konverge_resolution._internal.requests.tekton_requests import TEKTON_REQUEST, TYPE_LABEL

__all__ = ["build_admission_manifests"]

_API_VERSION = "admissionregistration.k8s.io/v1"
_CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}

_HAS_DEFAULT = (
    f"has(params.data) && '{DEFAULT_RESOLVER}' in params.data && params.data['{DEFAULT_RESOLVER}'].trim() != ''"
)
_NAMES_RESOLVER = "has(object.spec) && has(object.spec.resolver) && object.spec.resolver != ''"

_TYPE = "({0} != null && has({0}.metadata.labels) && '{1}' in {0}.metadata.labels ? {0}.metadata.labels['{1}'] : '')"
_NEW_TYPE, _OLD_TYPE = (_TYPE.format(each, TYPE_LABEL) for each in ("object", "oldObject"))
_SAME = "has(object.spec) == has(oldObject.spec) && (!has(object.spec) || object.spec == oldObject.spec)"
_SAME_SPEC = f"oldObject == null || ({_SAME})"


@dataclass(frozen=True, slots=True)
class _AdmissionPolicy:
    """One policy and its binding.

    Args:
        name: The name of both.
        resource: The resource as a rule names it: group, version, plural, operations.
        variables: Named CEL expressions.
        validations: The validations.
        configured_by: The ConfigMap that expressions use as ``params``; None for none.
    """

    name: str
    resource: Object
    variables: Sequence[Object]
    validations: Sequence[Object]
    configured_by: ObjectKey | None = None

    def build_manifests(self, watched: Sequence[str]) -> Iterator[Object]:
        """Yield the policy and its binding for requests of these namespaces; for all namespaces if empty."""
        spec: Object = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [self.resource]},
            "variables": list(self.variables),
            "validations": [{"reason": "Invalid", **validation} for validation in self.validations],
        }
        bound: Object = {"policyName": self.name, "validationActions": ["Deny"]}
        if self.configured_by is not None:
            spec["paramKind"] = _CONFIG_MAP
            # Without the ConfigMap the API server cannot know the default resolver; then the controller refuses the
            # request.
            place = {"name": self.configured_by.name, "namespace": self.configured_by.namespace}
            bound["paramRef"] = {**place, "parameterNotFoundAction": "Allow"}
        if watched:
            within = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(watched)}
            bound["matchResources"] = {"namespaceSelector": {"matchExpressions": [within]}}
        metadata = {"name": self.name}
        spec = {name: value for name, value in spec.items() if value}
        yield {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": spec,
        }
        yield {
            "apiVersion": _API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": dict(metadata),
            "spec": bound,
        }


def build_admission_manifests(
    name: str, home: str, watched: Sequence[str] = (), *, serves_tekton: bool
) -> list[Object]:
    """Return policies and their bindings in the order in which they can be applied.

    Args:
        name: The name of the operator, which the names of the policies begin with.
        home: The namespace of its configuration, where the API server looks up the default resolver.
        watched: The namespaces of requests; empty for all.
        serves_tekton: Whether Tekton's requests are checked, too.
    """
    group = REQUEST.group
    policies = [
        _AdmissionPolicy(
            f"{name}-labels",
            _build_resource_rule(group, REQUEST.version, "CREATE", "UPDATE"),
            [_build_unknown_labels(group)],
            [_build_label_validation(group)],
        ),
        _AdmissionPolicy(
            f"{name}-resolver",
            _build_resource_rule(group, REQUEST.version, "CREATE"),  # the spec is immutable after that
            [],
            [
                {
                    "expression": f"({_NAMES_RESOLVER}) || ({_HAS_DEFAULT})",
                    "message": f"spec.resolver: expected the name of a resolver, found none, and ConfigMap {GENERAL} "
                    f"has no {DEFAULT_RESOLVER}",
                }
            ],
            configured_by=ObjectKey(home, GENERAL),
        ),
    ]
    if serves_tekton:
        policies.append(_build_tekton_policy(f"{name}-tekton"))
    return [obj for policy in policies for obj in policy.build_manifests(watched)]


def _build_tekton_policy(name: str) -> _AdmissionPolicy:
    """Return the policy for Tekton's kind, whose own definition allows changes of a started request."""
    group = TEKTON_REQUEST.group
    return _AdmissionPolicy(
        name,
        _build_resource_rule(group, TEKTON_REQUEST.version, "CREATE", "UPDATE"),
        [_build_unknown_labels(group, TYPE_LABEL)],
        [
            _build_label_validation(group, TYPE_LABEL),
            {
                "expression": f"oldObject != null || {_NEW_TYPE} != ''",
                "message": f"label {TYPE_LABEL}: expected the name of a resolver, found none",
            },
            {
                "expression": f"oldObject == null || {_NEW_TYPE} == {_OLD_TYPE}",
                "message": f"label {TYPE_LABEL}: a request is immutable; create another one",
            },
            {"expression": _SAME_SPEC, "message": "spec: a request is immutable; create another one"},
        ],
    )


def _build_resource_rule(group: str, version: str, *operations: str) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": ["resolutionrequests"],
        "scope": "Namespaced",
    }


def _build_unknown_labels(group: str, *known: str) -> Object:
    """Return the variable with the unknown labels of a group and its subgroups that the object did not have before."""
    known_keys = ", ".join(f"'{label}'" for label in known)
    before = "oldObject != null && has(oldObject.metadata.labels) && key in oldObject.metadata.labels"
    same = f"({before} && oldObject.metadata.labels[key] == object.metadata.labels[key])"
    conditions = [f"(key.startsWith('{group}/') || key.contains('.{group}/'))", f"!(key in [{known_keys}])", f"!{same}"]
    unknown = f"object.metadata.labels.filter(key, {' && '.join(conditions)})"
    return {"name": "unknown", "expression": f"has(object.metadata.labels) ? {unknown} : []"}


def _build_label_validation(group: str, *known: str) -> Object:
    allowed = f"expected {' or '.join(known)}" if known else "expected none"
    return {
        "expression": "variables.unknown.size() == 0",
        "message": f"labels of {group} are reserved: {allowed}",
        "messageExpression": f"'labels of {group} are reserved: {allowed}, found ' + variables.unknown.join(', ')",
    }

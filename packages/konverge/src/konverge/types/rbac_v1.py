"""The objects of io.k8s.api.rbac.v1 as TypedDicts, for type checkers and editors.

Written by tools/schemas/generate.py from the OpenAPI documents of a kube-apiserver; not to be edited.
"""

from typing import Literal, Required, TypedDict

from konverge.types import meta_v1


class AggregationRule(TypedDict, total=False):
    clusterRoleSelectors: list[meta_v1.LabelSelector]


class PolicyRule(TypedDict, total=False):
    apiGroups: list[str]
    nonResourceURLs: list[str]
    resourceNames: list[str]
    resources: list[str]
    verbs: Required[list[str]]


class ClusterRole(TypedDict, total=False):
    apiVersion: Literal["rbac.authorization.k8s.io/v1"]
    kind: Literal["ClusterRole"]
    metadata: meta_v1.ObjectMeta
    aggregationRule: AggregationRule
    rules: list[PolicyRule]


class RoleRef(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]


class Subject(TypedDict, total=False):
    apiGroup: str
    kind: Required[str]
    name: Required[str]
    namespace: str


class ClusterRoleBinding(TypedDict, total=False):
    apiVersion: Literal["rbac.authorization.k8s.io/v1"]
    kind: Literal["ClusterRoleBinding"]
    metadata: meta_v1.ObjectMeta
    roleRef: Required[RoleRef]
    subjects: list[Subject]


class Role(TypedDict, total=False):
    apiVersion: Literal["rbac.authorization.k8s.io/v1"]
    kind: Literal["Role"]
    metadata: meta_v1.ObjectMeta
    rules: list[PolicyRule]


class RoleBinding(TypedDict, total=False):
    apiVersion: Literal["rbac.authorization.k8s.io/v1"]
    kind: Literal["RoleBinding"]
    metadata: meta_v1.ObjectMeta
    roleRef: Required[RoleRef]
    subjects: list[Subject]

"""The kinds that are ready by existing: accounts, roles, bindings, budgets and policies."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import (
    ClusterRole,
    ClusterRoleBinding,
    ClusterRoleMutator,
    NetworkPolicy,
    NetworkPolicyMutator,
    Operation,
    PodDisruptionBudget,
    PodDisruptionBudgetMutator,
    Primitive,
    Role,
    RoleBinding,
    RoleBindingMutator,
    RoleMutator,
    ServiceAccount,
    ServiceAccountMutator,
    SuspensionStatus,
)
from tests.primitives.objects import build_named, kind_of

ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
READ = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
WRITE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["update"]}


def cluster_wide(**fields: Any) -> Object:
    return {"metadata": {"name": "web"}, **fields}


STATICS: list[Primitive[Any]] = [
    ServiceAccount(build_named()),
    Role(build_named()),
    RoleBinding(build_named(roleRef=ROLE_REF)),
    ClusterRole(cluster_wide()),
    ClusterRoleBinding(cluster_wide(roleRef=ROLE_REF)),
    PodDisruptionBudget(build_named()),
    NetworkPolicy(build_named()),
]


@pytest.mark.parametrize("primitive", STATICS, ids=kind_of)
def test_it_is_ready_by_existing_and_left_alone_by_suspension(primitive: Primitive[Any]) -> None:
    assert primitive.errors == ()
    assert primitive.converging_status({"status": {"conditions": "odd"}}, Operation.NONE) is None
    assert primitive.grace_status({}) is None
    assert not primitive.is_suspendable
    assert primitive.suspension_status({}).status is SuspensionStatus.SUSPENDED
    assert not primitive.deletes_on_suspend


@pytest.mark.parametrize("kind", [ClusterRole, ClusterRoleBinding])
def test_what_is_for_the_whole_cluster_has_no_namespace(kind: type[ClusterRole] | type[ClusterRoleBinding]) -> None:
    (mistake,) = kind(build_named(roleRef=ROLE_REF)).errors
    assert mistake == f"metadata.namespace: expected none for a cluster-scoped {kind.gvk.kind}, found 'default'"


@pytest.mark.parametrize("role_ref", [None, {}, [], {"apiGroup": 1, "kind": None, "name": ""}])
@pytest.mark.parametrize(("kind", "obj"), [(RoleBinding, build_named()), (ClusterRoleBinding, cluster_wide())])
def test_a_binding_without_a_whole_role_is_a_mistake(
    kind: type[RoleBinding] | type[ClusterRoleBinding], obj: Object, role_ref: object
) -> None:
    assert kind({**obj, "roleRef": role_ref}).errors == (
        "roleRef.apiGroup: expected rbac.authorization.k8s.io, found none",
        "roleRef.kind: expected Role or ClusterRole, found none",
        "roleRef.name: expected the name of the role, found none",
    )


@pytest.mark.parametrize("missing", ["apiGroup", "kind", "name"])
def test_each_part_of_the_role_is_asked_for(missing: str) -> None:
    role_ref = {name: value for name, value in ROLE_REF.items() if name != missing}
    (mistake,) = RoleBinding(build_named(roleRef=role_ref)).errors
    assert mistake.startswith(f"roleRef.{missing}: expected ")


def pull(m: ServiceAccountMutator) -> None:
    m.ensure_image_pull_secret("mirror")
    m.ensure_image_pull_secret("mirror")
    m.remove_image_pull_secret("old")
    m.set_automount_service_account_token(False)


def test_a_service_account_has_its_own_edits() -> None:
    desired = ServiceAccount(build_named(imagePullSecrets=[{"name": "old"}]), mutations=Mutation("pull", pull)).render()
    assert desired["imagePullSecrets"] == [{"name": "mirror"}]
    assert desired["automountServiceAccountToken"] is False


def allow_writing(m: RoleMutator) -> None:
    m.edit_rules(lambda rules: rules.clear())
    m.add_rule(WRITE)


def test_one_mutation_of_rules_fits_both_roles() -> None:
    writing = Mutation[RoleMutator]("writing", allow_writing)
    assert Role(build_named(rules=[READ]), mutations=writing).render()["rules"] == [WRITE]
    assert ClusterRole(cluster_wide(rules=[READ]), mutations=writing).render()["rules"] == [WRITE]


def gather_twice(m: ClusterRoleMutator) -> None:
    m.set_aggregation_rule({"clusterRoleSelectors": [{"matchLabels": {"a": "first"}}]})
    m.set_aggregation_rule({"clusterRoleSelectors": [{"matchLabels": {"a": "last"}}]})


def test_the_last_aggregation_rule_counts() -> None:
    desired = ClusterRole(cluster_wide(), mutations=Mutation("gather", gather_twice)).render()
    assert desired["aggregationRule"] == {"clusterRoleSelectors": [{"matchLabels": {"a": "last"}}]}


@pytest.mark.parametrize("rules", [[], [READ]])
def test_rules_beside_an_aggregation_rule_are_a_mistake(rules: list[Object]) -> None:
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    (mistake,) = ClusterRole(cluster_wide(aggregationRule=selectors, rules=rules)).errors
    assert mistake == "rules: expected none with an aggregationRule, because a controller of the cluster writes them"
    assert ClusterRole(cluster_wide(aggregationRule=selectors, rules=None)).errors == ()


def bind_account(m: RoleBindingMutator) -> None:
    m.edit_subjects(lambda subjects: subjects.ensure_service_account("web", "default"))


def test_one_mutation_of_subjects_fits_both_bindings() -> None:
    binding = Mutation[RoleBindingMutator]("account", bind_account)
    subjects = [{"kind": "ServiceAccount", "name": "web", "namespace": "default"}]
    assert RoleBinding(build_named(roleRef=ROLE_REF), mutations=binding).render()["subjects"] == subjects
    assert ClusterRoleBinding(cluster_wide(roleRef=ROLE_REF), mutations=binding).render()["subjects"] == subjects


def test_a_budget_has_its_own_edits() -> None:
    def loosen(m: PodDisruptionBudgetMutator) -> None:
        m.edit_spec(lambda spec: spec.set(minAvailable=None))
        m.edit_spec(lambda spec: spec.set(maxUnavailable="10%"))

    budget = PodDisruptionBudget(build_named(spec={"minAvailable": 1}), mutations=Mutation("loosen", loosen))
    assert budget.render()["spec"] == {"maxUnavailable": "10%"}


def test_a_network_policy_has_its_own_edits() -> None:
    def admit(m: NetworkPolicyMutator) -> None:
        m.edit_network_policy_spec(lambda spec: spec.append_ingress_rule({"ports": [{"port": 80}]}))

    policy = NetworkPolicy(build_named(spec={"podSelector": {}}), mutations=Mutation("admit", admit))
    assert policy.render()["spec"] == {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}

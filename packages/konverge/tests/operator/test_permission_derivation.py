"""Permissions are derived exactly from the declaration of an operator; gaps are reported."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

import pytest
from msgspec import Meta

from konverge._internal.operator.permission_derivation import (
    DeclaredOwner,
    OperatorDeclaration,
    RuntimeFeatures,
    derive_permissions,
)
from konverge._internal.operator.rbac_rules import READ, AccessScope, PolicyRule, ResourceAccess, build_rules
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.clock import SimulatedClock
from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, build_sample_objects, custom_resource, find_definition
from konverge.errors import ConfigurationError
from konverge.feature import BooleanGate
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.options import delete, delete_when, deletion_wave, ignore_if_absent, orphan_when, read_only
from konverge.primitives import ConfigMap, Deployment, Secret, Service, StatefulSet, Static


class Oven(StrEnum):
    WOOD = "wood"
    GAS = "gas"


@dataclass
class Counter:
    name: str
    has_till: bool = False


@dataclass
class BakerySpec:
    oven: Oven = Oven.WOOD
    delivers: bool = False
    closed: bool = False
    sign: str = ""
    counters: list[Counter] = field(default_factory=list)
    code: Annotated[str, Meta(pattern="^[q]{3}-[0-9]+$")] = "qqq-1"


@custom_resource(group="permissions.konverge.test", version="v1")
@dataclass
class Bakery:
    metadata: Metadata
    spec: BakerySpec = field(default_factory=BakerySpec)


def build_metadata(bakery: Bakery, part: str) -> Object:
    return {"metadata": {"name": f"{bakery.metadata.name}-{part}", "namespace": bakery.metadata.namespace}}


def workload(bakery: Bakery, part: str) -> Object:
    labels = {"part": part}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "konverge.test/a:1"}]}}
    return {
        **build_metadata(bakery, part),
        "spec": {"selector": {"matchLabels": labels}, "template": template, "replicas": 1},
    }


def kitchen(bakery: Bakery) -> Component:
    builder = ComponentBuilder("kitchen", condition_type="KitchenReady")
    builder.with_resource(ConfigMap(build_metadata(bakery, "recipes")))
    builder.with_resource(Secret(build_metadata(bakery, "secret-recipe")), read_only(), ignore_if_absent())
    # Only for one value of an enumeration.
    builder.include_when(bakery.spec.oven is Oven.GAS, lambda: StatefulSet(workload(bakery, "gas")))
    return builder.build()


def shop(bakery: Bakery) -> Component:
    builder = ComponentBuilder("shop", condition_type="ShopReady")
    builder.with_resource(
        Service({**build_metadata(bakery, "door"), "spec": {"ports": [{"port": 80}]}}), delete_when(bakery.spec.closed)
    )
    # Only for a list that is not empty, and for a switch in its items.
    for counter in bakery.spec.counters:
        if counter.has_till:
            builder.with_resource(
                Static(
                    {
                        "apiVersion": "policy/v1",
                        "kind": "PodDisruptionBudget",
                        **build_metadata(bakery, f"till-{counter.name}"),
                    }
                ),
                orphan_when(not bakery.spec.delivers),
            )
    if bakery.spec.sign:
        builder.with_resource(
            Static({"apiVersion": "batch/v1", "kind": "Job", **build_metadata(bakery, "sign")}), delete()
        )
    return builder.build()


def delivery(bakery: Bakery) -> Component:
    return (
        ComponentBuilder("delivery", condition_type="DeliveryReady")
        .with_feature_gate(BooleanGate(bakery.spec.delivers))
        .with_resource(Deployment(workload(bakery, "vans")))
        .build()
    )


BAKERY = OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (kitchen, shop, delivery)),))
QUIET = RuntimeFeatures(records_events=False, diagnoses=False)


def verbs(rules: Sequence[PolicyRule], group: str, resource: str) -> tuple[str, ...]:
    """Return the verbs that the rules permit for a resource."""
    found = [rule.verbs for rule in rules if group in rule.api_groups and resource in rule.resources]
    return tuple(sorted({verb for listed in found for verb in listed}))


WRITTEN = ("create", "get", "list", "patch", "watch")


def test_deletion_waves_need_the_deletion_of_their_objects_and_a_finalizer() -> None:
    def cellar(bakery: Bakery) -> Component:
        wine = ConfigMap(build_metadata(bakery, "wine"))
        return ComponentBuilder("cellar", condition_type="CellarReady").with_resource(wine, deletion_wave(1)).build()

    rules = derive_permissions(OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (cellar,)),)), QUIET).rules

    assert verbs(rules, "", "configmaps") == ("create", "delete", "get", "list", "patch", "watch")
    assert verbs(rules, find_definition(Bakery).gvk.group, "bakeries") == ("get", "list", "patch", "watch")


def test_a_sample_without_a_namespace_is_in_one() -> None:
    sample: Object = {
        "apiVersion": find_definition(Bakery).gvk.api_version,
        "kind": "Bakery",
        "metadata": {"name": "corner"},
        "spec": {"sign": "open"},
    }
    declaration = OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (shop,)),))

    permissions = derive_permissions(declaration, QUIET, samples=[sample])

    assert verbs(permissions.rules, "batch", "jobs")
    assert permissions.cluster_rules == ()
    assert permissions.gaps == ()


def test_each_option_of_a_resource_needs_the_verbs_that_the_engine_sends_for_it() -> None:
    rules = derive_permissions(BAKERY, QUIET).rules

    assert verbs(rules, "", "configmaps") == WRITTEN, "managed"
    assert verbs(rules, "", "secrets") == READ, "read-only"
    assert verbs(rules, "", "services") == (*WRITTEN[:1], "delete", *WRITTEN[1:]), "managed or deleted"
    assert verbs(rules, "batch", "jobs") == ("delete", *READ), "only ever deleted"
    assert verbs(rules, "policy", "poddisruptionbudgets") == (
        *WRITTEN[:4],
        "update",
        "watch",
    ), "managed or orphaned, which is an update"
    assert verbs(rules, "apps", "deployments") == (*WRITTEN[:1], "delete", *WRITTEN[1:]), "behind the component's gate"


def test_what_depends_on_an_enumeration_a_switch_or_a_list_is_found() -> None:
    rules = derive_permissions(BAKERY, QUIET).rules

    assert verbs(rules, "apps", "statefulsets") == WRITTEN
    assert verbs(rules, "policy", "poddisruptionbudgets")


def test_the_owners_and_their_status_come_with_the_class() -> None:
    rules = derive_permissions(BAKERY, QUIET).rules

    group = "permissions.konverge.test"
    assert verbs(rules, group, "bakeries") == READ
    assert verbs(rules, group, "bakeries/status") == ("patch", "update")
    assert verbs(rules, group, "bakeries/finalizers") == ("update",)
    with_finalizer = OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (kitchen,), has_finalizer=True),))
    assert verbs(derive_permissions(with_finalizer, QUIET).rules, group, "bakeries") == (
        "get",
        "list",
        "patch",
        "watch",
    )


def test_nothing_else_is_asked_for() -> None:
    found = derive_permissions(BAKERY, QUIET)

    assert {(rule.api_groups, resource) for rule in found.rules for resource in rule.resources} == {
        (("",), "configmaps"),
        (("",), "secrets"),
        (("",), "services"),
        (("apps",), "deployments"),
        (("apps",), "statefulsets"),
        (("batch",), "jobs"),
        (("permissions.konverge.test",), "bakeries"),
        (("permissions.konverge.test",), "bakeries/finalizers"),
        (("permissions.konverge.test",), "bakeries/status"),
        (("policy",), "poddisruptionbudgets"),
    }
    assert found.cluster_rules == found.home_rules == ()


def test_workloads_need_the_reads_that_examine_them_when_they_are_late() -> None:
    features = RuntimeFeatures(records_events=False)

    found = derive_permissions(BAKERY, features)

    assert verbs(found.rules, "", "pods") == ("list",)
    assert verbs(found.rules, "", "persistentvolumeclaims") == ("get",)
    assert verbs(found.rules, "events.k8s.io", "events") == ("list",)


def test_a_function_that_declares_to_apply_a_workload_gets_the_reads_too() -> None:
    def derive(*verbs_: str) -> tuple[PolicyRule, ...]:
        uses = (ResourceAccess.of(GroupVersionKind("apps", "v1", "Deployment"), verbs_),)
        declaration = OperatorDeclaration("bakery", (DeclaredOwner(Bakery),), uses=uses)
        return derive_permissions(declaration, RuntimeFeatures(records_events=False)).rules

    assert verbs(derive("get", "create", "patch"), "", "pods") == ("list",)
    assert verbs(derive("get"), "", "pods") == ()


def list_rules(rules: Sequence[PolicyRule], resource: str) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The verbs and the names of objects of each rule about a resource."""
    return [(rule.verbs, rule.resource_names) for rule in rules if resource in rule.resources]


def test_the_facilities_of_the_runtime_bring_their_own() -> None:
    everything = RuntimeFeatures(
        elects_leader=True,
        authenticates_metrics=True,
        registers_webhooks=True,
        installs_definitions=True,
        certificate_secret="bakery-tls",
        diagnoses=False,
    )

    found = derive_permissions(BAKERY, everything)

    assert verbs(found.rules, "events.k8s.io", "events") == ("create", "patch")
    assert verbs(found.cluster_rules, "authentication.k8s.io", "tokenreviews") == ("create",)
    assert verbs(found.cluster_rules, "authorization.k8s.io", "subjectaccessreviews") == ("create",)
    assert list_rules(found.home_rules, "leases") == [(("create",), ()), (("get", "update"), ("bakery",))]
    assert list_rules(found.home_rules, "secrets") == [(("create",), ()), (("get", "update"), ("bakery-tls",))]
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        assert list_rules(found.cluster_rules, kind) == [(("create",), ()), (("delete", "get", "patch"), ("bakery",))]
    assert list_rules(found.cluster_rules, "customresourcedefinitions") == [
        (("create",), ()),
        (("get", "patch"), ("bakeries.permissions.konverge.test",)),
    ]


def test_the_lease_of_an_election_is_granted_by_its_name_and_those_of_members_have_none_beforehand() -> None:
    elected = derive_permissions(BAKERY, RuntimeFeatures(elects_leader=True, lease="ovens"))
    divided = derive_permissions(BAKERY, RuntimeFeatures(shards=True, lease="ovens"))

    assert list_rules(elected.home_rules, "leases") == [(("create",), ()), (("get", "update"), ("ovens",))]
    assert list_rules(divided.home_rules, "leases") == [(("create", "delete", "get", "list", "update"), ())]


def test_watched_kinds_are_read_and_declared_uses_added() -> None:
    declaration = OperatorDeclaration(
        "bakery",
        watched=(
            GroupVersionKind("", "v1", "Node"),
            GroupVersionKind("", "v1", "Endpoints"),
            GroupVersionKind("gateway.networking.k8s.io", "v1", "Gateway"),
        ),
        uses=(
            ResourceAccess.of(GroupVersionKind("", "v1", "Pod"), ("create",), subresource="eviction"),
            ResourceAccess.of(GroupVersionKind("x.example", "v1", "Fish"), READ, plural="fish"),
        ),
    )

    found = derive_permissions(declaration, QUIET)

    assert verbs(found.cluster_rules, "", "nodes") == READ
    assert verbs(found.rules, "", "endpoints") == READ
    assert verbs(found.rules, "gateway.networking.k8s.io", "gateways") == READ
    assert verbs(found.rules, "", "pods/eviction") == ("create",)
    assert verbs(found.rules, "x.example", "fish") == READ


def test_a_reconcile_function_is_said_to_be_opaque_unless_its_uses_are_declared() -> None:
    owner = DeclaredOwner(Bakery)

    (gap,) = derive_permissions(OperatorDeclaration("bakery", (owner,)), QUIET).gaps
    declared = derive_permissions(
        OperatorDeclaration("bakery", (owner,), uses=(ResourceAccess.of(GroupVersionKind("", "v1", "Secret"), READ),)),
        QUIET,
    )

    assert gap == (
        "Bakery: the access of its reconcile function cannot be derived without a run: declare it with "
        "operator.uses(...), as konverge rbac prints it"
    )
    assert declared.gaps == ()


def test_a_function_that_fails_for_some_samples_is_named() -> None:
    def fragile(bakery: Bakery) -> Component:
        return kitchen(bakery) if bakery.spec.sign else shop(None)  # type: ignore[arg-type]  # the mistake

    gaps = derive_permissions(OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (fragile,)),)), QUIET).gaps

    (gap,) = [found for found in gaps if found.startswith("fragile builds no component for ")]
    assert "AttributeError: 'NoneType' object has no attribute 'metadata'" in gap


def test_a_function_that_makes_no_component_is_told_what_a_pass_would_tell() -> None:
    def unbuilt(bakery: Bakery) -> Any:
        return ComponentBuilder("kitchen", condition_type="KitchenReady")

    async def late(bakery: Bakery) -> Any: ...

    found = derive_permissions(OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (unbuilt, late)),)), QUIET)

    assert found.gaps == (
        "unbuilt: expected a Component, found ComponentBuilder; does it end in .build()?",
        "late: it is a coroutine function, expected a plain one",
    )


@dataclass
class LockedSpec:
    code: Annotated[str, Meta(pattern="^[q]{3}-[0-9]+$")]


@custom_resource(group="permissions.konverge.test", version="v1")
@dataclass
class Locked:
    metadata: Metadata
    spec: LockedSpec


def vault(locked: Locked) -> Component:
    obj = {"metadata": {"name": locked.spec.code, "namespace": locked.metadata.namespace}}
    return ComponentBuilder("vault", condition_type="VaultReady").with_resource(Secret(obj)).build()


def test_functions_that_take_too_long_are_called_no_further() -> None:
    class Slow(SimulatedClock):
        """Ten seconds pass with every look."""

        def monotonic(self) -> float:
            self.jumped = getattr(self, "jumped", 0.0) + 10.0
            return self.jumped

    declaration = OperatorDeclaration("bakeries", (DeclaredOwner(Bakery, (kitchen,)),))

    found = derive_permissions(declaration, clock=Slow())

    (gap,) = [each for each in found.gaps if "kitchen" in each]
    assert re.fullmatch(
        r"kitchen was called for 2 of \d+ sample objects of Bakery only: building components took more than 30 s", gap
    )


def test_a_text_that_cannot_be_made_up_asks_for_a_sample() -> None:
    declaration = OperatorDeclaration("vault", (DeclaredOwner(Locked, (vault,)),))
    sample = {
        "apiVersion": "permissions.konverge.test/v1",
        "kind": "Locked",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"code": "qqq-7"},
    }

    without, given = derive_permissions(declaration, QUIET), derive_permissions(declaration, QUIET, samples=[sample])

    assert without.gaps == (
        "Locked spec.code: no sample string fits its pattern and its length; give a sample object that has one",
    )
    assert verbs(given.rules, "", "secrets") == WRITTEN
    assert given.gaps == ()


def test_a_sample_shows_what_the_schema_alone_does_not() -> None:
    def secret_room(bakery: Bakery) -> Component:
        builder = ComponentBuilder("secret", condition_type="SecretReady").with_resource(
            ConfigMap(build_metadata(bakery, "a"))
        )
        builder.include_when(bakery.spec.sign == "open sesame", lambda: Secret(build_metadata(bakery, "room")))
        return builder.build()

    declaration = OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (secret_room,)),))
    sample = {
        "apiVersion": "permissions.konverge.test/v1",
        "kind": "Bakery",
        "metadata": {"name": "b", "namespace": "c"},
        "spec": {"sign": "open sesame"},
    }

    assert verbs(derive_permissions(declaration, QUIET).rules, "", "secrets") == ()
    assert verbs(derive_permissions(declaration, QUIET, samples=[sample]).rules, "", "secrets") == WRITTEN


def test_kinds_of_which_too_little_is_known_are_named() -> None:
    def foreign(bakery: Bakery) -> Component:
        return (
            ComponentBuilder("foreign", condition_type="ForeignReady")
            .with_resource(Static({"apiVersion": "x.example/v1", "kind": "Fish", **build_metadata(bakery, "a")}))
            .with_resource(
                Static(
                    {
                        "apiVersion": "rbac.authorization.k8s.io/v1",
                        "kind": "Role",
                        **build_metadata(bakery, "b"),
                        "rules": [],
                    }
                )
            )
            .with_resource(
                Static({"apiVersion": "permissions.konverge.test/v1", "kind": "Bakery", **build_metadata(bakery, "c")})
            )
            .build()
        )

    found = derive_permissions(OperatorDeclaration("bakery", (DeclaredOwner(Bakery, (foreign,)),)), QUIET)

    assert found.gaps == (
        "x.example/v1/Fish is not a built-in kind: its plural is assumed to be 'fishs'; if that is wrong, "
        "declare it with operator.uses(..., plural=...)",
        "rbac.authorization.k8s.io/v1/Role grants permissions, and the API server requires that the "
        "operator has them itself: declare them with operator.uses(...)",
    )
    assert verbs(found.rules, "permissions.konverge.test", "bakeries") == WRITTEN


def test_uses_in_the_same_way_share_a_rule_and_all_is_sorted() -> None:
    rules = build_rules(
        [
            ResourceAccess("apps", "statefulsets", ("watch", "get")),
            ResourceAccess("", "secrets", ("get",)),
            ResourceAccess("apps", "deployments", ("get",)),
            ResourceAccess("apps", "deployments", ("watch",)),
            ResourceAccess("", "secrets", ("get", "patch"), names=("b", "a")),
        ]
    )

    assert rules == (
        PolicyRule(("",), ("secrets",), ("get",)),
        PolicyRule(("",), ("secrets",), ("patch",), ("a", "b")),
        PolicyRule(("apps",), ("deployments", "statefulsets"), ("get", "watch")),
    )


def test_a_use_without_verbs_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one verb"):
        ResourceAccess.of(GroupVersionKind("", "v1", "Secret"), ())


def test_kinds_without_a_namespace_are_granted_across_the_cluster() -> None:
    assert (
        ResourceAccess.of(GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole"), READ).scope
        is AccessScope.CLUSTER
    )
    assert ResourceAccess.of(GroupVersionKind("", "v1", "ConfigMap"), READ).scope is AccessScope.OWNERS


def test_without_namespaces_one_cluster_role_holds_the_rules_and_a_role_the_leases() -> None:
    found = build_role_manifests(
        derive_permissions(BAKERY, RuntimeFeatures(elects_leader=True)), ObjectKey("ovens", "bakery")
    )

    assert [(obj["kind"], obj["metadata"].get("namespace")) for obj in found] == [
        ("ServiceAccount", "ovens"),
        ("ClusterRole", None),
        ("ClusterRoleBinding", None),
        ("Role", "ovens"),
        ("RoleBinding", "ovens"),
    ]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert found[3]["rules"] == [
        leases | {"verbs": ["create"]},
        leases | {"verbs": ["get", "update"], "resourceNames": ["bakery"]},
    ]
    assert found[2]["subjects"] == [{"kind": "ServiceAccount", "name": "bakery", "namespace": "ovens"}]


def test_with_namespaces_each_gets_a_role_and_the_cluster_none() -> None:
    permissions = derive_permissions(BAKERY, RuntimeFeatures(elects_leader=True))

    found = build_role_manifests(permissions, ObjectKey("a", "bakery"), ["b", "a"])

    roles = {obj["metadata"]["namespace"]: obj["rules"] for obj in found if obj["kind"] == "Role"}
    assert list(roles) == ["a", "b"]
    assert roles["b"] == [rule.to_manifest() for rule in permissions.rules]
    assert len(roles["a"]) == len(roles["b"]) + 2
    assert not [obj for obj in found if obj["kind"].startswith("ClusterRole")]


def test_names_that_are_none_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="account 'Not A Name'"):
        build_role_manifests(derive_permissions(BAKERY), ObjectKey("a", "Not A Name"))


def test_samples_are_bounded_and_always_the_same() -> None:
    definition = find_definition(Bakery)

    few = build_sample_objects(definition, 5)

    assert len(few.objects) == 5
    assert few.objects == build_sample_objects(definition, 5).objects
    assert "too many fields to vary" in few.gaps[-1]


@pytest.mark.slow
def test_the_manifests_are_the_same_text_whatever_the_hash_seed() -> None:
    program = (
        "import json; from tests.operator.test_permission_derivation import BAKERY; "
        "from konverge._internal.operator.permission_derivation import derive_permissions; from "
        "konverge._internal.operator.role_manifests import build_role_manifests; "
        "from konverge.kube import ObjectKey; "
        "print(json.dumps(build_role_manifests(derive_permissions(BAKERY), ObjectKey('a', 'b'))))"
    )

    texts = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "424242")
    }

    assert len(texts) == 1
    found: list[dict[str, Any]] = json.loads(texts.pop())
    assert found[0]["kind"] == "ServiceAccount"

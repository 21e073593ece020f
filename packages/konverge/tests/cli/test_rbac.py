"""`konverge rbac`: roles for kubectl."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest
import yaml

from konverge._internal.cli.user_code import call_with_timeout
from konverge.errors import ConfigurationError
from konverge_cluster._internal.cli.demo import find_example_folder
from tests.cli.conftest import Konverge

OPERATOR = find_example_folder() / "operator.py"

SHOP = """
from dataclasses import dataclass
from konverge import ComponentBuilder, Metadata, Operator, custom_resource
from konverge.primitives import ConfigMap, Secret


@dataclass
class ShopSpec:
    theme: str = ""


@custom_resource(group="cli.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


def settings(shop):
    metadata = {"name": shop.metadata.name, "namespace": shop.metadata.namespace}
    kind = Secret if shop.spec.theme == "dark" else ConfigMap
    builder = ComponentBuilder("settings", condition_type="SettingsReady")
    return builder.with_resource(kind({"metadata": metadata})).build()


managed = Operator("managed")
managed.manages(Shop, settings)

own = Operator("own")


@own.reconciles(Shop)
async def reconcile(shop, ctx):
    return None


mixed = Operator("mixed")
mixed.manages(Shop, settings, reconcile)


@mixed.finalizes(Shop)
async def withdraw(shop, ctx):
    return None
"""

ODD = """
import sys
from dataclasses import dataclass
from konverge import Metadata, Operator, custom_resource
from konverge.errors import KonvergeError


class Silent(Exception):
    def __str__(self):
        raise RuntimeError


@dataclass
class ShopSpec:
    theme: str = ""


@custom_resource(group="cli.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


def odd(shop):
    {body}


operator = Operator("odd")
operator.manages(Shop, odd)
"""

DARK = """
apiVersion: cli.konverge.test/v1
kind: Shop
metadata: {name: a, namespace: b}
spec: {theme: dark}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.py"
    file.write_text(SHOP)
    return file


def resources(text: str) -> set[str]:
    return {
        resource
        for found in yaml.safe_load_all(text)
        for rule in found.get("rules", ())
        for resource in rule["resources"]
    }


def test_account_roles_and_bindings_are_yaml_documents(konverge: Konverge) -> None:
    done = konverge("rbac", OPERATOR, "--leader-elect", "--account", "demo/webapp-operator")

    found = list(yaml.safe_load_all(done.stdout))
    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found] == [
        ("ServiceAccount", "webapp-operator"),
        ("ClusterRole", "webapp-operator"),
        ("ClusterRoleBinding", "webapp-operator"),
        ("Role", "webapp-operator"),
        ("RoleBinding", "webapp-operator"),
    ]
    leases = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    assert leases | {"verbs": ["create"]} in found[3]["rules"]
    assert leases | {"resourceNames": ["webapp"], "verbs": ["get", "update"]} in found[3]["rules"]
    assert done.stderr == ""


def test_the_roles_of_the_example_are_no_wider_than_what_it_does(konverge: Konverge) -> None:
    (role,) = (
        found
        for found in yaml.safe_load_all(konverge("rbac", OPERATOR, "--no-events", "--no-diagnosis").stdout)
        if found["kind"] == "ClusterRole"
    )

    written = ["create", "get", "list", "patch", "watch"]
    assert [(rule["resources"], rule["verbs"]) for rule in role["rules"]] == [
        (["configmaps", "services"], ["create", "delete", "get", "list", "patch", "watch"]),
        (["secrets"], written),
        (["deployments", "statefulsets"], written),
        (["webapps"], ["get", "list", "watch"]),
        (["webapps/finalizers"], ["update"]),
        (["webapps/status"], ["patch", "update"]),
    ]


@pytest.mark.slow
def test_late_workloads_are_examined_with_three_more_reads(konverge: Konverge) -> None:
    def list_rules(*options: str) -> list[tuple[list[str], list[str]]]:
        objects = yaml.safe_load_all(konverge("rbac", OPERATOR, "--no-events", *options).stdout)
        (role,) = (found for found in objects if found["kind"] == "ClusterRole")
        return [(rule["resources"], rule["verbs"]) for rule in role["rules"]]

    added = [rule for rule in list_rules() if rule not in list_rules("--no-diagnosis")]

    assert added == [(["persistentvolumeclaims"], ["get"]), (["pods"], ["list"]), (["events"], ["list"])]


def test_namespaces_get_roles(konverge: Konverge) -> None:
    done = konverge("rbac", OPERATOR, "--namespace", "a", "--namespace", "b")

    found = list(yaml.safe_load_all(done.stdout))
    assert [obj["metadata"]["namespace"] for obj in found if obj["kind"] == "Role"] == ["a", "b"]
    assert not [obj for obj in found if obj["kind"] == "ClusterRole"]


def test_json_is_a_list_with_the_same_objects(konverge: Konverge) -> None:
    found = json.loads(konverge("rbac", OPERATOR, "-o", "json").stdout)

    assert found["kind"] == "List"
    assert found["items"] == list(yaml.safe_load_all(konverge("rbac", OPERATOR).stdout))


@pytest.mark.slow
def test_the_same_file_gives_the_same_bytes_whatever_the_hash_seed(started_konverge: Konverge) -> None:
    texts = {started_konverge("rbac", OPERATOR, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "77")}

    assert len(texts) == 1
    assert "&id" not in texts.pop(), "no aliases"


def test_a_sample_shows_what_cannot_be_guessed(konverge: Konverge, shop: Path, tmp_path: Path) -> None:
    sample = tmp_path / "dark.yaml"
    sample.write_text(DARK)

    without = konverge("rbac", f"{shop}:managed")
    given = konverge("rbac", f"{shop}:managed", "--sample", sample)

    assert "secrets" not in resources(without.stdout)
    assert {"configmaps", "secrets"} <= resources(given.stdout)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("sys.exit(0)", "SystemExit: 0"),
        ("raise GeneratorExit", "GeneratorExit"),
        ('raise KonvergeError("")', "KonvergeError"),
        (r'raise ValueError("\n")', "ValueError:"),
        ("raise Silent", "Silent: its text cannot be read"),
    ],
)
def test_a_function_that_ends_in_whatever_way_is_named_and_the_rest_is_printed(
    body: str, reason: str, konverge: Konverge, tmp_path: Path
) -> None:
    (tmp_path / "odd.py").write_text(ODD.format(body=body))

    done = konverge("rbac", "odd.py")

    assert done.returncode == 0
    assert "shops" in resources(done.stdout)
    assert re.fullmatch(
        r"konverge: not derived: odd builds no component for \d+ of \d+ sample objects of Shop "
        rf"\({re.escape(reason)}\); give a sample object for what it would use there\n",
        done.stderr,
    )


def test_what_the_file_and_its_functions_print_does_not_become_manifests(konverge: Konverge, tmp_path: Path) -> None:
    printing = 'print("apiVersion: printed")\n'
    run = 'import subprocess\nsubprocess.run(["echo", "kind: started"])\n'
    (tmp_path / "loud.py").write_text(printing + run + ODD.format(body='print("kind: called")'))

    roles, definitions = konverge("rbac", "loud.py"), konverge("crd", "loud.py")

    assert {obj["kind"] for obj in yaml.safe_load_all(roles.stdout)} <= {
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
    }
    assert [obj["kind"] for obj in yaml.safe_load_all(definitions.stdout)] == ["CustomResourceDefinition"]
    assert {"apiVersion: printed", "kind: started", "kind: called"} <= set(roles.stderr.splitlines())
    assert {"apiVersion: printed", "kind: started"} <= set(definitions.stderr.splitlines())


def test_a_function_that_does_not_return_is_told_with_its_place() -> None:
    stuck = threading.Event()

    try:
        with pytest.raises(ConfigurationError, match=r"building: not finished within 0\.05 s: it is at .*, line \d+"):
            call_with_timeout(0.05, stuck.wait, "building")
    finally:
        stuck.set()


def test_what_is_meant_to_end_a_program_ends_no_derivation_without_a_word() -> None:
    def leave() -> None:
        raise KeyboardInterrupt

    with pytest.raises(ConfigurationError, match="building: ended by KeyboardInterrupt"):
        call_with_timeout(10.0, leave, "building")


@pytest.mark.parametrize("shards", [("--shards",), ("--shards", "3"), ("--shards=3",)])
def test_shards_may_have_the_number_that_run_wants(shards: tuple[str, ...], konverge: Konverge) -> None:
    done = konverge("rbac", *shards, OPERATOR)

    (rule,) = [
        rule
        for obj in yaml.safe_load_all(done.stdout)
        for rule in obj.get("rules", ())
        if rule["resources"] == ["leases"]
    ]
    assert "delete" in rule["verbs"]


@pytest.mark.slow
def test_the_secret_of_the_webhooks_is_granted_in_the_operators_namespace(konverge: Konverge) -> None:
    secret = ("--webhook-secret", "demo/webapp-webhooks")
    done = konverge("rbac", OPERATOR, "--account", "demo/webapp", *secret)
    elsewhere = konverge("rbac", OPERATOR, *secret)

    (role,) = [obj for obj in yaml.safe_load_all(done.stdout) if obj["kind"] == "Role"]
    assert role["metadata"]["namespace"] == "demo"
    secrets = {"apiGroups": [""], "resources": ["secrets"]}
    assert secrets | {"verbs": ["create"]} in role["rules"]
    assert secrets | {"resourceNames": ["webapp-webhooks"], "verbs": ["get", "update"]} in role["rules"]
    assert elsewhere.returncode == 3
    expected = (
        "--webhook-secret: expected the namespace of --account ('default'), where the operator stores its certificate"
    )
    assert expected in elsewhere.stderr


def test_a_check_prints_only_what_could_not_be_derived(konverge: Konverge, shop: Path) -> None:
    derived = konverge("rbac", f"{shop}:managed", "--check")
    mixed = konverge("rbac", f"{shop}:mixed", "--check", "--no-run-functions")

    assert (derived.returncode, derived.stdout, derived.stderr) == (0, "", "")
    assert (mixed.returncode, mixed.stdout) == (1, "")
    assert mixed.stderr == (
        "konverge: not derived: Shop: the access of reconcile, withdraw cannot be derived without a run: declare it "
        "with operator.uses(...), as konverge rbac prints it\n"
    )


def test_what_could_not_be_derived_is_said_on_stderr(konverge: Konverge, shop: Path) -> None:
    done = konverge("rbac", f"{shop}:own", "--no-run-functions")

    assert done.returncode == 0
    assert done.stderr == (
        "konverge: not derived: Shop: the access of reconcile cannot be derived without a run: declare it with "
        "operator.uses(...), as konverge rbac prints it\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--sample", "absent.yaml"), 3, "absent.yaml: No such file or directory"),
        (("--sample", "shop.py"), 3, "shop.py: expected YAML: "),
        (("--leader-elect", "--shards"), 2, "--leader-elect, --shards: expected at most one of them"),
        (("--lease-name", "ovens"), 2, "--lease-name: requires --leader-elect or --shards"),
        (("--account", "nobody"), 2, "--account: expected NAMESPACE/NAME, found 'nobody'"),
        (("--account", "default/Some One"), 3, "--account: name 'Some One': "),
        (("--namespace", "Here"), 3, "namespace 'Here': "),
        (("--namespace", ""), 3, "namespace '': "),
        (("--shards", "0"), 2, "--shards"),
    ],
)
def test_what_cannot_be_used_is_named(
    konverge: Konverge, shop: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = konverge("rbac", f"{shop}:managed", *arguments)

    assert done.returncode == code
    assert problem in done.stderr
    assert done.stdout == ""

"""`konverge rbac`: roles for kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from konverge.cli.demo import example_folder
from tests.cli.conftest import Konverge

OPERATOR = example_folder() / "operator.py"

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
    assert {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create", "get", "update"]} in (
        found[3]["rules"]
    )
    assert done.stderr == ""


def test_the_roles_of_the_example_are_no_wider_than_what_it_does(konverge: Konverge) -> None:
    (role,) = (
        found
        for found in yaml.safe_load_all(konverge("rbac", OPERATOR, "--no-events").stdout)
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


def test_namespaces_get_roles(konverge: Konverge) -> None:
    done = konverge("rbac", OPERATOR, "--namespace", "a", "--namespace", "b")

    found = list(yaml.safe_load_all(done.stdout))
    assert [obj["metadata"]["namespace"] for obj in found if obj["kind"] == "Role"] == ["a", "b"]
    assert not [obj for obj in found if obj["kind"] == "ClusterRole"]


def test_json_is_a_list_with_the_same_objects(konverge: Konverge) -> None:
    found = json.loads(konverge("rbac", OPERATOR, "-o", "json").stdout)

    assert found["kind"] == "List"
    assert found["items"] == list(yaml.safe_load_all(konverge("rbac", OPERATOR).stdout))


def test_the_same_file_gives_the_same_bytes_whatever_the_hash_seed(konverge: Konverge) -> None:
    texts = {konverge("rbac", OPERATOR, PYTHONHASHSEED=seed).stdout for seed in ("0", "1", "77")}

    assert len(texts) == 1
    assert "&id" not in texts.pop(), "no aliases"


def test_a_sample_shows_what_cannot_be_guessed(konverge: Konverge, shop: Path, tmp_path: Path) -> None:
    sample = tmp_path / "dark.yaml"
    sample.write_text(DARK)

    without = konverge("rbac", f"{shop}:managed")
    given = konverge("rbac", f"{shop}:managed", "--sample", sample)

    assert "secrets" not in resources(without.stdout)
    assert {"configmaps", "secrets"} <= resources(given.stdout)


def test_what_could_not_be_derived_is_said_on_stderr(konverge: Konverge, shop: Path) -> None:
    done = konverge("rbac", f"{shop}:own")

    assert done.returncode == 0
    assert done.stderr == (
        "konverge: not derived: Shop has a reconcile function of its own, and what that uses cannot be seen: "
        "declare it with operator.uses(...)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--sample", "absent.yaml"), 3, "absent.yaml: No such file or directory"),
        (("--sample", "shop.py"), 3, "shop.py: no YAML: "),
        (("--account", "nobody"), 2, "--account: expected NAMESPACE/NAME, found 'nobody'"),
        (("--account", "default/Some One"), 3, "account 'Some One': "),
        (("--namespace", "Here"), 3, "namespace 'Here': "),
    ],
)
def test_what_cannot_be_used_is_named(
    konverge: Konverge, shop: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    done = konverge("rbac", f"{shop}:managed", *arguments)

    assert done.returncode == code
    assert problem in done.stderr
    assert done.stdout == ""

"""`konverge rbac` runs the author's functions on an embedded cluster, and compares roles with what they used."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from konverge._internal.cli.observation_process import observe_functions
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cli.conftest import Konverge

pytestmark = pytest.mark.slow

VERBS = ["create", "get", "list", "patch", "watch"]
ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "Role")

SHOP = """
import os, socket, subprocess
from dataclasses import dataclass
from konverge import Metadata, ObjectKey, Operator, custom_resource, kind_of


@dataclass
class ShopSpec:
    theme: str = ""


@custom_resource(group="functions.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


operator = Operator("shops")


@operator.reconciles(Shop)
async def reconcile(shop, ctx):
    metadata = {"name": shop.metadata.name, "namespace": shop.metadata.namespace}
    await ctx.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}, field_manager="shops")
    if shop.spec.theme == "dark":
        await ctx.cluster.get(kind_of("v1/Secret"), ObjectKey(shop.metadata.namespace, "dark"), live=True)
"""

DARK = """
apiVersion: functions.konverge.test/v1
kind: Shop
metadata: {name: one, namespace: shops}
spec: {theme: dark}
---
apiVersion: v1
kind: Secret
metadata: {name: dark, namespace: shops}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "dark.yaml").write_text(DARK)
    return tmp_path / "shop.py"


def test_what_functions_use_is_granted_and_marked_and_what_no_sample_reached_is_named(
    konverge: Konverge, shop: Path
) -> None:
    options = ("--no-events", "--no-diagnosis", "--namespace", "shops")

    first = konverge("rbac", shop, *options)
    second = konverge("rbac", shop, *options, "--sample", shop.parent / "dark.yaml")

    (role,) = [obj for obj in yaml.safe_load_all(first.stdout) if obj["kind"] == "Role"]
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": VERBS} in role["rules"]
    assert role["metadata"]["annotations"] == {"konverge.dev/observed": f"configmaps: {', '.join(VERBS)}"}
    listed = ", ".join(f'"{word}"' for word in ("v1/ConfigMap", *VERBS))
    assert f"konverge: observed: operator.uses({listed})\n" in first.stderr
    assert "konverge: not derived: reconcile: no sample owner reached line 27 (await ctx.cluster.get(" in first.stderr
    (role,) = [obj for obj in yaml.safe_load_all(second.stdout) if obj["kind"] == "Role"]
    assert {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]} in role["rules"]
    assert "not derived" not in second.stderr
    assert konverge("rbac", shop, *options, "--sample", shop.parent / "dark.yaml").stdout == second.stdout


def test_a_rejected_owner_is_the_reason_also_if_another_object_is_rejected_too(konverge: Konverge, shop: Path) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: BAD NAME, namespace: shops}\n"
    (shop.parent / "bad.yaml").write_text(DARK.replace("theme: dark", "theme: 3").partition("---")[0] + "---\n" + other)

    done = konverge("rbac", shop, "--check", "--sample", shop.parent / "bad.yaml")

    assert done.returncode == 1
    assert "not derived: Shop: reconcile was not run: the server rejects the samples (" in done.stderr
    assert "theme" in done.stderr


def test_a_check_compares_files_of_roles_with_what_is_required(konverge: Konverge, shop: Path) -> None:
    options = ("--namespace", "shops", "--sample", shop.parent / "dark.yaml")
    roles, less = shop.parent / "roles.yaml", shop.parent / "less.yaml"
    roles.write_text(konverge("rbac", shop, *options).stdout)
    objects = list(yaml.safe_load_all(roles.read_text()))
    for obj in objects:
        for rule in obj.get("rules", ()):
            if rule["resources"] == ["configmaps"]:
                rule["verbs"] = ["create", "delete", "get", "list", "watch"]
    less.write_text(yaml.safe_dump_all(objects))

    complete = konverge("rbac", shop, *options, "--check", "--roles", roles)
    lacking = konverge("rbac", shop, *options, "--check", "--roles", less)

    assert (complete.returncode, complete.stdout) == (0, "")
    assert lacking.returncode == 1
    assert "missing permission" in lacking.stderr
    assert "[configmaps], verbs: [patch]" in lacking.stderr
    assert "konverge: not required: Role in namespace shops: configmaps: delete\n" in lacking.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("--roles", "shop.py"), 2, "--roles, --cluster: require --check"),
        (("--check", "--roles", "absent.yaml"), 3, "absent.yaml"),
        (("--check", "--roles", "dark.yaml"), 3, "dark.yaml: expected a Role or a ClusterRole, found none"),
        (("--check", "--roles", "bad.yaml"), 3, "bad.yaml: Role shops: rules: expected a list of rules"),
        (("--check", "--roles", "dark.yaml", "--cluster"), 2, "--roles, --cluster: expected at most one of them"),
        (("--check", "--kubeconfig", "absent"), 2, "--kubeconfig, --context: require --cluster"),
        (("--check", "--cluster", "--kubeconfig", "absent"), 3, "absent"),
    ],
)
def test_roles_that_cannot_be_compared_are_named(
    konverge: Konverge, shop: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    (shop.parent / "bad.yaml").write_text("kind: Role\nmetadata: {name: shops}\nrules: {a: 1}\n")

    done = konverge("rbac", shop, "--no-run-functions", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert problem in done.stderr


@pytest.mark.anyio
@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])  # the other permits everything
async def test_a_check_asks_the_cluster_about_the_account(cluster: Cluster, konverge: Konverge, shop: Path) -> None:
    options = ("--namespace", cluster.namespace, "--account", f"{cluster.namespace}/shops", "--no-run-functions")
    kubeconfig = ("--check", "--cluster", "--kubeconfig", await cluster.write_kubeconfig())
    (shop.parent / "shop.py").write_text(f'{SHOP}\noperator.uses("v1/ConfigMap", "create", "patch")\n')
    for obj in yaml.safe_load_all(konverge("rbac", shop, *options).stdout):
        await cluster.client.apply(obj, field_manager="tests")

    complete = await asyncio.to_thread(konverge, "rbac", shop, *options, *kubeconfig)
    await cluster.client.delete(ROLE, ObjectKey(cluster.namespace, "shops"))
    lacking = await asyncio.to_thread(konverge, "rbac", shop, *options, *kubeconfig)

    assert (complete.returncode, complete.stdout, complete.stderr) == (0, "", "")
    assert lacking.returncode == 1
    assert "[configmaps], verbs: [create, patch]" in lacking.stderr


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ('socket.create_connection(("127.0.0.1", 1))', "it opens a connection"),
        ('subprocess.run(["true"])', "it starts a process"),
        ('open("made", "w")', "it changes files"),
        ('os.mkdir("made")', "it changes files"),
        ("raise ValueError('no')", "ValueError: no"),
    ],
)
def test_functions_have_no_effect_outside_of_the_run(
    konverge: Konverge, shop: Path, statement: str, problem: str
) -> None:
    shop.write_text(SHOP.replace("    metadata = {", f"    {statement}\n    metadata = {{"))

    done = konverge("rbac", shop, "--check")

    assert done.returncode == 1
    assert problem in done.stderr
    assert not list(shop.parent.rglob("made"))


@pytest.mark.parametrize("statement", ["while True: pass", "os._exit(7)"])
def test_a_run_that_does_not_end_by_itself_is_a_gap(shop: Path, statement: str) -> None:
    shop.write_text(SHOP.replace("    metadata = {", f"    {statement}\n    metadata = {{"))
    reference = parse_operator_reference(str(shop))

    found = observe_functions(
        load_operator(reference), reference, [], in_namespaces=False, records_events=True, seconds=3
    )

    assert found is not None
    assert found.accesses == ()
    assert found.gaps[0].startswith(("the functions were not run", "reconcile: "))

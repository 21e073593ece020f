"""`konverge box package`: manifests that an API server accepts, the same each time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge._internal.cli.run import run
from konverge._internal.operator.deployment_manifests import DEPLOYED_FEATURES
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge.crd import crd_manifest
from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge_box._internal.file import load_box
from konverge_box._internal.packaging import PackagingOptions, build_manifests
from konverge_box._internal.runtime import build_box_operator
from konverge_cluster.testing import Cluster

TEXT = (Path(__file__).parents[4] / "examples" / "boxes" / "hello-website" / "box.yaml").read_text()
CHOSEN = PackagingOptions(image="registry.example.com/konverge:1")


def package_box(text: str = TEXT, chosen: PackagingOptions = CHOSEN) -> list[Object]:
    box = load_box(text)
    operator = build_box_operator(box)
    permissions = derive_permissions(operator.registered.declaration, DEPLOYED_FEATURES)
    return build_manifests(box, text, permissions, [crd_manifest(each) for each in operator.defined_resources], chosen)


def one(kind: str, found: list[Object]) -> Any:
    (only,) = (each for each in found if each["kind"] == kind)
    return only


@pytest.mark.anyio
async def test_a_server_takes_all_that_is_printed(cluster: Cluster) -> None:
    chosen = replace(CHOSEN, namespace=cluster.namespace)

    for wanted in package_box(chosen=chosen):
        applied = await cluster.client.apply(wanted, field_manager="kubectl", dry_run=True)
        assert applied.object["metadata"]["name"] == wanted["metadata"]["name"]


def test_what_others_need_comes_first_and_the_same_box_gives_the_same() -> None:
    found = package_box()

    assert [each["kind"] for each in found] == [
        "Namespace",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ConfigMap",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
    ]
    assert found == package_box()


def test_the_file_is_mounted_as_it_is_and_in_a_folder_that_follows_changes() -> None:
    found = package_box()
    pod = one("Deployment", found)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (mount,) = (each for each in container["volumeMounts"] if each["name"] == "box")

    assert one("ConfigMap", found)["data"] == {"box.yaml": TEXT}
    assert "subPath" not in mount
    assert container["args"][:3] == ["box", "run", f"{mount['mountPath']}/box.yaml"]


def test_the_pod_has_no_more_rights_than_it_needs_and_time_to_end() -> None:
    pod = one("Deployment", package_box())["spec"]["template"]["spec"]
    container = pod["containers"][0]
    (grace,) = (int(each.removeprefix("--grace=")) for each in container["args"] if each.startswith("--grace="))

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert grace < pod["terminationGracePeriodSeconds"]
    assert "memory" in container["resources"]["limits"]


def test_its_options_are_those_of_running() -> None:
    arguments = one("Deployment", package_box())["spec"]["template"]["spec"]["containers"][0]["args"][3:]
    known = {option for parameter in run.params for option in parameter.opts}

    assert {each.partition("=")[0] for each in arguments} <= known


def test_the_roles_come_from_the_file_alone() -> None:
    rules = one("ClusterRole", package_box())["rules"]
    verbs = {(group, resource): rule["verbs"] for rule in rules for group in rule["apiGroups"]
             for resource in rule["resources"]}  # fmt: skip

    assert {"create", "delete", "patch", "watch"} <= set(verbs["apps", "deployments"])
    assert {"get", "list", "watch"} <= set(verbs["demo.konverge.dev", "websites"])
    assert ("", "secrets") not in verbs
    assert one("Role", package_box())["rules"][0]["resources"] == ["leases"]


def test_watched_namespaces_get_roles_of_their_own() -> None:
    found = package_box(chosen=replace(CHOSEN, watched=("shop", "blog"), is_namespace_made=False))
    container = one("Deployment", found)["spec"]["template"]["spec"]["containers"][0]

    assert {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"} == {
        "blog",
        "shop",
        "konverge-system",
    }
    assert container["args"][-2:] == ["--namespace=shop", "--namespace=blog"]
    assert found[0]["kind"] == "CustomResourceDefinition"


def test_what_selects_the_pods_selects_them() -> None:
    found = package_box(TEXT.replace("name: hello-website", f"name: {'long-' * 15}name"))
    labels = one("Deployment", found)["spec"]["template"]["metadata"]["labels"]
    chosen = [
        one("Deployment", found)["spec"]["selector"]["matchLabels"],
        one("PodDisruptionBudget", found)["spec"]["selector"]["matchLabels"],
        one("Service", found)["spec"]["selector"],
    ]

    assert all(each.items() <= labels.items() for each in chosen)
    assert all(len(value) <= 63 and value[-1].isalnum() for value in labels.values())
    assert len(one("Service", found)["metadata"]["name"]) <= 63


def test_a_variable_of_the_environment_comes_from_a_secret() -> None:
    call = "\n      external: [{name: a, url: 'https://example.com', auth: {env: TOKEN}}]\n      status:"
    found = package_box(TEXT.replace("\n      status:\n        fields", f"{call}\n        fields"))
    container = one("Deployment", found)["spec"]["template"]["spec"]["containers"][0]

    assert container["envFrom"] == [{"secretRef": {"name": "hello-website-environment", "optional": True}}]


def test_a_box_that_a_config_map_cannot_hold_is_refused() -> None:
    box = load_box(TEXT)
    permissions = derive_permissions(build_box_operator(box).registered.declaration, DEPLOYED_FEATURES)

    with pytest.raises(ConfigurationError, match="does not fit into a ConfigMap"):
        build_manifests(box, TEXT + "#" * (1 << 20), permissions, [], CHOSEN)


def test_a_namespace_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="namespace 'Not A Name'"):
        package_box(chosen=replace(CHOSEN, namespace="Not A Name"))

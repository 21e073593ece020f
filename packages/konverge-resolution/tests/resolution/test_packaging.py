"""`konverge resolvers package`: manifests that an API server takes, with the rights of the resolvers that are there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object
from konverge_cluster.testing import Cluster
from konverge_resolution._internal.cli.resolvers import resolvers
from konverge_resolution._internal.requests.resolution_config import GENERAL_SETTINGS, parse_config
from konverge_resolution._internal.requests.resolver_packaging import EXAMPLE, ResolverPackaging, package_resolvers
from konverge_resolution._internal.resolvers import STANDARD, load_resolvers

CHOSEN = ResolverPackaging(image="registry.example.com/konverge:1")
READING = {"get", "list", "watch"}
TASK = GroupVersionKind("tekton.dev", "v1", "Task")


def package_standard_resolvers(*names: str, chosen: ResolverPackaging = CHOSEN) -> list[Object]:
    return package_resolvers(load_resolvers(names or STANDARD), chosen)


def of(kind: str, found: list[Object]) -> list[Any]:
    return [each for each in found if each["kind"] == kind]


def rights(found: list[Object]) -> set[str]:
    """Group, resource and verb of every rule, in whichever role it is."""
    return {
        f"{group}/{resource} {verb}"
        for role in (*of("ClusterRole", found), *of("Role", found))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.anyio
async def test_a_server_takes_all_that_is_printed(cluster: Cluster) -> None:
    chosen = replace(CHOSEN, home=cluster.namespace, serves_tekton=True, credentials_in=(cluster.namespace,))
    for wanted in package_standard_resolvers(chosen=replace(chosen, reads_kinds=(TASK,))):
        applied = await cluster.client.apply(wanted, field_manager="kubectl", dry_run=True)
        assert applied.object["metadata"]["name"] == wanted["metadata"]["name"]


def test_what_others_need_comes_first_and_the_same_choice_gives_the_same() -> None:
    found = package_standard_resolvers()

    assert [each["kind"] for each in found] == [
        "Namespace",
        *["CustomResourceDefinition"] * 2,
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        *["ConfigMap"] * 6,
        "Service",
        "PodDisruptionBudget",
        "Deployment",
    ]
    assert found == package_standard_resolvers()


def test_a_resolver_that_is_left_out_leaves_no_rule_behind() -> None:
    everywhere = replace(CHOSEN, credentials_in=("*",))
    whole = rights(package_standard_resolvers(chosen=replace(everywhere, reads_kinds=(TASK,))))

    assert {"/secrets get", "/serviceaccounts get", "tekton.dev/tasks get"} <= whole
    assert whole - rights(package_standard_resolvers("bundles", "git", "http", "hub", chosen=everywhere)) == {
        "tekton.dev/tasks get"
    }
    assert whole - rights(package_standard_resolvers("git", "http", chosen=everywhere)) == {
        "tekton.dev/tasks get",
        "/serviceaccounts get",
    }
    assert not any(
        right.startswith("/secrets") for right in rights(package_standard_resolvers("hub", chosen=everywhere))
    )
    assert not [right for right in whole if right.startswith("/secrets") and right != "/secrets get"]


@pytest.mark.parametrize("names", [("http",), ("bundles",), STANDARD])
def test_no_secret_is_granted_anywhere_until_a_namespace_is_named_for_it(names: tuple[str, ...]) -> None:
    assert not [
        right
        for right in rights(package_standard_resolvers(*names))
        if right.startswith(("/secrets", "/serviceaccounts"))
    ]


def test_secrets_are_granted_in_the_namespaces_that_are_named_for_it_and_in_no_other() -> None:
    found = package_standard_resolvers("http", chosen=replace(CHOSEN, credentials_in=("team-b", "team-a")))
    roles = {
        (each["kind"], each["metadata"].get("namespace", "")): each
        for each in found
        if each["kind"] in ("ClusterRole", "Role") and any("secrets" in rule["resources"] for rule in each["rules"])
    }

    assert set(roles) == {("Role", "team-a"), ("Role", "team-b")}
    assert roles["Role", "team-a"]["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    (bound,) = [each for each in of("RoleBinding", found) if each["metadata"].get("namespace") == "team-a"]
    assert bound["roleRef"]["name"] == roles["Role", "team-a"]["metadata"]["name"]
    assert bound["subjects"] == [
        {"kind": "ServiceAccount", "name": "konverge-resolution", "namespace": "konverge-system"}
    ]
    arguments = of("Deployment", found)[0]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [each for each in arguments if each.startswith("--cred")] == ["--credentials=team-a", "--credentials=team-b"]
    assert not any(
        "secrets" in right
        for right in rights(package_standard_resolvers("hub", chosen=replace(CHOSEN, credentials_in=("a",))))
    )
    with pytest.raises(ConfigurationError, match="namespace 'A' of credentials"):
        package_standard_resolvers("http", chosen=replace(CHOSEN, credentials_in=("A",)))


def test_credentials_of_a_namespace_whose_requests_are_not_fulfilled_are_refused() -> None:
    answer = CliRunner().invoke(
        resolvers, ["package", "--only", "http", "--watch", "team-a", "--credentials", "team-b"]
    )
    assert answer.exit_code == 2
    assert "expected namespaces of --watch, found 'team-b'" in answer.output
    answer = CliRunner().invoke(resolvers, ["package", "--only", "http", "-o", "json"])
    assert answer.exit_code == 0
    assert '"secrets"' not in answer.output


def test_the_rights_to_tektons_requests_are_there_when_they_are_served() -> None:
    right = "resolution.tekton.dev/resolutionrequests/status patch"

    assert right in rights(package_standard_resolvers(chosen=replace(CHOSEN, serves_tekton=True)))
    assert right not in rights(package_standard_resolvers())


def test_a_second_operator_brings_nothing_that_is_there_once() -> None:
    found = package_standard_resolvers("git", chosen=replace(CHOSEN, name="git-resolution", keeps_lifecycle=False))

    assert not of("CustomResourceDefinition", found)
    assert [each["metadata"]["name"] for each in of("ConfigMap", found)] == ["konverge-resolver-git"]
    assert "resolution.konverge.dev/resolutionrequests delete" not in rights(found)
    assert "--no-lifecycle" in of("Deployment", found)[0]["spec"]["template"]["spec"]["containers"][0]["args"]


def test_what_the_configmaps_show_is_what_counts_without_them() -> None:
    data: dict[str, Any] = {
        each["metadata"]["name"]: each["data"] for each in of("ConfigMap", package_standard_resolvers())
    }
    shown = {name: yaml.safe_load(each[EXAMPLE]) for name, each in data.items()}
    every = load_resolvers(STANDARD)

    assert parse_config(every, data).options == parse_config(every, {}).options
    assert set(shown["konverge-resolution"]) == set(GENERAL_SETTINGS)
    for resolver in every:
        assert shown[f"konverge-resolver-{resolver.name}"] == {
            key: setting.default for key, setting in resolver.settings.items()
        }
    # With every default written out, the same holds.
    assert parse_config(every, shown).errors == {}


@pytest.mark.parametrize("resolver", ["http", "hub", "git", "bundles"])
def test_a_resolver_without_the_cluster_as_its_source_reads_no_workload_and_no_secret(resolver: str) -> None:
    readable = {right for right in rights(package_standard_resolvers(resolver)) if right.split()[1] in READING}
    groups = {right.split("/")[0] for right in readable}
    assert readable
    assert groups <= {"", "events.k8s.io", "coordination.k8s.io", "resolution.konverge.dev"}
    assert {right.split()[0] for right in readable if right.startswith("/")} <= {"/configmaps"}
    cluster = rights(package_standard_resolvers("cluster", chosen=replace(CHOSEN, reads_kinds=(TASK,))))
    assert "tekton.dev/tasks get" in cluster


def test_its_options_are_those_of_running_and_name_what_is_packaged() -> None:
    chosen = replace(CHOSEN, serves_tekton=True, watched=("shop",), credentials_in=("shop",))
    found = package_standard_resolvers("git", "http", chosen=chosen)
    (container,) = of("Deployment", found)[0]["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    options = [[*each.opts, *each.secondary_opts] for each in resolvers.commands["run"].params]
    known = {option for each in options for option in each}

    assert arguments[:2] == ["resolvers", "run"]
    assert {each.partition("=")[0] for each in arguments[2:]} <= known
    assert {"--only=git,http", "--tekton", "--home=konverge-system", "--namespace=shop"} <= set(arguments)

"""docs/resolution/README.md and replacing-tekton.md: the examples are valid, and the operator runs."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.crd import crd_manifest
from konverge.kube import GroupVersionKind, ObjectKey, find_condition
from konverge.operator import RunOptions
from konverge_cluster.testing import Cluster
from konverge_resolution import REASON_TRAITS, Reason
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.reference_parsing import parse_reference
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import create_request_namespace

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).resolve().parents[2] / "docs/resolution"
PAGE = (FOLDER / "README.md").read_text()
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)


def test_the_references_of_the_page_are_some() -> None:
    reference, concise, box = (yaml.safe_load(block) for block in blocks(PAGE, "yaml"))
    assert [each.resolver for each in parse_reference(reference).choices] == ["git", "hub"]
    assert [each.resolver for each in parse_reference(concise["imports"][0]).choices] == ["git", "hub"]
    assert [parse_reference(each).choices[0].resolver for each in box["spec"]["imports"]] == ["git"]


def test_the_reasons_of_the_page_are_those_of_the_code() -> None:
    assert f"one of {'fourteen' if len(Reason) == 14 else len(Reason)} reasons" in PAGE
    named = PAGE.partition("reasons. ")[2].partition(" let the next")[0]
    assert re.findall(r"`(\w+)`", named) == [str(reason) for reason in Reason if REASON_TRAITS[reason].allows_failover]


DEFINITION, REQUEST, POLICY = map(yaml.safe_load, blocks((FOLDER / "replacing-tekton.md").read_text(), "yaml"))


def test_the_policy_for_those_who_switch_is_one() -> None:
    assert isinstance(parse_policy(POLICY), Policy)


@in_simulated_time
async def test_what_is_to_be_tried_without_tekton_works(cluster: Cluster) -> None:
    desk = await create_request_namespace(cluster)
    await cluster.install(DEFINITION)
    home = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "home", "namespace": "default"}}
    await cluster.client.create({**home, "data": {"greeting": "hello"}})
    of_all = RunOptions(namespaces=())
    async with desk.running_resolvers(ClusterResolver(), options=of_all, serves_tekton=True, services_for=None):
        made = await cluster.client.create(REQUEST)

        async def has_succeeded() -> bool:
            condition = find_condition(
                await cluster.client.get(GroupVersionKind.of(made), ObjectKey.of(made)), "Succeeded"
            )
            return condition is not None and condition.status == "True"

        await cluster.eventually(has_succeeded, describe="the request has succeeded")
    status = (await cluster.client.get(GroupVersionKind.of(made), ObjectKey.of(made)))["status"]
    assert json.loads(base64.b64decode(status["data"])) == {**home, "data": {"greeting": "hello"}}
    assert status["refSource"]["uri"].startswith("/api/v1/namespaces/default/configmaps/home@")


@in_simulated_time
async def test_the_operator_of_the_page_gets_its_definition(cluster: Cluster) -> None:
    (block,) = blocks(PAGE, "python")
    found: dict[str, Any] = {"__name__": "page"}
    exec(compile(block, "README.md", "exec", dont_inherit=True), found)
    desk = await create_request_namespace(cluster)
    await cluster.install(crd_manifest(found["Page"]))
    page = {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Page",
        "metadata": {"name": "a", "namespace": cluster.namespace},
        "spec": {"url": "https://a.example/boxes", "path": "a.yaml"},
    }
    async with cluster.run_operator(found["operator"]):
        made = await cluster.client.create(page)

        async def says(type: str, words: str) -> bool:
            condition = find_condition(await cluster.client.get(GroupVersionKind.of(made), desk.key("a")), type)
            return condition is not None and words in f"{condition.reason} {condition.message}"

        await cluster.eventually(lambda: says("Ready", "Blocked"), describe="it waits")
        await cluster.eventually(
            lambda: says("DefinitionsResolved", "no operator has started the request"),
            describe="the message reports no resolver",
        )
        async with desk.running_resolvers(FakeResolver(name="git")):
            # The output of kubectl without columns for the conditions of this kind.
            await cluster.eventually(lambda: says("Ready", "Healthy"), describe="the page is ready")
        config_map = await cluster.client.get(
            GroupVersionKind.of({"apiVersion": "v1", "kind": "ConfigMap"}), desk.key("a")
        )
    assert config_map["data"] == {"page": BOX.decode()}

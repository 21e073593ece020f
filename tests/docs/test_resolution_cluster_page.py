"""The examples in docs/resolution/cluster.md work; the tests of the http and hub pages check its tables."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
import yaml
from click.testing import CliRunner

from konverge.kube import Object
from konverge_cluster.testing import Cluster
from konverge_resolution import Reference
from konverge_resolution._internal.cli.resolve import resolve
from konverge_resolution._internal.cluster_services import ClusterServices
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.policy import Policy
from konverge_resolution._internal.requests.policy_parsing import parse_policy
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from tests.docs.pages import find_code_blocks, find_commands
from tests.resolution.test_cluster_resolver import TASK_DEFINITION, engine_of

pytestmark = pytest.mark.anyio

PAGE = "docs/resolution/cluster.md"
REFERENCE, SETTINGS, POLICY, RECORD = (yaml.safe_load(block) for block in find_code_blocks(PAGE, "yaml"))
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])


async def in_the_catalogue(cluster: Cluster, obj: Object) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "catalogue"}}
    await cluster.client.create(namespace)
    obj["metadata"]["namespace"] = "catalogue"
    await cluster.client.create(obj)


def test_the_settings_of_the_page_let_its_reference_through() -> None:
    settings, mistakes = parse_settings(SETTINGS, ClusterResolver.settings)
    assert mistakes == ()
    assert ClusterResolver().validate(REFERENCE["params"], settings.select()) == REFERENCE["params"]


@in_simulated_time
async def test_the_record_of_the_page_is_that_of_its_reference_under_its_policy(cluster: Cluster) -> None:
    await cluster.install(TASK_DEFINITION)
    await in_the_catalogue(cluster, {"apiVersion": "tekton.dev/v1", "kind": "Task", "metadata": {"name": "build"}})
    policy = parse_policy(POLICY)
    assert isinstance(policy, Policy)

    services = ClusterServices(cluster.client, clock=cluster.clock)
    try:
        engine = engine_of(cluster, services)
        engine.policies = (policy,)
        outcome = await engine.resolve(Reference("cluster", REFERENCE["params"]), Requester("anybody"))
    finally:
        services.close()

    assert outcome.policies == ("the-catalogue",)
    assert outcome.policy_source == RECORD["status"]["policySource"]
    assert outcome.resolved.source.uri.partition("@")[0] == RECORD["status"]["source"]["uri"].partition("@")[0]


@pytest.mark.slow
@in_simulated_time
async def test_the_command_of_the_page_prints_the_object(cluster: Cluster) -> None:
    home = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "home"}, "data": {"a": "b"}}
    await in_the_catalogue(cluster, home)
    kubeconfig: Path = await cluster.write_kubeconfig()
    ((_, _, *arguments),) = find_commands(PAGE)

    def run() -> str:
        done = CliRunner().invoke(resolve, [*arguments, "--kubeconfig", str(kubeconfig)], catch_exceptions=False)
        return done.stdout

    assert json.loads(await anyio.to_thread.run_sync(run)) == home

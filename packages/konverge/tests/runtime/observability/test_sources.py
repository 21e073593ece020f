"""The informers and controllers of a cluster, scraped and probed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from konverge._internal.cache import InformerFactory
from konverge._internal.runtime.observability import Metrics, ObservedInformer, RuntimeSources
from konverge._internal.runtime.observability.probes import build_readyz_checks, run_check
from konverge.client import Client
from konverge.clock import SeededEntropy
from konverge.kube import GroupVersionKind
from konverge_cluster._internal.testing.cluster import Cluster
from tests.cache.interruptible_transport import InterruptibleTransport
from tests.runtime.observability.exposition_parsing import read_sample

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def test_an_informer_at_work_is_exported_and_makes_the_operator_ready(cluster: Cluster) -> None:
    client = cluster.new_client("konverge-serving")
    name = {"namespace": cluster.namespace, "name": "one"}
    await cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
    async with InformerFactory(
        client, namespaces=[cluster.namespace], clock=cluster.clock, entropy=SeededEntropy()
    ) as informers:
        observed: ObservedInformer = await informers.get_informer(CONFIG_MAP)
        sources = RuntimeSources(informers=lambda: [observed])
        metrics = Metrics(sources, clock=cluster.clock)
        outcomes = [await run_check(check) for check in build_readyz_checks(sources)]

        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert read_sample(metrics, "konverge_informer_synced", **kind) == 1
        assert read_sample(metrics, "konverge_informer_objects", **kind) >= 1
        assert read_sample(metrics, "konverge_informer_lists_total", **kind) == 1
        assert read_sample(metrics, "konverge_informer_age_seconds", **kind) < 30
        assert read_sample(metrics, "konverge_informer_last_resource_version", **kind) > 0
        assert [outcome.reason for outcome in outcomes] == [None] * 5


async def test_an_outage_of_the_server_costs_readiness_and_its_end_brings_it_back(cluster: Cluster) -> None:
    transport = InterruptibleTransport(cluster.new_transport())
    client = Client(transport, user_agent="konverge-serving", clock=cluster.clock)
    async with InformerFactory(
        client, namespaces=[cluster.namespace], clock=cluster.clock, entropy=SeededEntropy()
    ) as informers:
        observed: ObservedInformer = await informers.get_informer(CONFIG_MAP)
        checks = build_readyz_checks(RuntimeSources(informers=lambda: [observed]), timedelta(seconds=5))

        async def find_failed_checks() -> list[str]:
            outcomes = [await run_check(check) for check in checks]
            return [outcome.name for outcome in outcomes if outcome.reason is not None]

        async def is_ready() -> bool:
            return await find_failed_checks() == []

        assert await is_ready()
        transport.reachable = False
        transport.cut()
        began = cluster.clock.monotonic()
        found = await cluster.eventually(find_failed_checks, describe="it is not ready")
        away_seconds = cluster.clock.monotonic() - began
        name = {"namespace": cluster.namespace, "name": "news"}
        await cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
        assert not await is_ready()
        transport.reachable = True
        await cluster.eventually(is_ready, describe="it is ready again")

    assert found == ["informers-fresh"]
    assert 4 < away_seconds < 7 + (20 if cluster.name == "real" else 0)

"""What a cluster's own informers and controllers say, scraped and probed."""

from __future__ import annotations

import pytest

from konverge.cache import Informers
from konverge.clock import SeededEntropy
from konverge.kube import GroupVersionKind
from konverge.runtime.serving import Metrics, ObservedInformer, Sources
from konverge.runtime.serving.probes import outcome_of, readyz_checks
from konverge.testing.cluster import Cluster
from tests.runtime.serving.reading import value

pytestmark = pytest.mark.anyio

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


async def test_an_informer_at_work_is_exported_and_makes_the_operator_ready(cluster: Cluster) -> None:
    client = cluster.new_client("konverge-serving")
    name = {"namespace": cluster.namespace, "name": "one"}
    await cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": name})
    async with Informers(
        client, namespaces=[cluster.namespace], clock=cluster.clock, entropy=SeededEntropy()
    ) as informers:
        observed: ObservedInformer = await informers.started(CONFIG_MAP)
        sources = Sources(informers=lambda: [observed])
        metrics = Metrics(sources, clock=cluster.clock)
        outcomes = [await outcome_of(check) for check in readyz_checks(sources)]

        kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
        assert value(metrics, "konverge_informer_synced", **kind) == 1
        assert value(metrics, "konverge_informer_objects", **kind) >= 1
        assert value(metrics, "konverge_informer_lists_total", **kind) == 1
        assert value(metrics, "konverge_informer_age_seconds", **kind) < 30
        assert value(metrics, "konverge_informer_last_resource_version", **kind) > 0
        assert [outcome.reason for outcome in outcomes] == [None] * 5

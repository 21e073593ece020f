"""The harness for the scenarios, on either cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.crd import crd_manifest
from konverge.kube import ObjectKey
from konverge.primitives import PersistentVolume
from konverge_cluster.testing import Cluster
from tests.scenarios.kinds import DEFINITIONS
from tests.scenarios.scenario_harness import ClusterSample, Sample, ScenarioHarness


@pytest.fixture
async def harness(cluster: Cluster) -> AsyncIterator[ScenarioHarness]:
    """Return a harness on which all kinds of the scenarios are served."""
    harness = ScenarioHarness(cluster)
    # Served for all tests: the garbage collector discovers a new kind with a delay.
    await cluster.install(crd_manifest(Sample), crd_manifest(ClusterSample), *DEFINITIONS)
    yield harness
    await harness.delete(PersistentVolume.gvk, ObjectKey("", f"disk-{harness.namespace}"))

"""A stage for the scenarios, on either cluster."""

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
async def stage(cluster: Cluster) -> AsyncIterator[ScenarioHarness]:
    """A stage on which all kinds of the scenarios are served."""
    stage = ScenarioHarness(cluster)
    # Served from now on for all tests: the garbage collector takes its time to notice a new kind.
    await cluster.install(crd_manifest(Sample), crd_manifest(ClusterSample), *DEFINITIONS)
    yield stage
    await stage.delete(PersistentVolume.gvk, ObjectKey("", f"disk-{stage.namespace}"))

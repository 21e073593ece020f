"""A stage for the scenarios, on either cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from konverge.crd import crd_manifest
from konverge.kube import ObjectKey
from konverge.primitives import PersistentVolume
from konverge.testing import Cluster
from tests.scenarios.kinds import DEFINITIONS
from tests.scenarios.samples import CLUSTER_SAMPLE, SAMPLE, ClusterSample, Sample, Stage


@pytest.fixture
async def stage(cluster: Cluster) -> AsyncIterator[Stage]:
    """A stage on which all kinds of the scenarios are served."""
    stage = Stage(cluster)
    samples = {SAMPLE: crd_manifest(Sample), CLUSTER_SAMPLE: crd_manifest(ClusterSample)}
    for gvk, definition in {**samples, **DEFINITIONS}.items():
        await stage.serve(gvk, definition)
    yield stage
    await stage.delete(PersistentVolume.gvk, ObjectKey("", f"disk-{stage.namespace}"))

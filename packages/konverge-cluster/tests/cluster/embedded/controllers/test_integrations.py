"""Controllers of what a cluster gets from outside: addresses of Ingresses, metrics of autoscalers, storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from konverge.kube import GroupVersionKind, Object, find_condition
from konverge_cluster._internal.embedded.controllers.integrations import INTEGRATIONS
from tests.cluster.embedded.controllers.controller_harness import (
    PERSISTENT_VOLUME_CLAIM,
    ControllerHarness,
    build_deployment,
)

pytestmark = pytest.mark.anyio

AUTOSCALER = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
INGRESS = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
STORAGE_CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")
VOLUME = GroupVersionKind("", "v1", "PersistentVolume")


def build_object(gvk: GroupVersionKind, name: str, **spec: Any) -> Object:
    metadata = {"name": name} if gvk == VOLUME else {"name": name, "namespace": "default"}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}


def build_autoscaler(target: str) -> Object:
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    return build_object(AUTOSCALER, target, scaleTargetRef=scaled, maxReplicas=5)


@asynccontextmanager
async def running(integrations: Collection[str] = INTEGRATIONS) -> AsyncIterator[ControllerHarness]:
    harness = ControllerHarness(integrations=integrations)
    task = asyncio.create_task(harness.players.run())
    yield harness
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_ingress_has_an_address() -> None:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    async with running() as harness:
        harness.create(build_object(INGRESS, "web", defaultBackend=backend))
        await harness.advance()

        assert harness.get(INGRESS, "web")["status"] == {"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}


async def test_an_autoscaler_reports_its_target_also_when_it_comes_later() -> None:
    async with running() as harness:
        harness.create(build_autoscaler("web"))
        await harness.advance()
        early = find_condition(harness.get(AUTOSCALER, "web"), "AbleToScale")
        harness.create(build_deployment("web"))
        await harness.advance()
        late = harness.get(AUTOSCALER, "web")

    assert early is not None
    assert (early.status, early.reason) == ("False", "FailedGetScale")
    assert 'deployments.apps "web" not found' in early.message
    assert [each["status"] for each in late["status"]["conditions"]] == ["True", "True", "False"]
    assert late["status"]["desiredReplicas"] == late["status"]["currentReplicas"] > 0


async def test_without_storage_volumes_and_claims_stay_as_they_are() -> None:
    size = {"storage": "1Gi"}
    async with running(INTEGRATIONS - {"PersistentVolume"}) as harness:
        host = {"path": "/data"}
        harness.create(build_object(VOLUME, "disk", accessModes=["ReadWriteOnce"], capacity=size, hostPath=host))
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": size}, "volumeName": "disk"}
        harness.create(build_object(PERSISTENT_VOLUME_CLAIM, "data", **claim))
        await harness.advance()

        assert harness.get(VOLUME, "disk", namespace="")["status"]["phase"] == "Pending"
        assert harness.get(PERSISTENT_VOLUME_CLAIM, "data")["status"] == {"phase": "Pending"}
        assert harness.api.list(STORAGE_CLASS) == []

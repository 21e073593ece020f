"""Simulations that find the errors of a box, on the embedded cluster in simulated time."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.simulation import StepReport, load_simulation, simulate
from konverge_box._internal.simulation.recording_transport import RecordingTransport
from konverge_box._internal.simulation.simulated_box import SimulatedBox, start_simulated_box
from konverge_cluster.testing import Cluster
from tests.box.running.box_harness import GROUP, build_box_text, build_config_map, build_custom_resource
from tests.box.simulation.test_examples import build_simulated_cluster
from tests.cancellation_leaks import cancel_again

pytestmark = [pytest.mark.anyio]

SHELF = f"{{apiVersion: {GROUP}/v1, kind: Shelf, metadata: {{name: top}}, spec: {{}}}}"


@pytest.fixture(params=["embedded"])
def cluster_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


async def reports(folder: Path, cluster: Cluster, expect: str, **steps: Any) -> list[StepReport]:
    (folder / "box.yaml").write_text(build_box_text(shelf=build_custom_resource("Shelf", **steps)))
    (folder / "simulate.yaml").write_text(
        "apiVersion: konverge.dev/v1alpha1\nkind: Simulation\nmetadata: {name: test}\nspec:\n"
        f"  steps: [{{name: a, apply: [{SHELF}], expect: {expect}}}]\n"
    )
    loaded = load_simulation(folder / "simulate.yaml", namespace=cluster.namespace)
    return await simulate(loaded, build_simulated_cluster(cluster))


@pytest.mark.slow
async def test_a_box_that_writes_in_each_pass_is_not_steady(cluster: Cluster, tmp_path: Path) -> None:
    made = {"configMaps": [build_config_map(at="{{ now() }}")]}

    (report,) = await reports(tmp_path, cluster, "{within: 5s, steady: true}", onReconcile=made)

    assert report.failures == ("expected a reconcile without writes, found: updated ConfigMap/top",)


async def test_a_pass_that_failed_is_told_where_none_was_to(cluster: Cluster, tmp_path: Path) -> None:
    made = {"configMaps": [build_config_map(at="{{ spec.no.such }}")]}

    (report,) = await reports(tmp_path, cluster, "{within: 5s, noErrors: true}", onReconcile=made)

    assert "spec.crds.shelf.onReconcile.configMaps[0].data.at" in report.failures[0]
    assert report.errors


async def test_a_call_that_nobody_answers_fails_and_says_so(cluster: Cluster, tmp_path: Path) -> None:
    calls = [{"name": "settings", "url": "https://example.com/"}]

    (report,) = await reports(tmp_path, cluster, "{within: 5s, noErrors: true}", external=calls)

    assert "expected an answer for the call settings, found none" in report.failures[0]


async def test_a_write_that_changes_nothing_is_no_operation(cluster: Cluster) -> None:
    recording = RecordingTransport(cluster.new_transport(), cluster.namespace)
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps/a"
    body = b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "b"}}'
    for _ in range(2):
        answer = await recording.request(
            "PATCH",
            path,
            query={"fieldManager": "test"},
            headers={"content-type": "application/apply-patch+yaml"},
            body=body,
            timeout_seconds=5,
        )
        assert answer.status < 300

    assert [(each.verb, each.object_name) for each in recording.operations] == [("created", "ConfigMap/a")]


async def test_one_who_is_cancelled_and_again_leaves_no_operator_and_nothing_that_was_given(cluster: Cluster) -> None:
    box = load_valid_box(build_box_text(shelf=build_custom_resource("Shelf")), file="box.yaml")
    given = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "given"}}
    shared = replace(build_simulated_cluster(cluster), is_embedded=False)
    running: list[SimulatedBox] = []

    async def run_until_cancelled() -> None:
        async with start_simulated_box(box, shared, [given], {}) as simulated:
            running.append(simulated)
            await asyncio.Event().wait()

    simulating = asyncio.create_task(run_until_cancelled())
    await cluster.eventually(lambda: running, describe="the operator runs")
    await cancel_again(simulating)
    with pytest.raises(asyncio.CancelledError):
        await simulating

    assert running[0].task is not None
    assert running[0].task.done()
    await cluster.eventually(lambda: is_namespace_gone(cluster, "given"), describe="what was given is gone")


async def is_namespace_gone(cluster: Cluster, namespace: str) -> bool:
    try:
        await cluster.client.get(GroupVersionKind("", "v1", "Namespace"), ObjectKey("", namespace))
    except NotFoundError:
        return True
    return False


async def test_kinds_of_add_ons_can_be_created(cluster: Cluster, tmp_path: Path) -> None:
    made = {
        "resourceQuotas": [{"name": "made", "hard": {"pods": "3"}}],
        "limitRanges": [{"name": "made", "limits": [{"type": "Container", "default": {"cpu": "1"}}]}],
        "custom": [{"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "name": "made", "spec": {"a": "b"}}],
    }

    (report,) = await reports(tmp_path, cluster, "{within: 5s, steady: true, noErrors: true}", onReconcile=made)

    assert (report.failures, report.errors) == ((), ())
    assert {each.object_name for each in report.operations} >= {
        "ResourceQuota/made",
        "LimitRange/made",
        "Certificate/made",
    }

"""Steady objects get no write, for any kind and any spelling of their values."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.kube import Condition
from konverge.options import delete
from konverge.primitives import Primitive
from tests.component.app import ComponentHarness
from tests.component.rich_primitives import KINDS, build_contents, build_rich_primitive

pytestmark = pytest.mark.anyio


def component_of(primitive: Primitive[Any], *options: Any) -> Component:
    return ComponentBuilder("rich", condition_type="RichReady").with_resource(primitive, *options).build()


# No controller of the embedded cluster gives addresses to Ingresses, so that the test can.
@pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])
async def test_a_pass_does_not_count_during_which_a_controller_of_the_cluster_has_written(
    app: ComponentHarness,
) -> None:
    variant = next(variant for kind, variant in KINDS if kind == "Ingress")
    namespace = app.key.namespace
    content = build_contents(namespace, app.cluster.name, 77)["Ingress"][variant]
    ingress = build_rich_primitive("Ingress", content, "rich", namespace)
    component, passes, reconcile = component_of(ingress), 0, app.reconcile
    await app.reconcile(component)
    await app.reconcile(component)

    async def reconcile_with_a_late_controller(*components: Component) -> Condition:
        nonlocal passes
        passes += 1
        if passes == 2:
            status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
            await app.cluster.client.patch(ingress.gvk, ingress.key, status, patch_type="merge", subresource="status")
        return await reconcile(*components)

    app.reconcile = reconcile_with_a_late_controller  # type: ignore[method-assign]

    assert await app.list_steady_writes(component) == []
    statuses = [entry for entry in app.writes() if entry.path.endswith("/status")]
    assert len(statuses) == 2, "what the controller wrote is a reason for a write"
    assert passes > 2


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "variant"), KINDS)
async def test_nothing_is_written_after_a_restart_over_an_object_that_is_as_it_should_be(
    app: ComponentHarness, kind: str, variant: str
) -> None:
    namespace = app.key.namespace
    primitive = build_rich_primitive(
        kind, build_contents(namespace, app.cluster.name, 77)[kind][variant], "rich", namespace
    )
    component = component_of(primitive)
    await app.reconcile(component)
    await app.reconcile(component)

    written = await app.list_steady_writes(component, is_restarted=True)

    await app.reconcile(component_of(primitive, delete()))  # What is cluster-scoped has no other end.
    assert written == []

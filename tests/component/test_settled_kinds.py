"""Nothing is written over objects that are as they should be, of whatever kind and however they were spelled."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.component import AppliedMemory, Component, ComponentBuilder, delete
from konverge.primitives import Primitive
from tests.component.app import App
from tests.component.rich import KINDS, contents, rich

pytestmark = pytest.mark.anyio


def component_of(primitive: Primitive[Any], *options: Any) -> Component:
    return ComponentBuilder("rich", condition_type="RichReady").with_resource(primitive, *options).build()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "variant"), KINDS)
async def test_nothing_is_written_after_a_restart_over_an_object_that_is_as_it_should_be(
    app: App, kind: str, variant: str
) -> None:
    namespace = app.key.namespace
    primitive = rich(kind, contents(namespace, app.cluster.name, 77)[kind][variant], "rich", namespace)
    component = component_of(primitive)
    await app.reconcile(component)
    await app.reconcile(component)
    before = len(app.writes())
    app.memory = AppliedMemory()

    await app.reconcile(component)

    written = [f"{entry.verb} {entry.path}" for entry in app.writes()[before:]]
    await app.reconcile(component_of(primitive, delete()))  # What is cluster-scoped has no other end.
    assert written == []

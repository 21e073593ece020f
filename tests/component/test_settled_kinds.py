"""Nothing is written over objects that are as they should be, of whatever kind and however they were spelled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge import primitives
from konverge.component import AppliedMemory, Component, ComponentBuilder, delete
from konverge.kube import Object
from konverge.primitives import Primitive
from tests.component.app import App

pytestmark = pytest.mark.anyio

# Of the ranges that the clusters take the addresses of Services from.
_ADDRESSES = {"embedded": "10.96.213.77", "real": "10.0.213.77"}
_RICH = Path(__file__).with_name("rich_kinds.yaml").read_text()
CASES = [(kind, variant) for kind, variants in yaml.safe_load(_RICH).items() for variant in variants]


def rich(app: App, kind: str, variant: str) -> Primitive[Any]:
    """The primitive over the object of that name."""
    of_kind: type[Primitive[Any]] = getattr(primitives, kind)
    text = _RICH.replace("NAMESPACE", app.key.namespace).replace("ADDRESS", _ADDRESSES[app.cluster.name])
    content: Object = yaml.safe_load(text)[kind][variant]
    name = {"name": "rich", "namespace": app.key.namespace}
    if of_kind.is_cluster_scoped:
        name = {"name": f"rich-{app.key.namespace}"}
    made: Any = of_kind
    return made({"metadata": {**name, "labels": {"part": "rich"}}, **content})  # type: ignore[no-any-return]


def component_of(primitive: Primitive[Any], *options: Any) -> Component:
    return ComponentBuilder("rich", condition_type="RichReady").with_resource(primitive, *options).build()


@pytest.mark.parametrize(("kind", "variant"), CASES)
async def test_nothing_is_written_after_a_restart_over_an_object_that_is_as_it_should_be(
    app: App, kind: str, variant: str
) -> None:
    component = component_of(rich(app, kind, variant))
    await app.reconcile(component)
    await app.reconcile(component)
    before = len(app.writes())
    app.memory = AppliedMemory()

    await app.reconcile(component)

    written = [f"{entry.verb} {entry.path}" for entry in app.writes()[before:]]
    await app.reconcile(component_of(rich(app, kind, variant), delete()))  # What is cluster-scoped has no other end.
    assert written == []

"""Conditions of a box use the words of the box file, never those of Python."""

from __future__ import annotations

import re
from typing import Any

import pytest

from konverge.kube import Object
from konverge_cluster.testing import Cluster
from tests.box.running.box_harness import (
    SHELF,
    BoxHarness,
    build_box,
    build_config_map,
    build_custom_resource,
)

pytestmark = pytest.mark.anyio

PYTHON = re.compile(r"\w+\(\)|\w+=True|\bguard\b|\bstr\b|\bint\b|\bdict\b|\bprimitive\b|None\b")

WEB = {"name": "web", "image": "nginx", "selector": {"matchLabels": {"version": "{{ spec.version }}"}}}
MADE = {"configMaps": [build_config_map("made", a="{{ spec.absent }}")]}


async def create_foreign_object(library: BoxHarness) -> None:
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": library.namespace}}
    boss = await library.client.create({**config, "metadata": {**config["metadata"], "name": "boss"}})
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": boss["metadata"]["uid"]}
    metadata = {**config["metadata"], "name": "theirs", "ownerReferences": [{**owner, "controller": True}]}
    await library.client.create({**config, "metadata": metadata})


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({"onReconcile": {"configMaps": [build_config_map("theirs", a="b")]}}, "set adopt: false to wait until it is"),
        ({"onReconcile": {"deployments": [WEB]}}, "Give the resource another name, or keep the old value"),
        ({"onReconcile": MADE}, "failed to render resource v1/ConfigMap"),
    ],
    ids=["another controller", "an immutable field", "an absent value"],
)
async def test_an_error_has_the_words_of_the_box(cluster: Cluster, steps: dict[str, Any], message: str) -> None:
    library = BoxHarness(cluster)
    await create_foreign_object(library)
    async with library.running(build_box(shelf=build_custom_resource("Shelf", **steps))):
        await library.create(SHELF, "top", version="one")
        if "deployments" in steps["onReconcile"]:
            await library.wait_for_condition(SHELF, "top", "Healthy")
            await library.change(SHELF, "top", version="two")
        await library.wait_for_condition(SHELF, "top", "Error", message=message)
        conditions = (await library.get(SHELF, "top"))["status"]["conditions"]

    assert len(conditions) == 2
    for condition in conditions:
        assert PYTHON.findall(condition["message"]) == [], condition["message"]

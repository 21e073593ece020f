"""The examples in docs/explaining.md work on both clusters."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest

from konverge._internal.cli.diff_text import format_change
from konverge._internal.cli.main import konverge as program
from konverge.component import ComponentBuilder
from konverge.dry_run import ObjectChange
from konverge.kube import Object
from konverge.primitives import ConfigMap
from konverge_cluster.testing import Cluster
from tests.docs.pages import find_commands, read_page, save_page_code

PAGE = "docs/explaining.md"


@pytest.mark.anyio
async def test_the_snippet_tells_the_fields_that_would_change(cluster: Cluster, tmp_path: Path) -> None:
    made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o", "namespace": cluster.namespace}}
    owner = await cluster.client.create(made)
    wanted: Object = {"metadata": {"name": "shown", "namespace": cluster.namespace}, "data": {"colour": "blue"}}
    component = ComponentBuilder("shown", condition_type="ShownReady").with_resource(ConfigMap(wanted)).build()

    changed_fields = runpy.run_path(str(save_page_code(PAGE, tmp_path)))["changed_fields"]

    assert await changed_fields(component, cluster.client, owner) == [".metadata.ownerReferences", ".data.colour"]


def test_its_commands_and_those_of_its_table_exist() -> None:
    named = [word for _, word, *_ in find_commands(PAGE)] + re.findall(r"`konverge (\w+)", read_page(PAGE))

    assert {"preview", "diff", "explain"} <= set(named) <= set(program.list_commands(None))  # type: ignore[arg-type]


@pytest.mark.parametrize("action", ["create", "update", "delete", "release"])
def test_its_signs_are_those_of_the_command(action: str) -> None:
    line = click.unstyle(next(format_change(ObjectChange(action, "v1/ConfigMap/wing/east"))))  # type: ignore[arg-type]

    assert f"`{line[0]}` {'is ' if action == 'create' else ''}{action}d" in " ".join(read_page(PAGE).split())

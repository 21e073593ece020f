"""The YAML dialect of an API server, which is neither version 1.1 nor 1.2; files of objects use the same one."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from konverge._internal.kube.yaml_loader import load_yaml
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio

TEXTS = (
    "12:30",
    "1:1:1",
    "-1:30",
    "2026-01-31",
    "2026-01-31T10:00:00Z",
    "=",
    "<<",
    "tRue",
    "e3",
    "1.2.3",
    "-.",
    "0b2",
    "0x",
    "_1",
    "nan",
    "infinity",
    "1e400",
    "0x1FFFFFFFFFFFFFFFFF",
    "!!str 5",
)
TRUE = ("y", "Y", "yes", "Yes", "YES", "on", "On", "true", "True", "TRUE", '!!bool "yes"')
FALSE = ("n", "N", "no", "No", "off", "OFF", "false", "FALSE")
NUMBERS = {
    "010": 8,
    "0o10": 8,
    "-010": -8,
    "08": 8,
    "09.5": 9.5,
    "0x1F": 31,
    "0X1F": 31,
    "-0x10": -16,
    "0b101": 5,
    "1_000": 1000,
    "1__0": 10,
    "0x_1": 1,
    "1_0.5": 10.5,
    "1e3": 1000,
    "1E3": 1000,
    "1.5e3": 1500,
    "1.e3": 1000,
    "5.": 5,
    "+5": 5,
    ".5": 0.5,
    "+.5": 0.5,
    "-.5e2": -50,
    "1.0": 1,
    "-0.0": 0,
    "!!float 5": 5,
    '!!int "5"': 5,
    "0777777777777777777777777": 7.777777777777778e23,
    "123456789012345678901234567890": 1.2345678901234568e29,
}
NAMES = {
    "1": "1",
    "1.5": "1.5",
    "yes": "true",
    "n": "false",
    "1e3": "1000",
    "0x10": "16",
    "01": "1",
    "08": "8",
    "1.0": "1",
    "2026-01-01": "2026-01-01",
    "12:30": "12:30",
    "1e30": "1e+30",
    "!!str 5": "5",
}
REFUSED = ("v: .inf", "v: -.INF", "v: .nan", "~: v", "null: v", "[a]: v", "{a: b}: v", "v: !!bool x", "v: !!int x")


async def _accept(cluster: Cluster, widgets: Widgets, anything: str) -> Any:
    """Return the stored value of a field, or the rejection."""
    body = f"{{apiVersion: {widgets.gvk.api_version}, kind: Widget, metadata: {{generateName: w-}}, spec: {{size: 1"
    answer = await cluster.new_transport().request(
        "POST",
        f"/apis/{widgets.gvk.api_version}/namespaces/{cluster.namespace}/widgets",
        headers={"content-type": "application/yaml"},
        body=f"{body}, anything: {{{anything}}}}}}}".encode(),
        timeout_seconds=30,
    )
    found = json.loads(answer.body)
    return found["spec"]["anything"] if answer.status == 201 else answer.status


async def test_values_are_texts_numbers_and_truths_by_the_servers_own_rules(cluster: Cluster, widgets: Widgets) -> None:
    written = [*TEXTS, *TRUE, *FALSE, *NUMBERS]
    meant = [*(text.removeprefix("!!str ") for text in TEXTS), *(True for _ in TRUE), *(False for _ in FALSE)]
    expected = {f"k{n}": value for n, value in enumerate([*meant, *NUMBERS.values()])}
    listed = ", ".join(f"k{n}: {text}" for n, text in enumerate(written))

    found = await _accept(cluster, widgets, listed)

    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {
        name: type(value) for name, value in expected.items()
    }
    assert load_yaml(f"{{{listed}}}") == expected


async def test_names_of_fields_become_texts(cluster: Cluster, widgets: Widgets) -> None:
    for written, name in NAMES.items():
        found = await _accept(cluster, widgets, f"{written}: v")

        assert list(found) == [name], written
        assert load_yaml(f"{written}: v") == found


@pytest.mark.parametrize("text", REFUSED)
async def test_what_json_cannot_say_is_refused(cluster: Cluster, widgets: Widgets, text: str) -> None:
    assert await _accept(cluster, widgets, text) == 400
    with pytest.raises(yaml.YAMLError):
        load_yaml(f"{{{text}}}")

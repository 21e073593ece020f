"""The desired objects of the WebApp operator, without a cluster."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.component import Component
from konverge.crd import decode
from konverge.errors import DecodeError
from konverge.kube import Object
from konverge_cluster._internal.cli.demo import find_example_folder

OPERATOR = find_example_folder() / "operator.py"


@pytest.fixture
def example() -> dict[str, Any]:
    """Return the variables of the operator file."""
    (cls,) = load_operator(parse_operator_reference(str(OPERATOR))).custom_resources
    return vars(sys.modules[cls.__module__])


def webapp(**spec: Any) -> Object:
    return {"metadata": {"name": "shop", "namespace": "default", "uid": "1"}, "spec": {"image": "app:1", **spec}}


def frontend(example: dict[str, Any], **spec: Any) -> Component:
    component: Component = example["frontend"](decode(example["WebApp"], webapp(**spec)))
    return component


def test_the_operator_has_under_a_hundred_lines() -> None:
    assert len(OPERATOR.read_text().splitlines()) < 100


def test_tracing_adds_an_object_and_a_mutation(example: dict[str, Any]) -> None:
    off, on = frontend(example, tracing=False), frontend(example, tracing=True)

    assert [obj["kind"] for obj in off.preview()] == ["Deployment", "Service"]
    assert [obj["kind"] for obj in on.preview()] == ["ConfigMap", "Deployment", "Service"]
    assert (off.firing_set(), on.firing_set()) == ((), ("tracing",))


def test_a_webapp_without_an_image_cannot_be_read(example: dict[str, Any]) -> None:
    with pytest.raises(DecodeError, match=r"spec\.image: required, but missing"):
        decode(example["WebApp"], {"metadata": {"name": "shop"}, "spec": {}})

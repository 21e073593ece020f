"""`konverge crd`: definitions for kubectl."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from konverge_cluster._internal.cli.demo import find_example_folder
from tests.cli.conftest import Konverge

OPERATOR = find_example_folder() / "operator.py"


def test_definitions_are_yaml_documents(konverge: Konverge) -> None:
    (found,) = yaml.safe_load_all(konverge("crd", OPERATOR).stdout)

    assert (found["kind"], found["metadata"]["name"]) == ("CustomResourceDefinition", "webapps.demo.konverge.dev")


def test_json_is_a_list_with_the_same_definitions(konverge: Konverge) -> None:
    found = json.loads(konverge("crd", OPERATOR, "-o", "json").stdout)

    assert found["kind"] == "List"
    assert found["items"] == list(yaml.safe_load_all(konverge("crd", OPERATOR).stdout))


def test_the_same_file_gives_the_same_bytes(konverge: Konverge) -> None:
    assert konverge("crd", OPERATOR).stdout == konverge("crd", OPERATOR).stdout


VERSIONS = """
from dataclasses import dataclass, field
from konverge import Metadata, Operator, custom_resource


@dataclass
class Spec:
    size: int = 1


@custom_resource(group="cli.konverge.test", version="v1alpha1", kind="Box", deprecated=True)
@dataclass
class OldBox:
    metadata: Metadata
    spec: Spec = field(default_factory=Spec)


@custom_resource(group="cli.konverge.test", version="v1", also_serves=(OldBox,))
@dataclass
class Box:
    metadata: Metadata
    spec: Spec = field(default_factory=Spec)


operator = Operator("boxes")


@operator.reconciles(Box)
async def reconcile(box, ctx):
    return None
"""


@pytest.mark.slow
def test_one_definition_holds_all_versions_of_a_kind(started_konverge: Konverge, tmp_path: Path) -> None:
    file = tmp_path / "boxes.py"
    file.write_text(VERSIONS)

    texts = {started_konverge("crd", file, PYTHONHASHSEED=seed).stdout for seed in ("0", "1")}

    (found,) = yaml.safe_load_all(texts.pop())
    assert texts == set()
    assert [(version["name"], version["storage"]) for version in found["spec"]["versions"]] == [
        ("v1", True),
        ("v1alpha1", False),
    ]


def test_a_default_that_its_own_constraint_refuses_is_told_with_its_field(konverge: Konverge, tmp_path: Path) -> None:
    file = tmp_path / "boxes.py"
    constrained = "size: Annotated[int, Meta(ge=1)] = 0\n"
    text = VERSIONS.replace("size: int = 1\n", constrained)
    file.write_text(f"from typing import Annotated\nfrom msgspec import Meta\n{text}")

    answer = konverge("crd", file)

    assert answer.returncode != 0
    assert answer.stdout == ""
    assert "spec.size: its default: expected at least 1, found 0" in answer.stderr

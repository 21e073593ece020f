"""`konverge crd`: definitions for kubectl."""

from __future__ import annotations

import json

import yaml

from konverge.cli.demo import example_folder
from tests.cli.conftest import Konverge

OPERATOR = example_folder() / "operator.py"


def test_definitions_are_yaml_documents(konverge: Konverge) -> None:
    (found,) = yaml.safe_load_all(konverge("crd", OPERATOR).stdout)

    assert (found["kind"], found["metadata"]["name"]) == ("CustomResourceDefinition", "webapps.demo.konverge.dev")


def test_json_is_a_list_with_the_same_definitions(konverge: Konverge) -> None:
    found = json.loads(konverge("crd", OPERATOR, "-o", "json").stdout)

    assert found["kind"] == "List"
    assert found["items"] == list(yaml.safe_load_all(konverge("crd", OPERATOR).stdout))


def test_the_same_file_gives_the_same_bytes(konverge: Konverge) -> None:
    assert konverge("crd", OPERATOR).stdout == konverge("crd", OPERATOR).stdout

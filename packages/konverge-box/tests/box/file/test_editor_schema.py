"""The JSON Schema for editors follows the model, and covers every field of the examples."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tools.box_schema import PAGE, SCHEMA, SIMULATION_SCHEMA, page_text

from konverge_box._internal.file import KINDS
from konverge_box._internal.file.editor_schema import build_editor_schema, format_schema
from konverge_box._internal.simulation import editor_schema as simulation


def test_the_files_are_those_that_the_generator_writes() -> None:
    stale = "run: python -m tools.box_schema"

    assert SCHEMA.read_text() == format_schema(), stale
    assert SIMULATION_SCHEMA.read_text() == simulation.format_schema(), stale
    assert PAGE.read_text() == page_text(), stale


def test_every_reference_leads_somewhere() -> None:
    whole = json.loads(SCHEMA.read_text())
    references = {text.partition('"')[0] for text in SCHEMA.read_text().split('"#/$defs/')[1:]}

    assert references <= set(whole["$defs"])
    assert set(KINDS) <= references


def test_a_group_has_the_kinds_and_a_kind_its_short_forms() -> None:
    definitions = build_editor_schema()["$defs"]

    assert set(KINDS) <= set(definitions["Group"]["properties"])
    for key, kind in KINDS.items():
        assert set(kind.short) <= set(definitions[key]["properties"])
        assert definitions[key]["additionalProperties"] is False


def test_the_words_of_the_file_with_all_of_them_are_known() -> None:
    """Every key of the file with all fields is a property of the schema, apart from names that its author chose."""
    own = {
        *(
            "team",
            "example.com/owner",
            "postgres",
            "host",
            "port",
            "tls",
            "password",
            "database",
            "app",
            "size",
            "a",
            "c",
        ),
        *(
            "schedule",
            "users",
            "sizes",
            "schedule.text",
            "X-Size",
            "A",
            "x-kubernetes-preserve-unknown-fields",
            "owner",
        ),
        *("type", "required", "properties", "items", "additionalProperties", "jsonPath", "cpu", "memory"),
    }
    text = (Path(__file__).parent / "everything.yaml").read_text()
    known = {name for each in build_editor_schema()["$defs"].values() for name in each.get("properties", {})}

    keys = set(re.findall(r"(?:^|[{,\s-])([A-Za-z][\w./-]*):(?:\s|$)", re.sub(r"#.*|\"[^\"]*\"", '""', text)))

    assert keys - known - own == {"https", "http"} & keys

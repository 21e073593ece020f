"""The JSON Schema of simulation files for completion in editors, generated from the model."""

from __future__ import annotations

from typing import Any

import msgspec

from konverge_box.simulation.simulation_model import Simulation

__all__ = ["SCHEMA_FILE", "format_schema"]

SCHEMA_FILE = "simulation.schema.json"
"""Name of the schema file beside this module."""

_ID = "https://konverge.dev/schemas/simulation.v1alpha1.json"


def format_schema() -> str:
    """Return the content of the schema file, with one line per definition so that diffs stay small."""
    (root,), found = msgspec.json.schema_components([Simulation], ref_template="#/$defs/{name}")
    whole: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "Simulation",
        **root,
    }
    lines = [f"{_format_json(name)}: {_format_json(_close_definition(each))}" for name, each in sorted(found.items())]
    head = ",\n".join(f"{_format_json(name)}: {_format_json(value)}" for name, value in whole.items())
    return f'{{\n{head},\n"$defs": {{\n' + ",\n".join(lines) + "\n}\n}\n"


def _close_definition(definition: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in definition.items() if name != "title"}
    found["description"] = " ".join(str(found.get("description", "")).replace("``", "`").split())
    if "properties" in found:
        found["additionalProperties"] = False
    return found


def _format_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

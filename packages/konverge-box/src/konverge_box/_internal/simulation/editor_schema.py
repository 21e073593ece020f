"""The JSON Schema of simulation files for completion in editors, generated from the model."""

from __future__ import annotations

import msgspec

from konverge_box._internal.file.editor_schema import close_definition, format_schema_file
from konverge_box._internal.simulation.simulation_model import Simulation

__all__ = ["SCHEMA_FILE", "format_schema"]

SCHEMA_FILE = "simulation.schema.json"
"""Name of the schema file beside this module."""

_ID = "https://konverge.dev/schemas/simulation.v1alpha1.json"


def format_schema() -> str:
    """Return the content of the schema file of simulations."""
    (root,), definitions = msgspec.json.schema_components([Simulation], ref_template="#/$defs/{name}")
    return format_schema_file(
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": _ID,
            "title": "Simulation",
            **root,
            "$defs": {name: close_definition(each) for name, each in definitions.items()},
        }
    )

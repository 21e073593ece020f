"""Generate files from the models of box and simulation files: JSON Schemas for editors and a page of the docs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from konverge_box.file.box_kinds import KINDS
from konverge_box.file.editor_schema import SCHEMA_FILE, build_editor_schema, format_schema
from konverge_box.simulation import editor_schema as simulation

__all__ = ["PAGE", "SCHEMA", "SIMULATION_SCHEMA", "page_text"]

_REPOSITORY = Path(__file__).parents[1]
SCHEMA = _REPOSITORY / "packages" / "konverge-box" / "src" / "konverge_box" / "file" / SCHEMA_FILE
SIMULATION_SCHEMA = (
    _REPOSITORY / "packages" / "konverge-box" / "src" / "konverge_box" / "simulation" / simulation.SCHEMA_FILE
)
PAGE = _REPOSITORY / "docs" / "box-schema.md"

_HEAD = """\
# The fields of a box file

<!-- Written by tools/box_schema.py from the model; change that instead. -->

Every field of an [operator box](box-file.md), part by part. *Text* may hold expressions, unless the column says what
else it has to be; what is not marked as needed may be left out.
"""
_PARTS = (
    "OperatorBox",
    "BoxMetadata",
    "BoxSpec",
    "CustomResource",
    "ResourceType",
    "ReconcileSpec",
    "NormalizeSpec",
    "MutationRule",
    "ValidationRule",
    "ConditionSpec",
    "TimeWindow",
    "CrossEntry",
    "Selector",
    "ExternalCall",
    "CallAuthentication",
    "SecretKey",
    "RetrySpec",
    "Group",
    "ForEach",
    "ObjectReference",
    "TlsSpec",
    "ProviderSettings",
    "ProviderItem",
    "StatusSpec",
    "StatusField",
    "OnDelete",
    "DeleteGroup",
    "DeleteTarget",
)


def page_text() -> str:
    """Return the page: a table for each part, then one for each kind of resource."""
    definitions = build_editor_schema()["$defs"]
    lines = [_HEAD]
    for name in _PARTS:
        lines += [f"## {name}\n", f"{definitions[name]['description']}\n", *_table(definitions[name]), ""]
    lines += ["## Resources\n", "The lists of a group, in the order in which they are made. Each has these fields:\n"]
    shared = set(definitions["namespaces"]["properties"])
    lines += [*_table(definitions["namespaces"]), "", "and those of its kind:\n", "| list | kind | its own fields |"]
    lines += ["|---|---|---|"]
    for key, kind in KINDS.items():
        own = sorted(set(definitions[key]["properties"]) - shared)
        what = str(kind.gvk) if kind.gvk is not None else "any other"
        lines.append(f"| `{key}` | {what} | {', '.join(f'`{name}`' for name in own)} |")
    return "\n".join(lines) + "\n"


def _table(definition: dict[str, Any]) -> Iterator[str]:
    needed = definition.get("required", ())
    yield "| field | type | |"
    yield "|---|---|---|"
    kinds = [name for name in definition["properties"] if name in KINDS]
    for name, each in definition["properties"].items():
        if name in kinds:
            continue
        notes = ["needed"] if name in needed else []
        default = each.get("default")
        if default not in (None, "", (), {}, False) and not isinstance(default, dict | list):
            notes.append(f"`{str(default).lower() if isinstance(default, bool) else default}` when not given")
        yield f"| `{name}` | {_type(each)} | {'; '.join(notes)} |"
    if kinds:
        yield "| any of the [kinds](#resources) | list of resources | |"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})" if name in _PARTS else name
    if "anyOf" in schema:
        found = dict.fromkeys(_type(each) for each in schema["anyOf"] if each.get("type") != "null")
        return " or ".join(found)
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema.get("type"):
        case "array":
            return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
        case "object":
            values = schema.get("additionalProperties")
            return f"mapping to {_type(values)}" if isinstance(values, dict) and values else "mapping"
        case "string":
            return str(schema.get("description", "text"))
        case "integer" | "number" as kind:
            low, high = schema.get("minimum"), schema.get("maximum")
            between = f", {low} to {high}" if high is not None else f", from {low}" if low is not None else ""
            return ("whole number" if kind == "integer" else "number") + between
        case "boolean":
            return "true or false"
    return "any value"


def main() -> int:
    """Write all of the generated files."""
    SCHEMA.write_text(format_schema())
    SIMULATION_SCHEMA.write_text(simulation.format_schema())
    PAGE.write_text(page_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())

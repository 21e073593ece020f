"""The JSON Schema of box files for completion in editors, generated from the model and the Kubernetes schemas.

It describes fields and types only. `load_box` checks more, so a file that an editor accepts can still be invalid.
A string is accepted for every type because it may be an expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.apply.schema import Schema
from konverge_box._internal.file.box_kinds import KINDS, BoxKind
from konverge_box._internal.file.manifest_validation import find_schema
from konverge_box._internal.file.model import ForEach, Group, OperatorBox
from konverge_box._internal.file.resource_entries import get_entry_type

__all__ = ["SCHEMA_FILE", "build_editor_schema", "close_definition", "format_schema", "format_schema_file"]

SCHEMA_FILE = "operatorbox.schema.json"
"""Name of the schema file beside this module."""

_ID = "https://konverge.dev/schemas/operatorbox.v1alpha1.json"
_REF = "#/$defs/{name}"
_KUBERNETES = "io.k8s."
_STANDING_ALONE = [{"$ref": _REF.format(name=each.__name__)} for each in (ForEach, Group) if each.MAY_STAND_ALONE]


def format_schema() -> str:
    """Return the content of the schema file of boxes."""
    return format_schema_file(build_editor_schema())


def format_schema_file(schema: Mapping[str, Any]) -> str:
    """Format a JSON Schema with one line per definition so that diffs stay small."""
    lines = [f"{_format_json(name)}: {_format_json(each)}" for name, each in sorted(schema["$defs"].items())]
    head = ",\n".join(f"{_format_json(name)}: {_format_json(part)}" for name, part in schema.items() if name != "$defs")
    return f'{{\n{head},\n"$defs": {{\n' + ",\n".join(lines) + "\n}\n}\n"


def build_editor_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12."""
    forms = {key: get_entry_type(key, has_pods=kind.pods is not None) for key, kind in KINDS.items()}
    (root, *entries), found = msgspec.json.schema_components([OperatorBox, *forms.values()], ref_template=_REF)
    definitions: dict[str, Any] = {name: close_definition(each) for name, each in found.items()}
    for (key, kind), entry in zip(KINDS.items(), entries, strict=True):
        form = definitions[entry["$ref"].rpartition("/")[2]]
        definitions[key] = _build_resource(key, kind, form, definitions)
    for form in {"BoxResource", *(each.__name__ for each in forms.values())}:
        del definitions[form]
    lists = {key: {"type": "array", "items": {"$ref": _REF.format(name=key)}} for key in KINDS}
    group = definitions["Group"]
    del group["properties"]["resources"]
    group["properties"] |= lists
    definitions["DeleteGroup"]["properties"]["run"] = lists["jobs"]
    definitions["DeleteGroup"]["properties"]["delete"]["propertyNames"] = {"enum": list(KINDS)}
    for definition in definitions.values():
        for name, several in definition.get("properties", {}).items():
            alone = several.get("items")
            if several.get("type") == "array" and alone in _STANDING_ALONE:
                definition["properties"][name] = {"anyOf": [alone, several]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": _ID,
        "title": "OperatorBox",
        **root,
        "$defs": definitions,
    }


def close_definition(definition: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of a struct without a title, closed to other fields."""
    closed = {name: value for name, value in definition.items() if name != "title"}
    closed["description"] = " ".join(str(closed.get("description", "")).replace("``", "`").split())
    if "properties" in closed:
        closed["additionalProperties"] = False
    return closed


def _build_resource(key: str, kind: BoxKind, form: Mapping[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    schema = find_builtin_schema(kind.gvk) if kind.gvk is not None else None
    short = {name: _convert_schema(find_schema(schema, path), definitions) for name, path in kind.short.items()}
    if "env" in short:
        short["env"] = {"anyOf": [short["env"], {"type": "object", "additionalProperties": {"type": "string"}}]}
    properties = {**form["properties"], **dict(sorted(short.items()))}
    if schema is not None:
        properties["manifest"] = _convert_schema(schema, definitions)
    what = kind.gvk.kind if kind.gvk is not None else "Any other kind"
    return {**form, "description": f"{what}. {form['description']}", "properties": properties}


def _convert_schema(schema: Schema | None, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of one node; named nodes become definitions under their own names."""
    if schema is None:
        return {}
    if not schema.name:
        return _convert_node(schema, definitions)
    name = schema.name.removeprefix(_KUBERNETES)
    if name not in definitions:
        definitions[name] = {}  # before its parts are converted: the schema may be recursive
        definitions[name] = _convert_node(schema, definitions)
    return {"$ref": _REF.format(name=name)}


def _convert_node(schema: Schema, definitions: dict[str, Any]) -> dict[str, Any]:
    if schema.properties:
        properties = {name: _convert_schema(each, definitions) for name, each in schema.properties.items()}
        return {"type": ["object", "string"], "properties": properties, "additionalProperties": False}
    match schema.type:
        case "array":
            return {"type": ["array", "string"], "items": _convert_schema(schema.items, definitions)}
        case "object":
            below = schema.additional_properties
            values = {} if below is None or not below.type else _convert_schema(below, definitions)
            return {"type": ["object", "string"], "additionalProperties": values or True}
        case "boolean" | "integer" | "number":
            return {"type": [schema.type, "string"]}
        case "string" if schema.spec.get("format") != "int-or-string" and not schema.name.endswith("Quantity"):
            return {"type": "string"}
    return {}


def _format_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()

"""Checks of the paths and values that a custom resource declares against its own schema.

These are the fields of mutations and of the status, printer columns, loops, and comparisons with the words of an enum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from konverge_box._internal.file.crd_schemas import find_unknown_field
from konverge_box._internal.file.model import RESERVED_STATUS
from konverge_box._internal.file.schema_values import find_default_errors, find_node, find_value_errors, get_type
from konverge_box._internal.file.struct_reader import has_expression
from konverge_box._internal.file.validation_errors import Path, format_hint

__all__ = [
    "build_status_schema",
    "find_comparison_error",
    "find_loop_error",
    "find_reference_errors",
    "is_list_of_mappings",
]

_COLUMN = re.compile(r"\.(spec|status)((\.[A-Za-z_][\w-]*)+)")
_STEP = re.compile(r"[\w-]+")
_WORDS = {"string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false"}
_COMPARISONS = ("equals", "notEquals", "in", "notIn")


def find_reference_errors(entry: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the errors of one custom resource, each with its path and message.

    Args:
        entry: The custom resource as plain values.
        path: Its path in the file.
    """
    resource = entry.get("resource")
    schema = resource.get("schema") if isinstance(resource, Mapping) else None
    if not isinstance(resource, Mapping) or not isinstance(schema, Mapping):
        return
    for part, below in schema.items():
        yield from find_default_errors(below, (*path, "resource", "schema", part))
    yield from _find_mutation_errors(entry, schema.get("spec"), path)
    yield from _find_status_errors(entry, schema.get("status"), path)
    status = build_status_schema(entry)
    columns = resource.get("additionalPrinterColumns")
    for index, column in enumerate(columns if isinstance(columns, list) else ()):
        json_path = column.get("jsonPath") if isinstance(column, Mapping) else None
        match = _COLUMN.fullmatch(json_path) if isinstance(json_path, str) else None
        if match is not None:
            known = schema.get("spec") if match[1] == "spec" else status
            unknown = find_unknown_field(known, tuple(_STEP.findall(match[2])))
            if unknown is not None:
                at = (*path, "resource", "additionalPrinterColumns", index, "jsonPath")
                yield at, f"{match[1]}.{unknown[0]} is not in the schema{unknown[1]}"


def build_status_schema(entry: Any) -> Mapping[str, Any] | None:
    """Return the schema of the status with the fields of ``status.fields`` and those of konverge.

    Returns:
        None if the file does not list the fields of the status: other writers may then add any field.
    """
    resource = entry.get("resource") if isinstance(entry, Mapping) else None
    schema = resource.get("schema") if isinstance(resource, Mapping) else None
    declared = schema.get("status") if isinstance(schema, Mapping) else None
    properties = declared.get("properties") if isinstance(declared, Mapping) else None
    if not isinstance(declared, Mapping) or not isinstance(properties, Mapping):
        return None
    written = [str(field.get("path")).lstrip(".").split(".")[0] for _, field in _iter_status_fields(entry)]
    return {**declared, "properties": {**{name: {} for name in (*RESERVED_STATUS, *written)}, **properties}}


def find_loop_error(schema: Any, steps: tuple[str, ...]) -> str:
    """Return the error of a loop over a field of the schema; empty if the field can be a list or a map."""
    node = find_node(schema, steps)
    kind = get_type(node) if node is not None else ""
    return f"expected a list or a map, found {_WORDS[kind]} in the schema" if kind in _WORDS else ""


def is_list_of_mappings(schema: Any, steps: tuple[str, ...]) -> bool:
    """Tell whether a field of the schema is a list of mappings; False if the schema does not describe it."""
    node = find_node(schema, steps)
    if node is None or get_type(node) != "array" or not isinstance(node.get("items"), Mapping):
        return False
    return get_type(node["items"]) == "object"


def find_comparison_error(declared: Mapping[str, Any], schema: Any, steps: tuple[str, ...]) -> tuple[str, str] | None:
    """Return the operator of a comparison with a word that the field never has, and the message; None without one.

    Args:
        declared: The condition.
        schema: The schema of ``spec`` or ``status``.
        steps: The path of the field in it.
    """
    node = find_node(schema, steps)
    words = node.get("enum") if node is not None else None
    if not isinstance(words, list) or not words:
        return None
    for operator in _COMPARISONS:
        value = declared.get(operator)
        for each in value if isinstance(value, list) else [value] if operator in declared else []:
            if isinstance(each, str) and each and not has_expression(each) and each not in words:
                hint = format_hint(each, [str(word) for word in words])
                return operator, f"the field never has this value{hint}"
    return None


def _find_mutation_errors(entry: Mapping[str, Any], spec: Any, path: Path) -> Iterator[tuple[Path, str]]:
    normalize = entry.get("normalize")
    made = normalize.get("spec") if isinstance(normalize, Mapping) else None
    computed = {str(field).lstrip(".").split(".")[0] for field in made} if isinstance(made, Mapping) else set()
    rules = entry.get("mutation")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        field = rule.get("field") if isinstance(rule, Mapping) else None
        if not isinstance(field, str) or has_expression(field):
            continue
        root, *steps = _STEP.findall(field)
        if root != "spec" or not steps or steps[0] in computed:
            continue
        at = (*path, "mutation", index)
        unknown = find_unknown_field(spec, tuple(steps))
        if unknown is not None and "default" in rule:
            # An override may add a field for later steps; a default for a field that no user can set is an error.
            yield (*at, "field"), f"spec.{unknown[0]} is not in the schema, so only override can set it{unknown[1]}"
        node = find_node(spec, tuple(steps))
        for word in ("default", "override"):
            if word in rule and "type" not in rule:
                yield from find_value_errors(rule[word], node, (*at, word))


def _find_status_errors(entry: Mapping[str, Any], status: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if not isinstance(status, Mapping) or not isinstance(status.get("properties"), Mapping):
        return
    for index, field in _iter_status_fields(entry):
        steps = tuple(str(field.get("path")).lstrip(".").split("."))
        if steps[0] in RESERVED_STATUS or steps[0] == "status":
            continue  # reported elsewhere
        at = (*path, "status", "fields", index)
        unknown = find_unknown_field(status, steps)
        if unknown is not None:
            yield (*at, "path"), f"status.{unknown[0]} is not in the schema{unknown[1]}"
            continue
        node = find_node(status, steps)
        if "type" not in field:
            yield from find_value_errors(field.get("value"), node, (*at, "value"))
        elif node is not None and get_type(node) not in ("", field["type"]) and field["type"] in _WORDS:
            kinds = (get_type(node), field["type"])
            if kinds != ("number", "integer"):
                yield (*at, "type"), f"the schema declares the type {kinds[0]}; did you mean {kinds[0]}?"


def _iter_status_fields(entry: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    status = entry.get("status") if isinstance(entry, Mapping) else None
    fields = status.get("fields") if isinstance(status, Mapping) else None
    for index, field in enumerate(fields if isinstance(fields, list) else ()):
        if isinstance(field, Mapping) and isinstance(field.get("path"), str):
            yield index, field

"""Conversion of values of a Katalog whose strings may be templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from konverge_box._internal.file.validation_errors import Path
from konverge_box._internal.katalog.expression_translator import TemplateUse, translate_template
from konverge_box._internal.katalog.findings import PROFILE, FindingReason, KatalogFields
from konverge_box._internal.katalog.go_template import TemplateProblemError, has_template
from konverge_box._internal.katalog.known_fields import KnownFields

__all__ = [
    "MISSING",
    "TYPES",
    "convert_labels",
    "convert_profiled_mapping",
    "convert_text_field",
    "convert_tree",
    "copy_fields",
    "set_if_present",
]

MISSING: Any = object()
"""Stands for a value without a counterpart; its finding exists."""

TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "string": "string",
}
"""The types of fields in a Katalog and in a box."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def convert_tree(fields: KatalogFields, value: Any, path: Path, use: TemplateUse, known: KnownFields) -> Any:
    """Convert a value with all its strings; parts without a counterpart are left out, a whole value is `MISSING`."""
    if isinstance(value, str):
        return _convert_text(fields, value, path, use, known)
    if isinstance(value, Mapping):
        found = {}
        for key, each in value.items():
            name = _convert_text(fields, key, (*path, key), TemplateUse.REQUIRED, known)
            made = convert_tree(fields, each, (*path, key), use, known)
            if name is not MISSING and made is not MISSING:
                found[name] = made
        return found
    if isinstance(value, list):
        items = [convert_tree(fields, each, (*path, index), use, known) for index, each in enumerate(value)]
        return [each for each in items if each is not MISSING]
    return _to_text(value) if use is TemplateUse.TEXT else value


def _to_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _convert_text(fields: KatalogFields, value: str, path: Path, use: TemplateUse, known: KnownFields) -> Any:
    if not has_template(value):
        if use is TemplateUse.NUMBER and _WHOLE.fullmatch(value.strip()):
            return int(value)
        if use is TemplateUse.BOOLEAN and value in ("true", "false"):
            return value == "true"
        if (use in (TemplateUse.NUMBER, TemplateUse.BOOLEAN)) and not value:
            return MISSING
    try:
        return translate_template(value, use, known)
    except TemplateProblemError as error:
        fields.notes.add_finding(path, FindingReason("a template", error.why, error.instead))
        return MISSING


def convert_text_field(fields: KatalogFields, key: str, use: TemplateUse, known: KnownFields) -> Any:
    """Convert a field with one value; None if absent, `MISSING` without a counterpart."""
    value = fields.take(key)
    if value is None:
        return None
    if isinstance(value, Mapping | list):
        fields.reject_field(key, "a value of an unexpected type", "expected a single value", "convert it by hand")
        return MISSING
    if use in (TemplateUse.TEXT, TemplateUse.REQUIRED) and not isinstance(value, str):
        value = _to_text(value)
    return convert_tree(fields, value, fields.build_path(key), use, known)


def convert_labels(fields: KatalogFields, key: str, known: KnownFields) -> dict[str, Any]:
    """Convert labels, annotations or a selector: a map, or in older generations a list of keys and values."""
    value = fields.take(key)
    if isinstance(value, list):
        pairs: dict[str, Any] = {}
        for index, each in enumerate(value):
            pair = KatalogFields(fields.notes, each, (*fields.path, key, index))
            name, content = pair.take_text("key", may_be_template=True), pair.take("value")
            pair.report_remaining()
            if name:
                pairs[name] = content
            else:
                fields.notes.add_finding(pair.path, FindingReason("a label", "it has no key", "remove it"))
        value = pairs
    elif value is not None and not isinstance(value, Mapping):
        fields.reject_field(key, "a value of an unexpected type", "expected a mapping", "convert it by hand")
        return {}
    found = convert_tree(fields, value or {}, fields.build_path(key), TemplateUse.TEXT, known)
    return found if isinstance(found, dict) else {}


def set_if_present(found: dict[str, Any], key: str, value: Any) -> None:
    """Set a key unless the value is None or `MISSING`."""
    if value is not None and value is not MISSING:
        found[key] = value


def copy_fields(
    fields: KatalogFields, known: KnownFields, *keys: str, use: TemplateUse = TemplateUse.VALUE
) -> dict[str, Any]:
    """Convert fields with the same form in a box."""
    found: dict[str, Any] = {}
    for key in keys:
        if key in fields:
            set_if_present(found, key, convert_tree(fields, fields.take(key), fields.build_path(key), use, known))
    return found


def convert_profiled_mapping(fields: KatalogFields, key: str, known: KnownFields) -> dict[str, Any] | None:
    """Convert a mapping with the same form in a box, except for a profile; None if empty."""
    if key not in fields:
        return None
    block = fields.take_mapping(key)
    if block.take("profile") is not None:
        fields.notes.add_finding(block.build_path("profile"), PROFILE)
    return copy_fields(block, known, *block.list_remaining()) or None

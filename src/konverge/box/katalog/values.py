"""Values of a Katalog whose texts may be templates, as a box has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from konverge.box.file.mistakes import Path
from konverge.box.katalog.expressions import Use, has_template, translated
from konverge.box.katalog.findings import PROFILE, Fields, Why
from konverge.box.katalog.go_template import TemplateProblemError
from konverge.box.katalog.known_fields import Known

__all__ = ["MISSING", "TYPES", "labels", "put", "same", "text", "tree", "without_profile"]

MISSING: Any = object()
"""Stands for a value that is listed, because it has no counterpart."""

TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "string": "string",
}
"""Types of fields, as they are called there and here."""

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def tree(fields: Fields, value: Any, path: Path, use: Use, known: Known) -> Any:
    """A value with all its texts; what has no counterpart is listed and left out, or is `MISSING` as a whole."""
    if isinstance(value, str):
        return _text(fields, value, path, use, known)
    if isinstance(value, Mapping):
        found = {}
        for key, each in value.items():
            name = _text(fields, key, (*path, key), Use.REQUIRED, known)
            made = tree(fields, each, (*path, key), use, known)
            if name is not MISSING and made is not MISSING:
                found[name] = made
        return found
    if isinstance(value, list):
        items = [tree(fields, each, (*path, index), use, known) for index, each in enumerate(value)]
        return [each for each in items if each is not MISSING]
    return _as_text(value) if use is Use.TEXT else value


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _text(fields: Fields, value: str, path: Path, use: Use, known: Known) -> Any:
    if not has_template(value):
        if use is Use.NUMBER and _WHOLE.fullmatch(value.strip()):
            return int(value)
        if use is Use.BOOLEAN and value in ("true", "false"):
            return value == "true"
        if (use in (Use.NUMBER, Use.BOOLEAN)) and not value:
            return MISSING
    try:
        return translated(value, use, known)
    except TemplateProblemError as problem:
        fields.notes.list(path, Why("a template", problem.why, problem.instead))
        return MISSING


def text(fields: Fields, key: str, use: Use, known: Known) -> Any:
    """A field of one value; None where it is not there, `MISSING` where it has no counterpart."""
    value = fields.take(key)
    if value is None:
        return None
    if isinstance(value, Mapping | list):
        fields.refuse(key, "a value of another form", "expected one value", "look at it by hand")
        return MISSING
    if use in (Use.TEXT, Use.REQUIRED) and not isinstance(value, str):
        value = _as_text(value)
    return tree(fields, value, fields.at(key), use, known)


def labels(fields: Fields, key: str, known: Known) -> dict[str, Any]:
    """Labels, annotations or a selector: a map, or in older generations a list of keys and values."""
    value = fields.take(key)
    if isinstance(value, list):
        pairs: dict[str, Any] = {}
        for index, each in enumerate(value):
            pair = Fields(fields.notes, each, (*fields.path, key, index))
            name, content = pair.text("key"), pair.take("value")
            pair.close()
            if name:
                pairs[name] = content
            else:
                fields.notes.list(pair.path, Why("a label", "it has no key", "remove it"))
        value = pairs
    elif value is not None and not isinstance(value, Mapping):
        fields.refuse(key, "a value of another form", "expected a map", "look at it by hand")
        return {}
    found = tree(fields, value or {}, fields.at(key), Use.TEXT, known)
    return found if isinstance(found, dict) else {}


def put(found: dict[str, Any], key: str, value: Any) -> None:
    """Have a value where there is one."""
    if value is not None and value is not MISSING:
        found[key] = value


def same(fields: Fields, known: Known, *keys: str, use: Use = Use.VALUE) -> dict[str, Any]:
    """Fields that look the same here."""
    found: dict[str, Any] = {}
    for key in keys:
        if key in fields:
            put(found, key, tree(fields, fields.take(key), fields.at(key), use, known))
    return found


def without_profile(fields: Fields, key: str, known: Known) -> dict[str, Any] | None:
    """A mapping that looks the same here, but for the name of a profile; None for nothing."""
    if key not in fields:
        return None
    block = fields.below(key)
    if block.take("profile") is not None:
        fields.notes.list(block.at("profile"), PROFILE)
    return same(block, known, *block.names()) or None

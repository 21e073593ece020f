"""Checks of random values: a box may generate them only in values that it keeps, and in requests that it sends.

Every other value is computed again in each reconcile. A random part would change the object or the status each time,
and each change would trigger the next reconcile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge_box._internal.file.box_kinds import KINDS
from konverge_box._internal.file.expression_scopes import GROUP_STEPS, is_resource
from konverge_box._internal.file.struct_reader import has_expression
from konverge_box._internal.file.template_analysis import TemplateSyntaxError, uses_randomness
from konverge_box._internal.file.validation_errors import Path
from konverge_box._internal.file.yaml_source import YamlSource

__all__ = ["check_randomness"]

_CREATE_ONCE_FIELDS = ("once", "rotateAfter", "tls")
_VALUES = ("data", "stringData")
_REQUEST_FIELDS = ("url", "headers", "body", "query")


def check_randomness(source: YamlSource, crds: Mapping[str, Any]) -> None:
    """Reject random functions where their values would differ in every reconcile.

    Args:
        source: The document, which collects the errors.
        crds: ``spec.crds`` as plain values.
    """
    for name, entry in crds.items():
        if isinstance(entry, dict):
            for at, text in _iter_texts(entry, ("spec", "crds", name)):
                if _uses_randomness(text, at):
                    source.add_error(at, _format_advice(at))


def _iter_texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the strings with expressions, keys included, that may not contain random values."""
    if isinstance(value, str):
        if has_expression(value):
            yield path, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _iter_texts(each, (*path, index))
    elif isinstance(value, dict):
        allowed = _list_random_fields(value, path)
        for key, each in value.items():
            if key not in allowed:
                yield from _iter_texts(key, (*path, key))
                yield from _iter_texts(each if key != "manifest" else _remove_fields(each, allowed), (*path, key))


def _list_random_fields(value: dict[str, Any], path: Path) -> tuple[str, ...]:
    """Return the fields of a mapping that may contain random values."""
    if len(path) == 5 and path[3] == "external":
        return _REQUEST_FIELDS
    is_secret = is_resource(path) and path[-2] == "secrets"
    return _VALUES if is_secret and any(value.get(word) for word in _CREATE_ONCE_FIELDS) else ()


def _remove_fields(manifest: Any, fields: tuple[str, ...]) -> Any:
    if not isinstance(manifest, dict):
        return manifest
    return {name: each for name, each in manifest.items() if name not in fields}


def _uses_randomness(text: str, path: Path) -> bool:
    try:
        return uses_randomness(text, path)
    except TemplateSyntaxError:
        return False  # reported already


def _format_advice(path: Path) -> str:
    what = "a random value would differ in every reconcile"
    if path[3] in GROUP_STEPS and any(step in KINDS for step in path):
        return f"{what}; generate it in the data of a Secret in onCreate with once or rotateAfter, and refer to it"
    return f"{what}; generate it in the data of a Secret with once or rotateAfter"

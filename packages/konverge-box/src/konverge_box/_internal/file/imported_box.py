"""Boxes that a box imports: their custom resources and providers become part of the importing box. Pure.

An imported file is a complete box. Settings that affect every custom resource (``allowedNetworks``) come only from the
importing box. The names of custom resources and providers are unique over all boxes. Messages name the file of each
error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from konverge_box._internal.file.model import KIND
from konverge_box._internal.file.validation_errors import Path
from konverge_box._internal.file.yaml_source import YamlSource, parse_source

__all__ = ["ImportedBox", "merge_imports"]

_NOT_LOCKED = "not resolved yet; run konverge box lock {file} to fetch and lock the imports"
_PARTS = ("crds", "providers")


@dataclass(frozen=True, slots=True)
class ImportedBox:
    """A box that another box imports.

    Args:
        label: Its name in messages: its reference and the file at that location.
        text: Its content.
    """

    label: str
    text: bytes


def merge_imports(source: YamlSource, imported: Sequence[ImportedBox] | None) -> None:
    """Merge imported boxes into a box's document in place; collect conflicts with their positions.

    Args:
        source: The document.
        imported: All direct and indirect imports; None if they are not resolved.
    """
    spec = source.value.get("spec") if isinstance(source.value, dict) else None
    if not isinstance(spec, dict) or not spec.get("imports"):
        return
    if not isinstance(spec["imports"], list):
        return  # the reader of the fields reports it
    spec.setdefault("crds", {})
    if imported is None:
        source.add_error(("spec", "imports"), _NOT_LOCKED.format(file=source.file))
        return
    for each in imported:
        _merge_import(source, spec, each)


def _merge_import(source: YamlSource, spec: dict[str, Any], each: ImportedBox) -> None:
    documents = parse_source(each.text, each.label)
    other = documents[0] if len(documents) == 1 else YamlSource(each.label)
    source.errors += other.errors
    value = other.value
    if not isinstance(value, dict) or value.get("kind") != KIND or not isinstance(value.get("spec"), dict):
        source.add_error(("spec", "imports"), f"{each.label}: expected exactly one document of the kind {KIND}")
        return
    if value["spec"].get("allowedNetworks"):
        _add_error(source, other, ("spec", "allowedNetworks"), "an imported box cannot allow networks; remove it")
    for part in _PARTS:
        theirs = value["spec"].get(part)
        if not isinstance(theirs, dict):
            continue
        ours = spec.setdefault(part, {})
        if not isinstance(ours, dict):
            continue
        for name, entry in theirs.items():
            path: Path = ("spec", part, name)
            if name in ours:
                where = source.find_file(path)
                _add_error(
                    source, other, path, f"{where} already has this name; names are unique over all imported boxes"
                )
                continue
            ours[name] = entry
            source.origins[path] = each.label
            source.positions |= {at: position for at, position in other.positions.items() if at[:3] == path}


def _add_error(source: YamlSource, other: YamlSource, path: Path, message: str) -> None:
    """Add an error of another file to the errors of this one."""
    before = len(other.errors)
    other.add_error(path, message)
    source.errors += other.errors[before:]

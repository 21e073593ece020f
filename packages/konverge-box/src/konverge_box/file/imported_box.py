"""Boxes that a box imports: their custom resources and providers become its own. Pure.

A fragment is a whole box. What it would change for everybody (the networks that may be reached) stays with the box that
is run, and two custom resources or providers never have one name. Messages name the file that each comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from konverge_box.file.model import KIND
from konverge_box.file.validation_errors import Path
from konverge_box.file.yaml_source import YamlSource, parse_source

__all__ = ["ImportedBox", "merge_imports"]

_NOT_LOCKED = "not resolved yet: konverge box lock {file} gets what is imported, and locks it"
_PARTS = ("crds", "providers")


@dataclass(frozen=True, slots=True)
class ImportedBox:
    """A box that another one imports.

    Args:
        label: What messages call it: its address, and its file there.
        text: Its content.
    """

    label: str
    text: bytes


def merge_imports(source: YamlSource, imported: Sequence[ImportedBox] | None) -> None:
    """Put what is imported into a box's document, in place; what does not fit is noted with its place.

    Args:
        source: The document.
        imported: All that it imports, directly or not; None when that was not resolved.
    """
    spec = source.value.get("spec") if isinstance(source.value, dict) else None
    if not isinstance(spec, dict) or not spec.get("imports"):
        return
    if not isinstance(spec["imports"], list):
        return  # told by who reads the fields
    spec.setdefault("crds", {})
    if imported is None:
        source.add_error(("spec", "imports"), _NOT_LOCKED.format(file=source.file))
        return
    for each in imported:
        _merge_import(source, spec, each)


def _merge_import(source: YamlSource, spec: dict[str, Any], each: ImportedBox) -> None:
    found = parse_source(each.text, each.label)
    other = found[0] if len(found) == 1 else YamlSource(each.label)
    source.errors += other.errors
    value = other.value
    if not isinstance(value, dict) or value.get("kind") != KIND or not isinstance(value.get("spec"), dict):
        source.add_error(("spec", "imports"), f"{each.label}: expected one {KIND}, found something else")
        return
    if value["spec"].get("allowedNetworks"):
        _add_error(source, other, ("spec", "allowedNetworks"), "a box that is imported opens no networks; leave it out")
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
                    source, other, path, f"{where} has one of that name already; names are for all that is imported"
                )
                continue
            ours[name] = entry
            source.origins[path] = each.label
            source.positions |= {at: position for at, position in other.positions.items() if at[:3] == path}


def _add_error(source: YamlSource, other: YamlSource, path: Path, message: str) -> None:
    """Note a mistake of another file among those of this one."""
    before = len(other.errors)
    other.add_error(path, message)
    source.errors += other.errors[before:]

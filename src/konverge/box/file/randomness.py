"""Where a box may draw random values: in what is made once and then kept, and in what is sent to somebody.

Anything else is made anew in every pass. A random value in it would change an object, or the status, each time, and
each change is the cause of the next pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.box.file.kinds import KINDS
from konverge.box.file.mistakes import Path
from konverge.box.file.reading import has_expression
from konverge.box.file.scopes import GROUP_STEPS, is_resource
from konverge.box.file.source import Source
from konverge.box.file.templates import SyntaxProblemError, draws

__all__ = ["check_randomness"]

_MADE_ONCE = ("once", "rotateAfter", "tls")
_VALUES = ("data", "stringData")
_SENT = ("url", "headers", "body", "query")


def check_randomness(source: Source, crds: Mapping[str, Any]) -> None:
    """Refuse functions of randomness where their values would be other ones in every pass.

    Args:
        source: The document, which gets the mistakes.
        crds: ``spec.crds`` as plain values.
    """
    for name, entry in crds.items():
        if isinstance(entry, dict):
            for at, text in _texts(entry, ("spec", "crds", name)):
                if _draws(text, at):
                    source.refuse(at, _advice(at))


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """The texts with expressions, keys too, in which nothing may be drawn."""
    if isinstance(value, str):
        if has_expression(value):
            yield path, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _texts(each, (*path, index))
    elif isinstance(value, dict):
        may = _may_draw(value, path)
        for key, each in value.items():
            if key not in may:
                yield from _texts(key, (*path, key))
                yield from _texts(each if key != "manifest" else _without(each, may), (*path, key))


def _may_draw(value: dict[str, Any], path: Path) -> tuple[str, ...]:
    """The fields of a mapping that may."""
    if len(path) == 5 and path[3] == "external":
        return _SENT
    is_secret = is_resource(path) and path[-2] == "secrets"
    return _VALUES if is_secret and any(value.get(word) for word in _MADE_ONCE) else ()


def _without(manifest: Any, fields: tuple[str, ...]) -> Any:
    if not isinstance(manifest, dict):
        return manifest
    return {name: each for name, each in manifest.items() if name not in fields}


def _draws(text: str, path: Path) -> bool:
    try:
        return draws(text, path)
    except SyntaxProblemError:
        return False  # it has been refused already


def _advice(path: Path) -> str:
    what = "a random value would be another one in every pass"
    if path[3] in GROUP_STEPS and any(step in KINDS for step in path):
        return f"{what}; draw it in the data of a Secret in onCreate with once or rotateAfter, and refer to that"
    return f"{what}; draw it in the data of a Secret with once or rotateAfter"

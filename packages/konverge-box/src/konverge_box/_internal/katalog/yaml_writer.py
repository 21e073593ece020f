"""Output of a box as YAML: keys in order, comments above fields, ambiguous strings quoted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["write_yaml"]

_PLAIN = re.compile(r"[A-Za-z_./][\w./-]*( [\w./-]+)*")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_KEY = re.compile(r"[A-Za-z_][\w./-]*")

Path = tuple[str | int, ...]


def write_yaml(value: Mapping[str, Any], comments: Mapping[Path, str]) -> str:
    """Return the YAML text of a value.

    Args:
        value: Mappings, lists, strings, numbers, booleans, null.
        comments: The comment above a field, by its path.
    """
    return "".join(f"{line}\n" for line in _write_mapping(value, (), "", comments))


def _write_mapping(value: Mapping[str, Any], path: Path, indent: str, comments: Mapping[Path, str]) -> Iterator[str]:
    for key, each in value.items():
        at = (*path, key)
        yield from _write_comment(at, indent, comments)
        name = key if _KEY.fullmatch(key) and key.lower() not in _RESERVED else _quote_text(key)
        yield from _write_value(f"{indent}{name}:", each, at, indent + "  ", comments)


def _write_value(head: str, value: Any, path: Path, indent: str, comments: Mapping[Path, str]) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        yield head
        yield from _write_mapping(value, path, indent, comments)
    elif isinstance(value, list) and value:
        yield head
        for index, each in enumerate(value):
            yield from _write_item(each, (*path, index), indent, comments)
    elif isinstance(value, str) and _is_block(value):
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        for line in value.removesuffix("\n").split("\n"):
            yield f"{indent}{line}" if line else ""
    else:
        yield f"{head} {_format_scalar(value)}"


def _write_item(value: Any, path: Path, indent: str, comments: Mapping[Path, str]) -> Iterator[str]:
    yield from _write_comment(path, indent, comments)
    if isinstance(value, Mapping) and value:
        lines = list(_write_mapping(value, path, indent + "  ", comments))
        first = next(at for at, line in enumerate(lines) if not line.lstrip().startswith("#"))
        yield from (line[2:] for line in lines[:first])
        yield f"{indent}- {lines[first][len(indent) + 2 :]}"
        yield from lines[first + 1 :]
    elif isinstance(value, list) and value:
        yield f"{indent}-"
        for index, each in enumerate(value):
            yield from _write_item(each, (*path, index), indent + "  ", comments)
    else:
        yield from _write_value(f"{indent}-", value, path, indent + "  ", comments)


def _write_comment(path: Path, indent: str, comments: Mapping[Path, str]) -> Iterator[str]:
    for line in comments.get(path, "").splitlines():
        yield f"{indent}# {' '.join(line.split())}"


def _is_block(text: str) -> bool:
    lines = text.removesuffix("\n").split("\n")
    return (
        len(lines) > 1
        and not text.endswith("\n\n")
        and bool(lines[0].strip())
        and not lines[0].startswith(" ")
        and all(line.isprintable() and line == line.rstrip() for line in lines)
    )


def _format_scalar(value: Any) -> str:
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _RESERVED and not re.search(r"[.][\d.]*$", value)
        return value if is_plain else _quote_text(value)
    if isinstance(value, Mapping | list):
        return "{}" if isinstance(value, Mapping) else "[]"
    return json.dumps(value)


def _quote_text(text: str) -> str:
    """Return a string in double quotes: as JSON, with unprintable characters escaped by number."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape_letter(letter) for letter in quoted)


def _escape_letter(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 1 << 16 else f"\\U{ord(letter):08x}"

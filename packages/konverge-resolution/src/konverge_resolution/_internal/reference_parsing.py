"""Syntax of references in files and definitions, and the search for references in a definition. Pure.

    resolver: git                      # the resolver; without it, the operator's default resolvers in order
    params: {url: …, pathInRepo: …}    # or a list of name and value, as in Tekton
    digest: sha256:…                   # optional: expected digest of the content
    orElse: [{resolver: hub, …}]       # optional: next sources if this one lacks it or cannot be reached
    path: ../tasks/build.yaml          # instead of the fields above: relative to the definition with the reference
    url: git+https://…@main#shop/box.yaml   # instead of resolver and params (`concise_references`)

A definition refers to others in a field ``ref``, or one whose name ends in ``Ref`` such as Tekton's ``taskRef``, and in
the items of a list ``imports``. A mapping with other fields is not a reference to a definition:
``configMapRef: {name: a}`` stays unchanged. Neither is ``secretRef: {url: https://…}``, which other kinds may have for
something else; a ``url`` of http is a reference in ``imports`` only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge_resolution._internal.concise_references import find_concise_scheme, parse_concise_reference
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import DIGEST_PATTERN, Digest, Reference, Value

__all__ = ["MAX_CHOICES", "REFERENCE_SCHEMA", "ParsedReference", "find_references", "parse_reference"]

MAX_CHOICES = 8
"""Maximum number of sources of one reference."""

_MAX_DEPTH = 100
_MAX_TEXT = 63
_FIELDS = frozenset({"resolver", "params", "digest", "orElse"})
_RELATIVE_FIELDS = frozenset({"path", "digest"})
_CONCISE_FIELDS = frozenset({"url", "digest", "orElse"})
_PLAIN_SCHEMES = ("http", "https")

REFERENCE_SCHEMA: Mapping[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A reference to a remote definition",
    "$ref": "#/$defs/reference",
    "$defs": {
        "digest": {"type": "string", "pattern": DIGEST_PATTERN},
        "value": {
            "oneOf": [
                {"type": "string"},
                {"type": "array", "items": {"type": "string"}},
                {"type": "object", "additionalProperties": {"type": "string"}},
            ]
        },
        "params": {
            "oneOf": [
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/value"}, "maxProperties": 64},
                {
                    "type": "array",
                    "maxItems": 64,
                    "items": {
                        "type": "object",
                        "required": ["name", "value"],
                        "additionalProperties": False,
                        "properties": {"name": {"type": "string"}, "value": {"$ref": "#/$defs/value"}},
                    },
                },
            ]
        },
        "source": {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "resolver": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63},
                "params": {"$ref": "#/$defs/params"},
                "digest": {"$ref": "#/$defs/digest"},
                "orElse": {"$ref": "#/$defs/others"},
            },
            "minProperties": 1,
        },
        "concise": {
            "type": "object",
            "required": ["url"],
            "additionalProperties": False,
            "properties": {
                "url": {"type": "string", "pattern": "^[A-Za-z+]+://", "maxLength": 4096},
                "digest": {"$ref": "#/$defs/digest"},
                "orElse": {"$ref": "#/$defs/others"},
            },
        },
        "others": {
            "type": "array",
            "items": {"oneOf": [{"$ref": "#/$defs/source"}, {"$ref": "#/$defs/concise"}]},
            "maxItems": MAX_CHOICES - 1,
        },
        "relative": {
            "type": "object",
            "required": ["path"],
            "additionalProperties": False,
            "properties": {"path": {"type": "string", "minLength": 1}, "digest": {"$ref": "#/$defs/digest"}},
        },
        "reference": {"oneOf": [{"$ref": "#/$defs/source"}, {"$ref": "#/$defs/concise"}, {"$ref": "#/$defs/relative"}]},
    },
}
"""JSON Schema of a reference, for other programs."""


@dataclass(frozen=True, slots=True)
class ParsedReference:
    """One reference as it was written; made by `parse_reference`.

    Args:
        choices: The references in the order of their use; empty for a relative reference.
        path: The path of a relative reference; otherwise empty.
        digest: The expected digest of a relative reference.
    """

    choices: tuple[Reference, ...] = ()
    path: str = ""
    digest: Digest | None = None

    def __str__(self) -> str:
        return self.path or " or ".join(reference.resolver for reference in self.choices)


def parse_reference(
    value: object, *, default_resolvers: Sequence[str] = (), where: str = "the reference"
) -> ParsedReference:
    """Parse a reference of a file or definition.

    Args:
        value: The reference as plain data.
        default_resolvers: The resolvers in order, for a reference without one.
        where: The name of the reference in messages.

    Raises:
        ResolutionError: ``InvalidParams``: the value is not a reference; the message has the error and its field path.
    """
    if not isinstance(value, dict):
        raise _build_error(where, "a mapping with resolver and params, with url, or with path", value)
    if "path" in value:
        _check_fields(value, _RELATIVE_FIELDS, where)
        path = value["path"]
        if not isinstance(path, str) or not path:
            raise _build_error(f"{where}.path", "a path", path)
        return ParsedReference(path=path, digest=_parse_digest(value, where))
    if "url" in value:
        _check_fields(value, _CONCISE_FIELDS, where)
        choices = [_parse_concise(value["url"], _parse_digest(value, where), where)]
    else:
        _check_fields(value, _FIELDS, where)
        choices = _parse_source(value, default_resolvers, where)
    others = value.get("orElse", [])
    if not isinstance(others, list):
        raise _build_error(f"{where}.orElse", "a list of references", others)
    for index, other in enumerate(others):
        at = f"{where}.orElse[{index}]"
        if len(choices) >= MAX_CHOICES:
            raise _build_error(at, f"at most {MAX_CHOICES} sources in all", other)
        alternative = parse_reference(other, default_resolvers=default_resolvers, where=at)
        if not alternative.choices:
            raise _build_error(f"{at}.resolver", "the name of a resolver", None)
        choices += alternative.choices
    if len(choices) > MAX_CHOICES:
        raise _build_error(where, f"at most {MAX_CHOICES} sources in all", value)
    for choice in choices:
        choice.check()
    return ParsedReference(tuple(choices))


def _parse_source(value: Mapping[Any, Any], default_resolvers: Sequence[str], where: str) -> list[Reference]:
    params, digest = _parse_params(value.get("params", {}), f"{where}.params"), _parse_digest(value, where)
    resolver = value.get("resolver")
    if isinstance(resolver, str):
        return [Reference(resolver, params, digest)]
    if resolver is not None or not default_resolvers or not params:
        raise _build_error(f"{where}.resolver", "the name of a resolver", resolver)
    return [Reference(name, params, digest) for name in default_resolvers]


def _parse_concise(url: object, digest: Digest | None, where: str) -> Reference:
    if not isinstance(url, str):
        raise _build_error(f"{where}.url", "a URL", url)
    try:
        resolver, params = parse_concise_reference(url)
    except ResolutionError as error:
        raise error.with_message(f"{where}.url: {error.message}") from None
    return Reference(resolver, params, digest)


def find_references(definition: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield the references of a definition in their order, each with its path.

    `parse_reference` reports references with errors or additional fields.

    Args:
        definition: The definition as plain data.
    """
    yield from _walk_references("", definition, 0)


def _walk_references(path: str, value: object, depth: int) -> Iterator[tuple[str, object]]:
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk_references(f"{path}[{index}]", item, depth + 1)
    elif isinstance(value, dict):
        for name, item in value.items():
            at = f"{path}.{_format_field(str(name))}".lstrip(".")
            if (name == "ref" or str(name).endswith("Ref")) and _is_reference(item):
                yield at, item
            elif name == "imports" and isinstance(item, list):
                parts = enumerate(item)
                yield from ((f"{at}[{index}]", part) for index, part in parts if _is_reference(part, is_import=True))
            else:
                yield from _walk_references(at, item, depth + 1)


def _format_field(name: str) -> str:
    """Format a field name for messages: a name from outside may be long or contain control characters."""
    return name if len(name) <= _MAX_TEXT and name.isprintable() else repr(name[:_MAX_TEXT])


def _is_reference(value: object, *, is_import: bool = False) -> bool:
    if not isinstance(value, dict):
        return False
    if "url" in value:
        scheme = find_concise_scheme(value["url"])
        return value.keys() <= _CONCISE_FIELDS and bool(scheme) and (is_import or scheme not in _PLAIN_SCHEMES)
    return ("resolver" in value and isinstance(value["resolver"], str) and value.keys() <= _FIELDS) or (
        "path" in value and value.keys() <= _RELATIVE_FIELDS
    )


def _check_fields(value: Mapping[Any, Any], known: frozenset[str], where: str) -> None:
    if unknown := sorted(str(name)[:80] for name in value if name not in known):
        message = f"{where}.{unknown[0]}: no such field; expected one of {', '.join(sorted(known))}"
        raise ResolutionError(Reason.INVALID_PARAMETERS, message)


def _parse_params(value: object, where: str) -> dict[str, Value]:
    if isinstance(value, dict):
        return dict(value)  # `Reference.check` checks the values
    if not isinstance(value, list):
        raise _build_error(where, "a mapping, or a list of name and value", value)
    params: dict[str, Value] = {}
    for index, entry in enumerate(value):
        if not isinstance(entry, dict) or entry.keys() != {"name", "value"} or not isinstance(entry["name"], str):
            raise _build_error(f"{where}[{index}]", "a name and a value", entry)
        if entry["name"] in params:
            raise _build_error(f"{where}[{index}].name", "each parameter once", entry["name"])
        params[entry["name"]] = entry["value"]
    return params


def _parse_digest(value: Mapping[Any, Any], where: str) -> Digest | None:
    if "digest" not in value:
        return None
    digest = value["digest"]
    if not isinstance(digest, str):
        raise _build_error(f"{where}.digest", "sha256: and 64 hexadecimal digits", digest)
    try:
        return Digest.parse(digest)
    except ValueError as error:
        raise ResolutionError(Reason.INVALID_PARAMETERS, f"{where}.digest: {error}") from None


def _build_error(where: str, expected: str, found: object) -> ResolutionError:
    actual = repr(found[:80]) if isinstance(found, str) else "nothing" if found is None else type(found).__name__
    return ResolutionError(Reason.INVALID_PARAMETERS, f"{where}: expected {expected}, found {actual}")

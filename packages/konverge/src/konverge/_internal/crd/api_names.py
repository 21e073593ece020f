"""Conversion of names of Python attributes and of kinds to names of the API."""

from __future__ import annotations

import re

from msgspec import inspect

__all__ = ["to_camel_case", "to_json_name", "to_plural"]

_UNDERSCORE = re.compile(r"_+([a-zA-Z0-9])")


def to_camel_case(name: str) -> str:
    """Return ``tracingEnabled`` for ``tracing_enabled`` and ``class`` for ``class_``; ``clusterIP`` is unchanged."""
    return _UNDERSCORE.sub(lambda match: match[1].upper(), name.strip("_"))


def to_json_name(field: inspect.Field) -> str:
    """Return the field's name in JSON: by ``rename`` of a Struct, else the attribute's name in camel case."""
    return field.encode_name if field.encode_name != field.name else to_camel_case(field.name)


def to_plural(kind: str) -> str:
    """Return the plural by the rule of the API machinery: ``Policy`` gives ``policies``, ``Class`` ``classes``."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"

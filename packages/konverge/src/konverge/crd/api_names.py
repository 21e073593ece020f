"""How the names of Python attributes and of kinds become names of the API."""

from __future__ import annotations

import re

from msgspec import inspect

__all__ = ["to_camel_case", "to_json_name", "to_plural"]

_UNDERSCORE = re.compile(r"_+([a-zA-Z0-9])")


def to_camel_case(name: str) -> str:
    """``tracingEnabled`` for ``tracing_enabled``, ``class`` for ``class_``; ``clusterIP`` stays as it is."""
    return _UNDERSCORE.sub(lambda found: found[1].upper(), name.strip("_"))


def to_json_name(field: inspect.Field) -> str:
    """The field's name in JSON: what a Struct's ``rename`` says, else the attribute's name in camel case."""
    return field.encode_name if field.encode_name != field.name else to_camel_case(field.name)


def to_plural(kind: str) -> str:
    """The plural by the API machinery's rule: ``Policy`` gives ``policies``, ``Class`` ``classes``."""
    singular = kind.lower()
    if singular.endswith("s"):
        return f"{singular}es"
    if singular.endswith("y"):
        return f"{singular[:-1]}ies"
    return f"{singular}s"

"""The conversion of rendered declarations to instances of a provider's classes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.expressions.values import describe_value_type, format_hint
from konverge_box._internal.steps import StepError

__all__ = ["check_fields", "convert_spec", "extract_identity", "find_missing_fields"]

_MISMATCH = re.compile(r"Expected `(.+?)`.*, got `(.+?)`")
_FIELD = re.compile(r"Object (missing required|contains unknown) field `(.+)`")
_ENUM = re.compile(r"Invalid enum value (.+)")
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "null",
}


def check_fields(names: Iterable[str], cls: type[Struct], where: str, also: Iterable[str] = ()) -> None:
    """Reject fields that the class does not have.

    Args:
        names: The declared fields.
        cls: The class.
        where: Their path in the file.
        also: Further allowed names.

    Raises:
        StepError: A field is unknown. The message suggests the closest existing one.
    """
    known = {field.encode_name for field in msgspec.structs.fields(cls)} | set(also)
    for name in names:
        if name not in known:
            raise StepError(f"{where}.{name}", f"no such field{format_hint(name, known)}")


def convert_spec(values: Mapping[str, Any], cls: type[Struct], where: str) -> Any:
    """Convert values to an instance of the class. Only `Sensitive` fields accept values of Secrets.

    Raises:
        StepError: The values do not fit the class. The message contains no value.
    """
    try:
        return msgspec.convert(_wrap_secrets(values), cls, dec_hook=_unwrap_secret)
    except msgspec.ValidationError as error:
        path, problem = _translate_error(str(error))
        raise StepError(f"{where}{path}", problem) from None


def find_missing_fields(names: Iterable[str], cls: type[Struct]) -> list[str]:
    """Return the required fields of the class that are not among the names.

    Args:
        names: The declared fields.
        cls: The class.
    """
    declared = set(names)
    required = [field.encode_name for field in msgspec.structs.fields(cls) if field.required]
    return [name for name in required if name not in declared]


def extract_identity(spec: Struct, fields: Iterable[str], where: str) -> dict[str, Any]:
    """Return the values of the identity fields, which are recorded.

    Raises:
        StepError: A value is not a scalar.
    """
    identity = {name: getattr(spec, name) for name in fields}
    for name, value in identity.items():
        if type(value) not in (str, int, bool, type(None)):
            raise StepError(f"{where}.{name}", "expected text or a number, which is recorded on the owner")
    return identity


class SecretValue:
    """The wrapper of a value of a Secret: without it, msgspec would treat the value as an ordinary `str`."""

    def __init__(self, value: Sensitive) -> None:
        self.value = value


def _wrap_secrets(value: Any) -> Any:
    if isinstance(value, Sensitive):
        return SecretValue(value)
    if isinstance(value, Mapping):
        return {key: _wrap_secrets(item) for key, item in value.items()}
    return [_wrap_secrets(item) for item in value] if isinstance(value, list | tuple) else value


def _unwrap_secret(cls: type, value: Any) -> Any:
    if cls is Sensitive and isinstance(value, SecretValue):
        return value.value
    if cls is Sensitive and isinstance(value, str):
        return Sensitive(value)
    raise ValueError(f"expected a string, found {describe_value_type(value)}")


def _translate_error(text: str) -> tuple[str, str]:
    """Return the path below the spec and the message of a conversion error, in the words of the box file."""
    problem, _, path = text.partition(" - at `$")
    mismatch = _MISMATCH.fullmatch(problem)
    if mismatch is not None:
        expected = " or ".join(_WORDS.get(word, word) for word in mismatch[1].split(" | "))
        problem = f"expected {expected}, found {_WORDS.get(mismatch[2], 'a value from a Secret')}"
    elif (field := _FIELD.fullmatch(problem)) is not None:
        problem = f"{field[2]} is missing" if field[1] == "missing required" else f"unknown field {field[2]}"
    elif (word := _ENUM.fullmatch(problem)) is not None:
        problem = f"expected another word, found {word[1]}"
    return path.rstrip("`"), f"{problem[:1].lower()}{problem[1:]}"

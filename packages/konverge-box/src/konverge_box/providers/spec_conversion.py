"""Turns what a file declares, once it has values, into instances of a provider's own classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge_box.expressions import Sensitive
from konverge_box.expressions.values import format_hint
from konverge_box.steps import StepError

__all__ = ["check_fields", "convert_spec", "extract_identity"]


def check_fields(names: Iterable[str], cls: type[Struct], where: str, also: Iterable[str] = ()) -> None:
    """Refuse fields that the class does not have.

    Args:
        names: The fields that are declared.
        cls: The class.
        where: Their path in the file.
        also: Names that are allowed besides.

    Raises:
        StepError: There is one; with the nearest that exists.
    """
    known = {field.encode_name for field in msgspec.structs.fields(cls)} | set(also)
    for name in names:
        if name not in known:
            raise StepError(f"{where}.{name}", f"no such field{format_hint(name, known)}")


def convert_spec(values: Mapping[str, Any], cls: type[Struct], where: str) -> Any:
    """An instance with these values; those of Secrets only where the class has a `Sensitive`.

    Raises:
        StepError: They do not fit; no value is shown.
    """
    try:
        return msgspec.convert(_wrap_secrets(values), cls, dec_hook=_unwrap_secret)
    except msgspec.ValidationError as error:
        raise StepError(where, str(error)) from None


def extract_identity(spec: Struct, fields: Iterable[str], where: str) -> dict[str, Any]:
    """The values of these fields: what is recorded of a spec.

    Raises:
        StepError: One of them is no plain value.
    """
    found = {name: getattr(spec, name) for name in fields}
    for name, value in found.items():
        if type(value) not in (str, int, bool, type(None)):
            raise StepError(f"{where}.{name}", "expected a text or a number that may be recorded on the owner")
    return found


class SecretValue:
    """Stands for a value of a Secret where msgspec would take the value, which is a `str`, for any text."""

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
    raise ValueError(f"expected text, found {type(value).__name__}")

"""The conversion of rendered declarations to instances of a provider's classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from konverge_box._internal.expressions import Sensitive
from konverge_box._internal.expressions.values import format_hint
from konverge_box._internal.steps import StepError

__all__ = ["check_fields", "convert_spec", "extract_identity"]


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
        raise StepError(where, str(error)) from None


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
    raise ValueError(f"expected text, found {type(value).__name__}")

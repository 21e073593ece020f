"""A mistake in a field, and the refusal that tells all of them (the API's ``field.Error`` and 422 ``Status``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge.errors import InvalidError

__all__ = [
    "IMMUTABLE",
    "Mistake",
    "duplicate",
    "forbidden",
    "invalid",
    "quoted",
    "refusal",
    "required",
    "shown",
    "too_long",
    "too_many",
    "unsupported",
    "wrong_type",
]

IMMUTABLE = "field is immutable"


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake.

    Attributes:
        field: The path of the field, as messages write it: ``spec.template.spec.containers[0].image``.
        reason: The machine-readable reason.
        message: What is wrong, without the path.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def shown(value: Any) -> str:
    """A value as messages show it: quoted text, else JSON."""
    if isinstance(value, str):
        return quoted(value)
    return msgspec.json.encode(value).decode()


def quoted(text: str) -> str:
    """Text in double quotes, with what is special in it escaped."""
    return msgspec.json.encode(text).decode()


def invalid(field: str, value: Any, detail: str) -> Mistake:
    """The value breaks a rule."""
    return Mistake(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def wrong_type(field: str, value: str, detail: str) -> Mistake:
    """The value is of another type; `value` is the name of the type it has, or the text that is no such thing."""
    return Mistake(field, "FieldValueTypeInvalid", f"Invalid value: {quoted(value)}: {detail}")


def required(field: str, detail: str = "") -> Mistake:
    """There must be a value."""
    return Mistake(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def unsupported(field: str, value: Any, supported: Iterable[Any]) -> Mistake:
    """The value is none of those that exist."""
    known = ", ".join(shown(each) for each in supported)
    return Mistake(field, "FieldValueNotSupported", f"Unsupported value: {shown(value)}: supported values: {known}")


def duplicate(field: str, value: Any) -> Mistake:
    """The value is there already, where each may be once."""
    return Mistake(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def forbidden(field: str, detail: str) -> Mistake:
    """There must be no such value, or it must not change."""
    return Mistake(field, "FieldValueForbidden", f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> Mistake:
    """The text has more bytes than it may."""
    return Mistake(field, "FieldValueTooLong", f"Too long: may not be more than {_counted(limit, 'byte')}")


def too_many(field: str, count: int, limit: int) -> Mistake:
    """The list or mapping has more items than it may."""
    return Mistake(field, "FieldValueTooMany", f"Too many: {count}: must have at most {_counted(limit, 'item')}")


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def refusal(group: str, kind: str, name: str, mistakes: Sequence[Mistake]) -> InvalidError:
    """422 with all the mistakes; each is told once."""
    unique = list(dict.fromkeys(mistakes))
    told = str(unique[0]) if len(unique) == 1 else f"[{', '.join(str(mistake) for mistake in unique)}]"
    details: dict[str, Any] = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    details["causes"] = [
        {"reason": mistake.reason, "message": mistake.message, "field": mistake.field} for mistake in unique
    ]
    what = f"{kind}.{group}" if group else kind
    return InvalidError(f'{what} "{name}" is invalid: {told}', details=details)

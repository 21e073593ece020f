"""Validation errors of fields, and the error response with all of them (``field.Error`` and the 422 ``Status``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from konverge.errors import InvalidError

__all__ = [
    "IMMUTABLE",
    "FieldError",
    "field_duplicate",
    "field_forbidden",
    "field_invalid",
    "field_not_supported",
    "field_required",
    "field_too_long",
    "field_too_many",
    "field_type_invalid",
    "format_value",
    "new_invalid",
    "quote",
]

IMMUTABLE = "field is immutable"


@dataclass(frozen=True, slots=True)
class FieldError:
    """One validation error.

    Attributes:
        field: The path of the field in the form of messages: ``spec.template.spec.containers[0].image``.
        reason: The machine-readable reason.
        message: The message without the path.
    """

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


def format_value(value: Any) -> str:
    """Format a value for a message: quoted text, else JSON."""
    if isinstance(value, str):
        return quote(value)
    return msgspec.json.encode(value).decode()


def quote(text: str) -> str:
    """Return text in double quotes with special characters escaped."""
    return msgspec.json.encode(text).decode()


def field_invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return an error: the value violates a rule."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {format_value(value)}: {detail}")


def field_type_invalid(field: str, value: str, detail: str) -> FieldError:
    """Return an error: the value has another type; `value` is the name of its type, or the invalid text."""
    return FieldError(field, "FieldValueTypeInvalid", f"Invalid value: {quote(value)}: {detail}")


def field_required(field: str, detail: str = "") -> FieldError:
    """Return an error: the value is required."""
    return FieldError(field, "FieldValueRequired", f"Required value: {detail}" if detail else "Required value")


def field_not_supported(field: str, value: Any, supported: Iterable[Any]) -> FieldError:
    """Return an error: the value is not one of the supported values."""
    choices = ", ".join(format_value(choice) for choice in supported)
    return FieldError(
        field, "FieldValueNotSupported", f"Unsupported value: {format_value(value)}: supported values: {choices}"
    )


def field_duplicate(field: str, value: Any) -> FieldError:
    """Return an error: the value occurs twice where it must be unique."""
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {format_value(value)}")


def field_forbidden(field: str, detail: str) -> FieldError:
    """Return an error: the value is forbidden, or must not change."""
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def field_too_long(field: str, limit: int) -> FieldError:
    """Return an error: the text has too many bytes."""
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {_format_count(limit, 'byte')}")


def field_too_many(field: str, count: int, limit: int) -> FieldError:
    """Return an error: the list or mapping has too many items."""
    return FieldError(
        field, "FieldValueTooMany", f"Too many: {count}: must have at most {_format_count(limit, 'item')}"
    )


def _format_count(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def new_invalid(group: str, kind: str, name: str, errors: Sequence[FieldError]) -> InvalidError:
    """Return error 422 with all distinct validation errors."""
    unique = list(dict.fromkeys(errors))
    message = str(unique[0]) if len(unique) == 1 else f"[{', '.join(str(error) for error in unique)}]"
    details: dict[str, Any] = {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    details["causes"] = [{"reason": error.reason, "message": error.message, "field": error.field} for error in unique]
    what = f"{kind}.{group}" if group else kind
    return InvalidError(f'{what} "{name}" is invalid: {message}', details=details)

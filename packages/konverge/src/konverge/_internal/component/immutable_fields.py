"""Detection and description of changes that an API server refuses because a field is immutable. Pure.

The server has no reason or code for this case. The response is 422 ``Invalid`` as for any other validation, and each
validation has its own phrase (`kube.server_text_redaction.IMMUTABILITY_PHRASES`). The phrase for rules of
custom resources is "immutable".
"""

from __future__ import annotations

from typing import Any

import msgspec

from konverge._internal.kube import Object
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.kube.server_text_redaction import IMMUTABILITY_PHRASES
from konverge.errors import InvalidError

__all__ = ["describe_immutable_change", "is_immutability_error"]

_VALUE_LIMIT = 60


def is_immutability_error(error: InvalidError) -> bool:
    """Return True if every error that the server reports is a change of an immutable field.

    Every error counts: an object with any other error could be deleted, but not created again.
    """
    causes = error.causes
    return bool(causes) and all(
        cause.reason in ("FieldValueInvalid", "FieldValueForbidden")
        and any(phrase in cause.message.lower() for phrase in IMMUTABILITY_PHRASES)
        for cause in causes
    )


def describe_immutable_change(
    error: InvalidError, desired: Object, live: Object, secrets: SecretValues, *, is_secret: bool
) -> str:
    """List the immutable fields, with their old and new values if these are short and not secret."""
    fields = dict.fromkeys(cause.field for cause in error.causes)
    if is_secret:
        return ", ".join(f"{field} is immutable" for field in fields)
    return ", ".join(f"{field} is immutable{_format_change(field, desired, live, secrets)}" for field in fields)


def _format_change(field: str, desired: Object, live: Object, secrets: SecretValues) -> str:
    was, now = _read_field(live, field), _read_field(desired, field)
    if secrets.is_in(was) or secrets.is_in(now):
        return ""
    was, now = _format_value(was), _format_value(now)
    if was == now or max(len(was), len(now)) > _VALUE_LIMIT:
        return ""
    return f" (was {was}, now {now})"


def _read_field(obj: Any, field: str) -> Any:
    for name in field.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


def _format_value(value: Any) -> str:
    return "absent" if value is None else msgspec.json.encode(value).decode()

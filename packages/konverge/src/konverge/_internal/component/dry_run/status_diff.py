"""Comparison of two states of an owner's status, field by field, without its conditions. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from konverge._internal.apply import ABSENT, HIDDEN
from konverge._internal.component.dry_run.report import FieldChange, truncate_value
from konverge._internal.kube import Object
from konverge._internal.kube.secret_values import SecretValues

__all__ = ["find_status_changes"]


def find_status_changes(before: Object, after: Object, secrets: SecretValues) -> tuple[FieldChange, ...]:
    """Return the changed fields of an owner's status; its conditions have reports of their own.

    Args:
        before: The owner as the server has it.
        after: The owner after the reconcile.
        secrets: The values that are not shown in any field.
    """
    return tuple(_iter_changes(_read_fields(before), _read_fields(after), ".status", secrets))


def _read_fields(owner: Object) -> Object:
    status = owner.get("status")
    return {name: value for name, value in status.items() if name != "conditions"} if isinstance(status, dict) else {}


def _iter_changes(before: Object, after: Object, path: str, secrets: SecretValues) -> Iterator[FieldChange]:
    for name in sorted({*before, *after}):
        was, will_be = before.get(name, ABSENT), after.get(name, ABSENT)
        where = f"{path}.{name}"
        if isinstance(was, dict) and isinstance(will_be, dict):
            yield from _iter_changes(was, will_be, where, secrets)
        elif was is ABSENT:
            yield FieldChange(where, "added", None, _show(will_be, secrets))
        elif will_be is ABSENT:
            yield FieldChange(where, "removed", _show(was, secrets), None)
        elif was != will_be:
            yield FieldChange(where, "changed", _show(was, secrets), _show(will_be, secrets))


def _show(value: Any, secrets: SecretValues) -> Any:
    return HIDDEN if secrets.is_in(value) else truncate_value(value)

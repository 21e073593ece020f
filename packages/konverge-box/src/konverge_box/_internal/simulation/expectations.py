"""Comparison of actual and expected results. Pure. The values of Secrets are compared and never shown."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import UNSET, UnsetType

from konverge._internal.kube import Condition, GroupVersionKind, Object, find_condition
from konverge._internal.message_text import shorten
from konverge_box._internal.simulation.simulation_model import Expectations, ExpectedCondition, ExpectedObject
from konverge_box._internal.simulation.step_report import RecordedOperation

__all__ = ["find_object_failures", "find_operation_failures"]

_SECRET_FIELDS = ("data", "stringData")
_MAX_VALUE_LENGTH = 200

_STATUSES = {
    "True": ExpectedCondition(status="True"),
    "False": ExpectedCondition(status="False"),
    "Unknown": ExpectedCondition(status="Unknown"),
}
"""The strings that name a status; any other string names a reason."""


def find_object_failures(expected: ExpectedObject, found: Object | None) -> Iterator[str]:
    """Yield the differences between an object and its expectation, one sentence each.

    Args:
        expected: The expected object.
        found: The object; None if there is none.
    """
    what = f"{expected.kind}/{expected.name}"
    if found is None:
        yield f"{what}: expected an object, found none"
        return
    for kind, expected_condition in expected.conditions.items():
        yield from _find_condition_failures(f"{what}: {kind}", expected_condition, find_condition(found, kind))
    is_secret = GroupVersionKind.of(found).is_secret
    actual = _decode_secret_data(found) if is_secret else found
    for name, expected_value in {"status": expected.status, **expected.has}.items():
        hides = is_secret and name in _SECRET_FIELDS
        yield from _find_differences(expected_value, actual.get(name), f"{what}: {name}", hides=hides)


def find_operation_failures(
    expected: Expectations, done: Iterable[RecordedOperation], owners: Iterable[str]
) -> Iterator[str]:
    """Yield the differences between the operator's changes and the expected changes.

    Args:
        expected: The expectations.
        done: The changes of the operator in this step.
        owners: The kinds of its custom resources; their changes are ignored.
    """
    operations = [each for each in done if each.kind not in set(owners) and not each.is_status]
    names_by_verb = {"created": expected.created, "updated": expected.updated, "deleted": expected.deleted}
    for verb, names in names_by_verb.items():
        if isinstance(names, UnsetType):
            continue
        found = {each.object_name for each in operations if each.verb == verb}
        for name in names:
            if name not in found:
                yield f"{name}: expected it to be {verb}, found no such change"
        for name in sorted(found - set(names)):
            yield f"{name}: expected no such change, found it {verb}"


def _find_condition_failures(
    what: str, expected: bool | str | ExpectedCondition, found: Condition | None
) -> Iterator[str]:
    if isinstance(expected, bool):
        expected = ExpectedCondition(status=expected)
    elif isinstance(expected, str):
        expected = _STATUSES.get(expected) or ExpectedCondition(reason=expected)
    if found is None:
        yield f"{what}: expected a condition, found none"
        return
    actual = f"{found.status} {found.reason}: {found.message}".rstrip(": ")
    if expected.status is not None and str(expected.status) != found.status:
        yield f"{what}: expected {expected.status}, found {actual}"
    elif expected.reason and expected.reason != found.reason:
        yield f"{what}: expected the reason {expected.reason}, found {actual}"
    elif expected.message not in found.message:
        yield f"{what}: expected {expected.message!r} in the message, found {actual}"


def _find_differences(wanted: Any, found: Any, path: str, *, hides: bool) -> Iterator[str]:
    if isinstance(wanted, Mapping) and (isinstance(found, Mapping) or not wanted):
        for name, each in wanted.items():
            separator = "." if all(letter.isalnum() or letter in "_-" for letter in name) else ""
            at = f"{path}{separator}{name}" if separator else f"{path}[{name!r}]"
            below = found.get(name, UNSET) if isinstance(found, Mapping) else UNSET
            yield from _find_differences(each, below, at, hides=hides)
        return
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (each, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _find_differences(each, other, f"{path}[{index}]", hides=hides)
        return
    if wanted is None and (found is None or found is UNSET):
        return
    if wanted != found or isinstance(wanted, bool) is not isinstance(found, bool):
        if hides:
            problem = "a value, found none" if found is UNSET else "another value (not shown)"
            yield f"{path}: expected {problem}"
        else:
            yield f"{path}: expected {_format_value(wanted)}, found {_format_value(found)}"


def _format_value(value: Any) -> str:
    if value is UNSET or value is None:
        return "nothing"
    text = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shorten(text, _MAX_VALUE_LENGTH)


def _decode_secret_data(secret: Object) -> Object:
    texts: dict[str, str] = {}
    for key, value in (secret.get("data") or {}).items():
        with suppress(ValueError):  # binary values have no form in a simulation file
            texts[key] = base64.b64decode(value).decode()
    return {**secret, "stringData": texts}

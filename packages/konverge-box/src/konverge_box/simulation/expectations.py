"""Whether what is there is what was expected. Pure. The values of Secrets are compared, and never shown."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from msgspec import UNSET, UnsetType

from konverge.kube import Condition, GroupVersionKind, Object, find_condition
from konverge.message_text import shorten
from konverge_box.simulation.simulation_model import Expectations, ExpectedCondition, ExpectedObject
from konverge_box.simulation.step_report import RecordedOperation

__all__ = ["find_object_failures", "find_operation_failures"]

_SECRET_FIELDS = ("data", "stringData")
_MAX_VALUE_LENGTH = 200

_STATUSES = {
    "True": ExpectedCondition(status="True"),
    "False": ExpectedCondition(status="False"),
    "Unknown": ExpectedCondition(status="Unknown"),
}
"""What a text expects that is a status; any other is a reason."""


def find_object_failures(expected: ExpectedObject, found: Object | None) -> Iterator[str]:
    """What of an object is not as expected, one sentence each.

    Args:
        expected: What should be.
        found: The object; None when there is none.
    """
    what = f"{expected.kind}/{expected.name}"
    if found is None:
        yield f"{what}: expected to be there, found none"
        return
    for kind, wanted in expected.conditions.items():
        yield from _find_condition_failures(f"{what}: {kind}", wanted, find_condition(found, kind))
    is_secret = GroupVersionKind.of(found).is_secret
    seen = _decode_secret_data(found) if is_secret else found
    for name, wanted_value in {"status": expected.status, **expected.has}.items():
        hides = is_secret and name in _SECRET_FIELDS
        yield from _find_differences(wanted_value, seen.get(name), f"{what}: {name}", hides=hides)


def find_operation_failures(
    expected: Expectations, done: Iterable[RecordedOperation], owners: Iterable[str]
) -> Iterator[str]:
    """What the operator did otherwise than expected.

    Args:
        expected: What should be.
        done: What it did in the step.
        owners: The kinds of its custom resources, which do not count.
    """
    listed = [each for each in done if each.kind not in set(owners) and not each.is_status]
    wanted_by_verb = {"created": expected.created, "updated": expected.updated, "deleted": expected.deleted}
    for verb, wanted in wanted_by_verb.items():
        if isinstance(wanted, UnsetType):
            continue
        found = {each.object_name for each in listed if each.verb == verb}
        for which in wanted:
            if which not in found:
                yield f"{which}: expected to be {verb}, it was not"
        for which in sorted(found - set(wanted)):
            yield f"{which}: was {verb}, which was not expected"


def _find_condition_failures(
    what: str, wanted: bool | str | ExpectedCondition, found: Condition | None
) -> Iterator[str]:
    if isinstance(wanted, bool):
        wanted = ExpectedCondition(status=wanted)
    elif isinstance(wanted, str):
        wanted = _STATUSES.get(wanted) or ExpectedCondition(reason=wanted)
    if found is None:
        yield f"{what}: expected a condition, found none"
        return
    shown = f"{found.status} {found.reason}: {found.message}".rstrip(": ")
    if wanted.status is not None and str(wanted.status) != found.status:
        yield f"{what}: expected {wanted.status}, found {shown}"
    elif wanted.reason and wanted.reason != found.reason:
        yield f"{what}: expected the reason {wanted.reason}, found {shown}"
    elif wanted.message not in found.message:
        yield f"{what}: expected {wanted.message!r} in the message, found {shown}"


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
            yield f"{path}: {'expected a value, found none' if found is UNSET else 'is another value (not shown)'}"
        else:
            yield f"{path}: expected {_format_value(wanted)}, found {_format_value(found)}"


def _format_value(value: Any) -> str:
    if value is UNSET or value is None:
        return "nothing"
    return shorten(repr(value), _MAX_VALUE_LENGTH)


def _decode_secret_data(secret: Object) -> Object:
    texts: dict[str, str] = {}
    for key, value in (secret.get("data") or {}).items():
        with suppress(ValueError):  # what is no text cannot be expected as such
            texts[key] = base64.b64decode(value).decode()
    return {**secret, "stringData": texts}

"""Patches that need no schema: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.errors import ApiError, BadRequestError
from konverge.localcluster.bodies import MAXIMUM_BYTES, check_shape

__all__ = ["json_patch", "merge_patch"]

_MAXIMUM_OPERATIONS = 10_000
_MISSING = object()

_encode = msgspec.json.Encoder().encode


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with the patch merged in: mappings merge, null removes, everything else replaces."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    """A copy of the target with the operations done in order; all of them or none.

    As on the real server ``replace`` of an absent field adds it.

    Raises:
        BadRequestError: The patch has another form, or what comes out nests too deeply.
        ApiError: 422: an operation cannot be done, a test failed, or the copies are larger than a body may be.
    """
    if not isinstance(operations, list) or not all(isinstance(each, Mapping) for each in operations):
        raise BadRequestError("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > _MAXIMUM_OPERATIONS:
        raise ApiError(
            f"The allowed maximum operations in a JSON patch is {_MAXIMUM_OPERATIONS}, got {len(operations)}",
            reason="RequestEntityTooLarge",
            code=413,
        )
    patched, copied = _copied(target), 0
    for operation in operations:
        if operation.get("op") == "copy":
            # Each copy of a copy is twice as large.
            copied += len(_encode(_existing(patched, _steps(operation.get("from")))))
            if copied > MAXIMUM_BYTES:
                raise _refused()
        patched = _operate(patched, operation)
    check_shape(patched)
    return patched


def _operate(target: Any, operation: Mapping[str, Any]) -> Any:
    steps = _steps(operation.get("path"))
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            return _put(target, steps, _copied(value), is_new=True)
        case "replace":
            return _put(target, steps, _copied(value), is_new=False)
        case "remove":
            _take(target, steps)
            return target
        case "test":
            found = _find(target, steps)
            if found != value and not (found is _MISSING and value is None):
                raise _refused()
            return target
        case "copy":
            return _put(target, steps, _copied(_existing(target, _steps(operation.get("from")))), is_new=True)
        case "move":
            source = _steps(operation.get("from"))
            moved = _existing(target, source)
            _take(target, source)
            return _put(target, steps, moved, is_new=True)
        case _:
            raise _refused()


def _steps(pointer: Any) -> list[str]:
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise _refused()
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _put(target: Any, steps: list[str], value: Any, *, is_new: bool) -> Any:
    if not steps:
        return value
    parent, last = _existing(target, steps[:-1]), steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if is_new:
            parent.insert(len(parent) if last == "-" else _index(last, len(parent) + 1), value)
        else:
            parent[_index(last, len(parent))] = value
    else:
        raise _refused()
    return target


def _take(target: Any, steps: list[str]) -> None:
    parent = _find(target, steps[:-1])
    if isinstance(parent, dict) and steps and steps[-1] in parent:
        del parent[steps[-1]]
    elif isinstance(parent, list) and steps:
        del parent[_index(steps[-1], len(parent))]
    else:
        raise _refused()


def _find(target: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(target, dict):
            target = target.get(step, _MISSING)
        elif isinstance(target, list):
            target = target[_index(step, len(target))]
        else:
            return _MISSING
    return target


def _existing(target: Any, steps: list[str]) -> Any:
    found = _find(target, steps)
    if found is _MISSING:
        raise _refused()
    return found


def _index(step: str, count: int) -> int:
    if not (step.isascii() and step.isdigit()) or len(step) > len(str(count)) or int(step) >= count:
        raise _refused()
    return int(step)


def _refused() -> ApiError:
    return ApiError("the server rejected our request due to an error in our request", reason="Invalid", code=422)


def _copied(value: Any) -> Any:
    return msgspec.json.decode(_encode(value))

"""Patches that need no schema: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.errors import ApiError, BadRequestError
from konverge.localcluster.bodies import MAXIMUM_BYTES, check_shape

__all__ = ["PatchFailedError", "json_patch", "merge_patch"]

_MAXIMUM_OPERATIONS = 10_000
_MISSING = object()

_encode = msgspec.json.Encoder().encode


class PatchFailedError(ApiError):
    """An operation of a JSON patch cannot be done.

    Args:
        why: Why not; users of the API are not told, authors of webhooks are.
    """

    default_reason = "Invalid"
    default_code = 422

    def __init__(self, why: str) -> None:
        super().__init__("the server rejected our request due to an error in our request")
        self.why = why


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
        PatchFailedError: An operation cannot be done, a test failed, or the copies are larger than a body may be.
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
        try:
            if operation.get("op") == "copy":
                # Each copy of a copy is twice as large.
                copied += len(_encode(_existing(patched, _steps(operation.get("from")))))
                if copied > MAXIMUM_BYTES:
                    raise PatchFailedError(f"the copies are larger than {MAXIMUM_BYTES} bytes")
            patched = _operate(patched, operation)
        except _ImpossibleError:
            raise PatchFailedError(_why(operation)) from None
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


class _ImpossibleError(Exception):
    """The operation cannot be done."""


def _refused() -> _ImpossibleError:
    return _ImpossibleError()


def _why(operation: Mapping[str, Any]) -> str:
    name, path = operation.get("op"), operation.get("path")
    if name == "test":
        return f"testing value {path} failed: test failed"
    if name not in ("add", "copy", "move", "remove", "replace"):
        return f"unexpected kind: {name}"
    return f"{name} operation does not apply: doc is missing path: {path}: missing value"


def _copied(value: Any) -> Any:
    return msgspec.json.decode(_encode(value))

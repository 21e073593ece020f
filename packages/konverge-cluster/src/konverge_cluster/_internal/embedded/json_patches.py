"""Patch formats that need no schema: JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded.request_bodies import MAXIMUM_BYTES, check_shape

__all__ = ["PatchFailedError", "apply_json_patch", "apply_merge_patch"]

_MAXIMUM_OPERATIONS = 10_000
_MISSING = object()

_encode = msgspec.json.Encoder().encode


class PatchFailedError(ApiError):
    """An operation of a JSON patch failed.

    Args:
        detail: The reason; authors of webhooks receive it, users of the API do not.
    """

    default_reason = "Invalid"
    default_code = 422

    def __init__(self, why: str) -> None:
        super().__init__("the server rejected our request due to an error in our request")
        self.detail = why


def apply_merge_patch(target: Any, patch: Any) -> Any:
    """Return the target with the patch merged in: mappings merge, null removes, other values replace."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = apply_merge_patch(merged.get(name), value)
    return merged


def apply_json_patch(target: Any, operations: Any) -> Any:
    """Return a copy of the target after all operations in order; an error changes nothing.

    As on the real server, ``replace`` of an absent field adds it.

    Raises:
        BadRequestError: The patch is malformed, or the result nests too deeply.
        PatchFailedError: An operation failed, a test failed, or the copies exceed the size limit of a body.
    """
    if not isinstance(operations, list) or not all(isinstance(entry, Mapping) for entry in operations):
        raise BadRequestError("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > _MAXIMUM_OPERATIONS:
        raise ApiError(
            f"The allowed maximum operations in a JSON patch is {_MAXIMUM_OPERATIONS}, got {len(operations)}",
            reason="RequestEntityTooLarge",
            code=413,
        )
    patched, copied = _copy_value(target), 0
    for operation in operations:
        try:
            if operation.get("op") == "copy":
                # A copy of a copy doubles the size each time.
                copied += len(_encode(_require_value(patched, _parse_pointer(operation.get("from")))))
                if copied > MAXIMUM_BYTES:
                    raise PatchFailedError(f"the copies are larger than {MAXIMUM_BYTES} bytes")
            patched = _apply_operation(patched, operation)
        except _OperationError:
            raise PatchFailedError(_describe_operation(operation)) from None
    check_shape(patched)
    return patched


def _apply_operation(target: Any, operation: Mapping[str, Any]) -> Any:
    steps = _parse_pointer(operation.get("path"))
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            return _set_value(target, steps, _copy_value(value), is_new=True)
        case "replace":
            return _set_value(target, steps, _copy_value(value), is_new=False)
        case "remove":
            _remove_value(target, steps)
            return target
        case "test":
            value_at_path = _find_value(target, steps)
            if value_at_path != value and not (value_at_path is _MISSING and value is None):
                raise _new_operation_error()
            return target
        case "copy":
            return _set_value(
                target, steps, _copy_value(_require_value(target, _parse_pointer(operation.get("from")))), is_new=True
            )
        case "move":
            source = _parse_pointer(operation.get("from"))
            moved = _require_value(target, source)
            _remove_value(target, source)
            return _set_value(target, steps, moved, is_new=True)
        case _:
            raise _new_operation_error()


def _parse_pointer(pointer: Any) -> list[str]:
    if pointer == "":
        return []
    if not isinstance(pointer, str) or not pointer.startswith("/"):
        raise _new_operation_error()
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def _set_value(target: Any, steps: list[str], value: Any, *, is_new: bool) -> Any:
    if not steps:
        return value
    parent, last = _require_value(target, steps[:-1]), steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        if is_new:
            parent.insert(len(parent) if last == "-" else _parse_index(last, len(parent) + 1), value)
        else:
            parent[_parse_index(last, len(parent))] = value
    else:
        raise _new_operation_error()
    return target


def _remove_value(target: Any, steps: list[str]) -> None:
    parent = _find_value(target, steps[:-1])
    if isinstance(parent, dict) and steps and steps[-1] in parent:
        del parent[steps[-1]]
    elif isinstance(parent, list) and steps:
        del parent[_parse_index(steps[-1], len(parent))]
    else:
        raise _new_operation_error()


def _find_value(target: Any, steps: list[str]) -> Any:
    for step in steps:
        if isinstance(target, dict):
            target = target.get(step, _MISSING)
        elif isinstance(target, list):
            target = target[_parse_index(step, len(target))]
        else:
            return _MISSING
    return target


def _require_value(target: Any, steps: list[str]) -> Any:
    value_at_path = _find_value(target, steps)
    if value_at_path is _MISSING:
        raise _new_operation_error()
    return value_at_path


def _parse_index(step: str, count: int) -> int:
    if not (step.isascii() and step.isdigit()) or len(step) > len(str(count)) or int(step) >= count:
        raise _new_operation_error()
    return int(step)


class _OperationError(Exception):
    """The operation is not possible."""


def _new_operation_error() -> _OperationError:
    return _OperationError()


def _describe_operation(operation: Mapping[str, Any]) -> str:
    name, path = operation.get("op"), operation.get("path")
    if name == "test":
        return f"testing value {path} failed: test failed"
    if name not in ("add", "copy", "move", "remove", "replace"):
        return f"unexpected kind: {name}"
    return f"{name} operation does not apply: doc is missing path: {path}: missing value"


def _copy_value(value: Any) -> Any:
    return msgspec.json.decode(_encode(value))

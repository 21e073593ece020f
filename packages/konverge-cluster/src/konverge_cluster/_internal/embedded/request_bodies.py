"""Decoding of request bodies: JSON or YAML text to plain values, within limits.

If a key occurs twice in one mapping, the last value counts and the key is reported: the server warns or rejects.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import yaml

from konverge._internal.kube.yaml_loader import TooManyValuesError, YamlLimits, load_yaml
from konverge.errors import ApiError, BadRequestError

__all__ = [
    "MAXIMUM_BYTES",
    "check_shape",
    "check_size",
    "decode_json",
    "decode_yaml",
    "find_duplicate_keys",
    "new_too_large",
]

MAXIMUM_BYTES = 3 * 1024 * 1024
_MAXIMUM_DEPTH = 100
_MAXIMUM_VALUES = 500_000
_YAML_LIMITS = YamlLimits(max_depth=_MAXIMUM_DEPTH, max_nodes=2 * _MAXIMUM_VALUES, may_repeat_fields=True)


def check_size(body: bytes) -> None:
    """Reject a body that is too large.

    Raises:
        ApiError: 413: the body exceeds the limit.
    """
    if len(body) > MAXIMUM_BYTES:
        raise new_too_large()


def new_too_large() -> ApiError:
    """Return 413: the body is too large."""
    message = f"Request entity too large: limit is {MAXIMUM_BYTES}"
    return ApiError(message, reason="RequestEntityTooLarge", code=413)


def decode_json(body: bytes) -> Any:
    """Return the value of JSON text.

    Raises:
        BadRequestError: The text is not JSON, or nests too deeply.
    """
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        message = "unexpected end of JSON input" if "truncated" in str(error) else error
        raise BadRequestError(f"json parse error: {message}") from None
    except UnicodeDecodeError:
        raise BadRequestError("json parse error: a text is not UTF-8") from None
    except RecursionError:
        raise _new_too_deep() from None
    if body.count(b"{") + body.count(b"[") > _MAXIMUM_DEPTH:
        check_shape(value)
    return value


def find_duplicate_keys(body: bytes) -> list[str]:
    """Return the paths of duplicate keys in JSON text that `decode_json` has accepted."""
    duplicates: dict[int, list[str]] = {}

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            seen: set[str] = set()
            repeated = duplicates[id(built)] = []
            for key, _ in pairs:
                if key in seen:
                    repeated.append(key)
                seen.add(key)
        return built

    value = json.loads(body, object_pairs_hook=build)
    return list(_locate_error(value, "", duplicates)) if duplicates else []


def _locate_error(value: Any, path: str, duplicates: dict[int, list[str]]) -> Any:
    if isinstance(value, dict):
        for key in duplicates.get(id(value), ()):
            yield f"{path}.{key}" if path else key
        for key, item in value.items():
            yield from _locate_error(item, f"{path}.{key}" if path else key, duplicates)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _locate_error(item, f"{path}[{index}]", duplicates)


def decode_yaml(body: bytes) -> Any:
    """Return the value of YAML text, as its JSON form has it.

    Raises:
        BadRequestError: The text is not YAML, nests too deeply, or expands to too many values.
    """
    try:
        value = load_yaml(body, _YAML_LIMITS)
    except TooManyValuesError:
        raise _new_too_many_values() from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise BadRequestError(f"error converting YAML to JSON: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise _new_too_deep() from None
    check_shape(value)
    return value


def check_shape(value: Any) -> None:
    """Limit the values that later modules process recursively; each use of a YAML alias counts.

    Raises:
        BadRequestError: The value nests too deeply, or has too many values.
    """
    count = 0
    level = [value]
    for _ in range(_MAXIMUM_DEPTH + 1):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list):
                below.extend(item)
        count += len(below)
        if count > _MAXIMUM_VALUES:
            raise _new_too_many_values()
        if not below:
            return
        level = below
    raise _new_too_deep()


def _new_too_many_values() -> BadRequestError:
    return BadRequestError(f"the object has more than {_MAXIMUM_VALUES} values")


def _new_too_deep() -> BadRequestError:
    return BadRequestError(f"the object nests deeper than {_MAXIMUM_DEPTH} levels")

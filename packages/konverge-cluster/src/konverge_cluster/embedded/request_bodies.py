"""Request bodies: JSON or YAML text to plain values, within limits.

A key that stands twice in one mapping counts once (the last), and is reported: the server warns of it or refuses it.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import yaml

from konverge.errors import ApiError, BadRequestError
from konverge.kube.yaml_loader import TooManyValuesError, YamlLimits, load_yaml

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
    """Refuse a body that is too large.

    Raises:
        ApiError: 413.
    """
    if len(body) > MAXIMUM_BYTES:
        raise new_too_large()


def new_too_large() -> ApiError:
    """413."""
    told = f"Request entity too large: limit is {MAXIMUM_BYTES}"
    return ApiError(told, reason="RequestEntityTooLarge", code=413)


def decode_json(body: bytes) -> Any:
    """The value of JSON text.

    Raises:
        BadRequestError: It is no JSON, or nests too deeply.
    """
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as mistake:
        told = "unexpected end of JSON input" if "truncated" in str(mistake) else mistake
        raise BadRequestError(f"json parse error: {told}") from None
    except UnicodeDecodeError:
        raise BadRequestError("json parse error: a text is not UTF-8") from None
    except RecursionError:
        raise _new_too_deep() from None
    if body.count(b"{") + body.count(b"[") > _MAXIMUM_DEPTH:
        check_shape(value)
    return value


def find_duplicate_keys(body: bytes) -> list[str]:
    """The paths of the keys that stand twice in a mapping of JSON text (which `decode_json` has accepted)."""
    doubled: dict[int, list[str]] = {}

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        built = dict(pairs)
        if len(built) != len(pairs):
            seen: set[str] = set()
            repeated = doubled[id(built)] = []
            for key, _ in pairs:
                if key in seen:
                    repeated.append(key)
                seen.add(key)
        return built

    value = json.loads(body, object_pairs_hook=build)
    return list(_locate_error(value, "", doubled)) if doubled else []


def _locate_error(value: Any, path: str, doubled: dict[int, list[str]]) -> Any:
    if isinstance(value, dict):
        for key in doubled.get(id(value), ()):
            yield f"{path}.{key}" if path else key
        for key, item in value.items():
            yield from _locate_error(item, f"{path}.{key}" if path else key, doubled)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _locate_error(item, f"{path}[{index}]", doubled)


def decode_yaml(body: bytes) -> Any:
    """The value of YAML text, as its JSON form would have it.

    Raises:
        BadRequestError: It is no YAML, nests too deeply, or expands to too much.
    """
    try:
        value = load_yaml(body, _YAML_LIMITS)
    except TooManyValuesError:
        raise _new_too_many_values() from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as mistake:
        raise BadRequestError(f"error converting YAML to JSON: {' '.join(str(mistake).split())}") from None
    except RecursionError:
        raise _new_too_deep() from None
    check_shape(value)
    return value


def check_shape(value: Any) -> None:
    """Bound what everything behind this module walks recursively; a YAML alias counts each time it is used.

    Raises:
        BadRequestError: It nests too deeply, or has too many values.
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

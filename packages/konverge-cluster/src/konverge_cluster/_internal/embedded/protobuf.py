"""Decoding of built-in kinds from protobuf, as typed Go clients send them, to their JSON form.

Only requests use it: responses are always JSON, which those clients accept too. The field numbers are data from
``tools/protobuf/generate.py``.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

import msgspec

from konverge._internal.apply import find_builtin_schema
from konverge._internal.kube import GroupVersionKind, Object, format_micro_time, format_time
from konverge.errors import BadRequestError

__all__ = ["MEDIA_TYPE", "decode_protobuf"]

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"

_MAGIC = b"k8s\x00"
_MAXIMUM_DEPTH = 100
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_ENVELOPE = "io.k8s.apimachinery.pkg.runtime.Unknown"
# Bodies that are not objects: the definition by apiVersion and kind.
_OTHERS: Mapping[tuple[str, str], str] = {
    ("authentication.k8s.io/v1", "SelfSubjectReview"): "io.k8s.api.authentication.v1.SelfSubjectReview",
    ("authentication.k8s.io/v1", "TokenRequest"): "io.k8s.api.authentication.v1.TokenRequest",
    ("authentication.k8s.io/v1", "TokenReview"): "io.k8s.api.authentication.v1.TokenReview",
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview"): "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    ("authorization.k8s.io/v1", "SubjectAccessReview"): "io.k8s.api.authorization.v1.SubjectAccessReview",
    ("autoscaling/v1", "Scale"): "io.k8s.api.autoscaling.v1.Scale",
    ("policy/v1", "Eviction"): "io.k8s.api.policy.v1.Eviction",
    ("v1", "Binding"): "io.k8s.api.core.v1.Binding",
}

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

Value: TypeAlias = int | bytes


class _Field(NamedTuple):
    """A field of a message: its JSON name, its type, and how it repeats (``*`` list, ``{`` mapping, ``~`` inlined)."""

    name: str
    type: str
    mark: str


def decode_protobuf(body: bytes) -> Object:
    """Return the JSON form of an object in the Kubernetes protobuf envelope.

    Raises:
        BadRequestError: The body is not such an envelope, or its kind is not supported in protobuf.
    """
    if not body.startswith(_MAGIC):
        raise BadRequestError("the body does not begin as protobuf of Kubernetes does")
    try:
        envelope = _decode_message(body[len(_MAGIC) :], _ENVELOPE, 0)
        raw = base64.b64decode(envelope.get("raw", ""))
        kind = envelope.get("typeMeta", {})
        api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
        obj = _decode_message(raw, _find_message_name(api_version, name), 0)
    except (ValueError, IndexError, struct.error) as error:
        raise BadRequestError(f"the protobuf cannot be read: {error}") from None
    return {"kind": name, "apiVersion": api_version, **obj}


def _find_message_name(api_version: str, kind: str) -> str:
    message_name = _OTHERS.get((api_version, kind))
    if kind == "DeleteOptions":
        message_name = f"{_META}DeleteOptions"
    if message_name is None:
        schema = find_builtin_schema(GroupVersionKind.parse(api_version, kind))
        message_name = schema.name if schema is not None else ""
    if message_name not in _load_messages():
        raise BadRequestError(f"{api_version} {kind} is not read in protobuf here; send JSON")
    return message_name


@cache
def _load_messages() -> Mapping[str, Mapping[int, _Field]]:
    data = (resources.files("konverge_cluster._internal.embedded") / "protobuf.json").read_bytes()
    specs: dict[str, dict[str, str]] = msgspec.json.decode(data)
    return {
        name: {int(number): _parse_field(spec) for number, spec in fields.items()} for name, fields in specs.items()
    }


def _parse_field(spec: str) -> _Field:
    name, _, kind = spec.partition(" ")
    mark = kind[0] if kind[0] in "*{~" else ""
    return _Field(name, kind.removeprefix(mark), mark)


def _iter_fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the numbers and the raw values of a message's fields."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind, value = tag & 7, b""
        if kind == _VARINT:
            number, at = _read_varint(data, at)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            size, at = _read_varint(data, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"there is no wire type {kind}")
        value, at = data[at : at + size], at + size
        if at > len(data):
            raise ValueError("a field is longer than its message")
        yield tag >> 3, value


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _decode_message(data: bytes, name: str, depth: int) -> Object:
    if depth > _MAXIMUM_DEPTH:
        raise ValueError(f"it nests deeper than {_MAXIMUM_DEPTH} levels")
    fields = _load_messages()[name]
    decoded: Object = {}
    for number, value in _iter_fields(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.mark == "{":
            key, item = _decode_map_entry(_as_bytes(value), field.type, depth)
            decoded.setdefault(field.name, {})[key] = item
            continue
        decoded_value = _decode_value(value, field.type, depth)
        if field.mark == "*":
            decoded.setdefault(field.name, []).append(decoded_value)
        elif field.mark == "~":
            decoded |= decoded_value
        else:
            decoded[field.name] = decoded_value
    return decoded


def _decode_map_entry(data: bytes, kind: str, depth: int) -> tuple[str, Any]:
    parts = dict(_iter_fields(data))
    key = _as_bytes(parts.get(1, b"")).decode()
    return key, _decode_value(parts.get(2, b"" if kind not in ("int32", "int64", "bool") else 0), kind, depth)


def _as_bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number stands where a text or a message is expected")
    return value


def _decode_value(value: Value, kind: str, depth: int) -> Any:
    match kind:
        case "string":
            return _as_bytes(value).decode()
        case "bytes":
            return base64.b64encode(_as_bytes(value)).decode()
        case "bool" | "int32" | "int64" if isinstance(value, int):
            signed = value - (1 << 64) if value >= 1 << 63 else value
            return bool(value) if kind == "bool" else signed
        case "double":
            return struct.unpack("<d", _as_bytes(value))[0]
        case "bool" | "int32" | "int64":
            raise ValueError("a text stands where a number is expected")
    form = _OWN_FORMS.get(kind)
    message = _decode_message(_as_bytes(value), kind, depth + 1)
    return message if form is None else form(message)


def _decode_time(message: Object) -> str | None:
    moment = _decode_timestamp(message)
    return None if moment is None else format_time(moment)


def _decode_micro_time(message: Object) -> str | None:
    moment = _decode_timestamp(message)
    return None if moment is None else format_micro_time(moment)


def _decode_timestamp(message: Object) -> datetime | None:
    if not message:
        return None
    try:
        return _EPOCH + timedelta(seconds=message.get("seconds", 0), microseconds=message.get("nanos", 0) // 1000)
    except OverflowError:
        raise ValueError("a time is out of range") from None


def _decode_embedded_json(message: Object) -> Any:
    """Return JSON that is embedded in protobuf; None for an empty value."""
    raw = base64.b64decode(message.get("raw") or message.get("Raw") or "")
    try:
        return msgspec.json.decode(raw) if raw else None
    except msgspec.DecodeError as error:
        raise ValueError(f"an embedded value is not JSON: {error}") from None


# Messages that are not mappings in JSON.
_OWN_FORMS: Mapping[str, Callable[[Object], Any]] = {
    f"{_META}Time": _decode_time,
    f"{_META}MicroTime": _decode_micro_time,
    f"{_META}FieldsV1": _decode_embedded_json,
    "io.k8s.apimachinery.pkg.runtime.RawExtension": _decode_embedded_json,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": lambda message: message.get("string", "0"),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": lambda message: (
        message.get("strVal", "") if message.get("type") else message.get("intVal", 0)
    ),
    "io.k8s.api.authorization.v1.ExtraValue": lambda message: message.get("items", []),
    "io.k8s.api.authentication.v1.ExtraValue": lambda message: message.get("items", []),
}

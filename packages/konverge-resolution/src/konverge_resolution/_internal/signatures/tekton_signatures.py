"""Tekton's own signatures: the bytes that the annotation ``tekton.dev/signature`` covers. Pure.

Tekton decodes an object into its Go types, keeps a part of the metadata, encodes the rest as JSON, and signs the
SHA-256 digest of that text. ``tekton_types.json`` has the layout of these types (tools/tekton): the members of each
struct in the order in which Go writes them. Go drops what its types do not have, so a signature does not cover it.
Here, such an object has no signed form: otherwise anyone could add to a signed object.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

from konverge._internal.kube import Object
from konverge._internal.kube.durations import parse_microseconds
from konverge._internal.kube.quantities import canonicalize_quantity

__all__ = ["TEKTON_SIGNATURE", "UnsignedFieldError", "encode_for_tekton"]

TEKTON_SIGNATURE = "tekton.dev/signature"
"""Annotation with one signature in base64."""

_ROOTS = {
    ("tekton.dev/v1", "Task"): "pipeline/v1.Task",
    ("tekton.dev/v1", "Pipeline"): "pipeline/v1.Pipeline",
    ("tekton.dev/v1beta1", "Task"): "pipeline/v1beta1.Task",
    ("tekton.dev/v1beta1", "Pipeline"): "pipeline/v1beta1.Pipeline",
    ("tekton.dev/v1beta1", "StepAction"): "pipeline/v1beta1.StepAction",
}
_COVERED_METADATA = frozenset({"name", "generateName", "namespace", "labels", "annotations"})
_UNSIGNED_ANNOTATIONS = frozenset({"kubectl-client-side-apply", "kubectl.kubernetes.io/last-applied-configuration"})
_MAX_DEPTH = 64

_ESCAPED = re.compile('["\\\\<>&\x00-\x1f\u2028\u2029]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_NANOSECONDS = 1000
_MAX_INT = 2**63 - 1


class UnsignedFieldError(ValueError):
    """Tekton's signature cannot cover the object as it is; the message has the field."""


class _Member(NamedTuple):
    name: str
    type: str
    is_omitted_empty: bool
    is_older_written: bool


def encode_for_tekton(obj: Object) -> tuple[bytes, ...]:
    """Return what a signature of Tekton may cover: the digest of the object's form in current and in older versions.

    Older versions also write some members without a value, such as ``"creationTimestamp":null`` in metadata.

    Raises:
        UnsignedFieldError: The kind has no signatures, or a part of the object is not covered or has another type.
    """
    root = _ROOTS.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    if root is None:
        raise UnsignedFieldError(f"Tekton signs no objects of kind {str(obj.get('kind'))[:80]!r}")
    signed = {**obj, "metadata": _select_metadata(obj.get("metadata"))}
    forms = [_Encoder(is_older=older).encode(signed, root, "", 0) for older in (False, True)]
    try:
        return tuple(hashlib.sha256(form.encode()).digest() for form in dict.fromkeys(forms))
    except UnicodeEncodeError:
        raise UnsignedFieldError("expected text of Unicode characters, found half of one") from None


def _select_metadata(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, dict):
        raise UnsignedFieldError("metadata: expected a mapping")
    for name, value in metadata.items():
        if name not in _COVERED_METADATA and value is not None:
            raise UnsignedFieldError(f"metadata.{str(name)[:80]}: not covered by Tekton's signature")
    annotations = metadata.get("annotations")
    if isinstance(annotations, dict):
        for name in sorted(_UNSIGNED_ANNOTATIONS & annotations.keys()):
            raise UnsignedFieldError(f"metadata.annotations: {name} is not covered by Tekton's signature")
        annotations = {name: value for name, value in annotations.items() if name != TEKTON_SIGNATURE}
    return {**metadata, "annotations": annotations}


class _Encoder:
    """Encoder of one form of an object, as ``encoding/json`` of Go writes the decoded types."""

    def __init__(self, *, is_older: bool) -> None:
        self._is_older = is_older

    def encode(self, value: Any, kind: str, path: str, depth: int) -> str:
        """Return the JSON of a value of a type; `path` names the value in errors."""
        if depth > _MAX_DEPTH:
            raise UnsignedFieldError(f"{path}: nested too deeply")
        if kind.startswith("*"):
            return "null" if value is None else self.encode(value, kind[1:], path, depth + 1)
        if kind.startswith("[]"):
            if value is None:
                return "null"
            items = [
                self.encode(item, kind[2:], f"{path}[{place}]", depth + 1)
                for place, item in enumerate(_expect(value, list, path))
            ]
            return f"[{','.join(items)}]"
        if kind.startswith("{}"):
            return "null" if value is None else self._encode_map(_expect(value, dict, path), kind[2:], path, depth)
        if kind.startswith("!"):
            return _SPECIAL[kind[1:]](value, path)
        if kind in _PLAIN:
            return _PLAIN[kind](value, path)
        return self._encode_struct({} if value is None else _expect(value, dict, path), kind, path, depth)

    def _encode_map(self, value: Mapping[str, Any], kind: str, path: str, depth: int) -> str:
        # Go sorts by bytes; Python sorts by code points, which is the same order in UTF-8.
        names = sorted(_expect(name, str, path) for name in value)
        members = [
            f"{_encode_text(name, path)}:{self.encode(value[name], kind, f'{path}.{name[:80]}', depth + 1)}"
            for name in names
        ]
        return "{" + ",".join(members) + "}"

    def _encode_struct(self, value: Mapping[str, Any], kind: str, path: str, depth: int) -> str:
        members = _load_types()[kind]
        known = {member.name for member in members}
        for name in value:
            if name not in known:
                place = f"{path}.{str(name)[:80]}" if path else str(name)[:80]
                raise UnsignedFieldError(f"{place}: not covered by Tekton's signature")
        written = []
        for member in members:
            given = value.get(member.name)
            place = f"{path}.{member.name}" if path else member.name
            text = self.encode(given, member.type, place, depth + 1)  # also of an omitted value: it has a type
            if member.is_older_written and given is None:
                is_omitted = not self._is_older
            else:
                is_omitted = member.is_omitted_empty and text in _find_empty(member.type)
            if not is_omitted:
                written.append(f'"{member.name}":{text}')
        return "{" + ",".join(written) + "}"


def _find_empty(kind: str) -> tuple[str, ...]:
    """Return what Go omits with ``omitempty``: nothing, no items, or the zero of a plain type; never a struct."""
    if kind.startswith("*"):
        return ("null",)
    if kind.startswith(("[]", "{}")):
        return "null", "[]", "{}"
    return ('""', "0", "false", "null") if kind in _PLAIN else ()


def _expect(value: Any, kind: type[Any], path: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UnsignedFieldError(f"{path}: expected another type than {type(value).__name__}")
    return value


def _encode_text(value: Any, path: str) -> str:
    text = "" if value is None else _expect(value, str, path)
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


def _encode_integer(value: Any, path: str) -> str:
    number = 0 if value is None else _expect(value, int, path)
    if not -_MAX_INT - 1 <= number <= _MAX_INT:
        raise UnsignedFieldError(f"{path}: expected a number of 64 bits")
    return str(number)


def _encode_boolean(value: Any, path: str) -> str:
    return "true" if value is not None and _expect(value, bool, path) else "false"


def _encode_quantity(value: Any, path: str) -> str:
    if value is None:
        return '"0"'
    try:
        return f'"{canonicalize_quantity(_expect(value, str, path) if not isinstance(value, int) else value)}"'
    except ValueError as error:
        raise UnsignedFieldError(f"{path}: {error}") from None


def _encode_duration(value: Any, path: str) -> str:
    """Return a duration as Go's ``Duration.String`` writes it: ``1h0m0s``, ``1.5s``, ``10ms``."""
    try:
        nanoseconds = Decimal(0) if value is None else parse_microseconds(_expect(value, str, path)) * _NANOSECONDS
    except UnsignedFieldError:
        raise
    except ValueError as error:
        raise UnsignedFieldError(f"{path}: {error}") from None
    if nanoseconds != nanoseconds.to_integral_value():
        raise UnsignedFieldError(f"{path}: expected whole nanoseconds")
    total, sign = abs(int(nanoseconds)), "-" if nanoseconds < 0 else ""
    for limit, unit in ((1, "0s"), (10**3, "ns"), (10**6, "µs"), (10**9, "ms")):
        if total < limit:
            fraction = Decimal(total) / (limit // 1000) if limit > 1 else None
            return '"0s"' if fraction is None else f'"{sign}{fraction.normalize():f}{unit}"'
    minutes, rest = divmod(total, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    seconds = f"{(Decimal(rest) / 10**9).normalize():f}s"
    return f'"{sign}{f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""}{seconds}"'


def _encode_int_or_text(value: Any, path: str) -> str:
    return _encode_text(value, path) if isinstance(value, str) else _encode_integer(value, path)


def _encode_param(value: Any, path: str) -> str:
    """Return the value of a parameter: text, a list or a mapping of texts; Go converts numbers to text."""
    if value is None:
        raise UnsignedFieldError(f"{path}: expected a value, found none")
    if isinstance(value, bool):
        return f'"{str(value).lower()}"'
    if isinstance(value, int):
        return f'"{_encode_integer(value, path)}"'
    if isinstance(value, list):
        return f"[{','.join(_encode_text(_expect(item, str, path), path) for item in value)}]"
    if isinstance(value, dict):
        names = sorted(_expect(name, str, path) for name in value)
        texts = (f"{_encode_text(name, path)}:{_encode_text(_expect(value[name], str, path), path)}" for name in names)
        return "{" + ",".join(texts) + "}"
    return _encode_text(value, path)


def _refuse_value(value: Any, path: str) -> str:
    if value is not None:
        raise UnsignedFieldError(f"{path}: konverge cannot reproduce how Tekton writes this field")
    return "null"


_PLAIN: Mapping[str, Callable[[Any, str], str]] = {
    "string": _encode_text,
    "int": _encode_integer,
    "bool": _encode_boolean,
    "bytes": _refuse_value,
}
_SPECIAL: Mapping[str, Callable[[Any, str], str]] = {
    "resource.Quantity": _encode_quantity,
    "v1.Duration": _encode_duration,
    "intstr.IntOrString": _encode_int_or_text,
    "v1.ParamValue": _encode_param,
    "v1beta1.ParamValue": _encode_param,
    "v1.Time": _refuse_value,
    "runtime.RawExtension": _refuse_value,
    "v1.FieldsV1": _refuse_value,
}


@cache
def _load_types() -> Mapping[str, tuple[_Member, ...]]:
    data = (resources.files("konverge_resolution._internal.signatures") / "tekton_types.json").read_bytes()
    types = msgspec.json.decode(data, type=dict[str, list[str]])
    return {name: tuple(map(_parse_member, members)) for name, members in types.items()}


def _parse_member(text: str) -> _Member:
    """Parse ``name type``; ``?`` after the name is ``omitempty``; ``??`` too, but older versions write the member."""
    name, _, kind = text.partition(" ")
    return _Member(name.rstrip("?"), kind, name.endswith("?"), name.endswith("??"))

"""Validation of ConfigMaps and Secrets. Messages never contain their values."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import msgspec

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.validation.containers import validate_config_key
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_required,
    field_too_long,
)

__all__ = ["validate_config_map", "validate_configuration_update", "validate_secret"]

_SIZE_LIMIT = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
_NEEDED_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT = "kubernetes.io/service-account.name"


def validate_config_map(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a ConfigMap."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in sorted(data):
        for detail in validate_config_key(key):
            yield field_invalid(f"data[{key}]", key, detail)
        if key in binary:
            yield field_invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in sorted(binary):
        for detail in validate_config_key(key):
            yield field_invalid(f"binaryData[{key}]", key, detail)
    size = sum(len(value.encode()) for value in data.values()) + sum(
        _compute_decoded_size(value) for value in binary.values()
    )
    if size > _SIZE_LIMIT:
        yield field_too_long("", _SIZE_LIMIT)


def validate_secret(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a Secret."""
    data, kind = obj.get("data") or {}, obj.get("type", "")
    for key in sorted(data):
        for detail in validate_config_key(key):
            yield field_invalid(f"data[{key}]", key, detail)
    if sum(_compute_decoded_size(value) for value in data.values()) > _SIZE_LIMIT:
        yield field_too_long("data", _SIZE_LIMIT)
    for key in _NEEDED_KEYS.get(kind, ()):
        if key not in data or (key == "ssh-privatekey" and not data[key]):
            yield field_required(f"data[{key}]")
        elif key.startswith(".docker") and not _is_json(data[key]):
            yield field_invalid(f"data[{key}]", "<secret contents redacted>", "the value is not JSON")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield field_required("data[username]")
        yield field_required("data[password]")
    annotations = obj["metadata"].get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(_ACCOUNT):
        yield field_required(f"metadata.annotations[{_ACCOUNT}]")


def validate_configuration_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield an error for each changed immutable field; the type of a Secret is always immutable."""
    if old.get("type") != new.get("type"):
        yield field_invalid("type", new.get("type", ""), IMMUTABLE)
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield field_forbidden("immutable", _FROZEN)
    for name in ("data", "binaryData"):
        if (old.get(name) or {}) != (new.get(name) or {}):
            yield field_forbidden(name, _FROZEN)


def _compute_decoded_size(value: str) -> int:
    return len(value) * 3 // 4


def _is_json(value: str) -> bool:
    try:
        msgspec.json.decode(base64.b64decode(value))
    except (ValueError, msgspec.DecodeError):
        return False
    return True

"""Users and passwords of registries in Secrets; each is for exactly the registry of its entry. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference, normalize_registry

__all__ = ["RegistryLogin", "find_login"]

_KEYS = (".dockerconfigjson", ".dockercfg", "config.json")
_LEGACY_PATHS = ("", "v1", "v2")
_MAX_ENTRIES = 1000


@dataclass(frozen=True, slots=True)
class RegistryLogin:
    """User and password for a registry; the representation contains neither."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def find_login(image: ImageReference, secret: Mapping[str, bytes]) -> RegistryLogin | None:
    """Return the user and password of a Secret for an image; None if it has none.

    The Secret has the format of ``kubernetes.io/dockerconfigjson`` or ``kubernetes.io/dockercfg``. Host and port must
    be equal. A path (``registry.example.com/team``) must be a prefix of the image's path; the longest one is used.
    There are no patterns: a pattern that is too wide would send a password to another registry.

    Args:
        image: The image.
        secret: The data of the Secret.
    """
    logins: list[tuple[int, RegistryLogin]] = []
    for name, entry in _parse_entries(secret):
        if (length := _match_length(name, image)) is not None and (login := _parse_login(entry)) is not None:
            logins.append((length, login))
    return max(logins, key=lambda item: item[0])[1] if logins else None


def _parse_entries(secret: Mapping[str, bytes]) -> list[tuple[str, Any]]:
    for key in _KEYS:
        if key not in secret:
            continue
        try:
            document: Any = msgspec.json.decode(secret[key])
        except DECODE_ERRORS:
            continue  # handled as a Secret without entries: a message must not describe its content
        listed = document.get("auths") if isinstance(document, dict) and key != ".dockercfg" else document
        if isinstance(listed, dict):
            return list(listed.items())[:_MAX_ENTRIES]
    return []


def _match_length(name: str, image: ImageReference) -> int | None:
    """Return the number of path segments that an entry matches; None if it is for another registry or path."""
    host, _, path = name.removeprefix("https://").removeprefix("http://").partition("/")
    path = path.strip("/")
    try:
        if normalize_registry(host) != image.registry:
            return None
    except ValueError:
        return None
    if path in _LEGACY_PATHS:
        return 0
    parts, whole = path.split("/"), image.repository.split("/")
    return len(parts) if whole[: len(parts)] == parts else None


def _parse_login(entry: Any) -> RegistryLogin | None:
    if not isinstance(entry, dict):
        return None
    user, password, encoded = (entry.get(key) or "" for key in ("username", "password", "auth"))
    if not (user or password) and isinstance(encoded, str):
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
    if not isinstance(user, str) or not isinstance(password, str) or not user or ":" in user:
        return None
    return RegistryLogin(user, password) if user.isprintable() and password.isprintable() else None

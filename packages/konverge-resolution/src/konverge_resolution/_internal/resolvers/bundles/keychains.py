"""Which user and password of Secrets are for a registry: exactly the one they name. Pure."""

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
    """A user and a password; its text shows neither."""

    user: str = field(repr=False)
    password: str = field(repr=False)


def find_login(image: ImageReference, secret: Mapping[str, bytes]) -> RegistryLogin | None:
    """The user and password that a Secret has for an image; None for none.

    Its entries are those of ``kubernetes.io/dockerconfigjson`` and ``kubernetes.io/dockercfg``. Host and port have to
    be the very same, and a path (``registry.example.com/team``) the beginning of the image's; the longest one counts.
    There are no patterns: one that is too wide sends a password to somebody else.

    Args:
        image: The image.
        secret: The data of the Secret.
    """
    found: list[tuple[int, RegistryLogin]] = []
    for name, entry in _parse_entries(secret):
        if (length := _match_length(name, image)) is not None and (login := _parse_login(entry)) is not None:
            found.append((length, login))
    return max(found, key=lambda each: each[0])[1] if found else None


def _parse_entries(secret: Mapping[str, bytes]) -> list[tuple[str, Any]]:
    for key in _KEYS:
        if key not in secret:
            continue
        try:
            document: Any = msgspec.json.decode(secret[key])
        except DECODE_ERRORS:
            continue  # told as a Secret without an entry: its content is nobody's business
        listed = document.get("auths") if isinstance(document, dict) and key != ".dockercfg" else document
        if isinstance(listed, dict):
            return list(listed.items())[:_MAX_ENTRIES]
    return []


def _match_length(name: str, image: ImageReference) -> int | None:
    """How many parts of the image's path an entry names; None when it is for something else."""
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

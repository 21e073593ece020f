"""Logins for registries from the auth files of docker and podman, and from the credential helpers that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference, normalize_registry
from konverge_resolution._internal.resolvers.bundles.keychains import find_login
from konverge_resolution._internal.source_prefix import DOCKER_HUB
from konverge_resolution._internal.user_access import UserLogin
from konverge_resolution._internal.user_credentials.helper_programs import run_helper
from konverge_resolution._internal.user_credentials.user_files import (
    UnusableCredentialError,
    find_home,
    format_path,
    read_user_file,
)

__all__ = ["find_file_login", "list_auth_files"]

_HELPER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_HUB_KEY = "https://index.docker.io/v1/"
"""Name of Docker Hub in the stores of helpers."""
_IDENTITY_TOKEN = "<token>"
"""User name of helpers for a token that is exchanged for another one and is no password."""
_NOT_FOUND = "credentials not found"


def list_auth_files(environment: Mapping[str, str]) -> list[Path]:
    """Return the auth files of docker and podman in the order of their use; they need not exist."""
    home = find_home(environment)
    docker = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    settings = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    files = [docker / "config.json", settings / "containers" / "auth.json"]
    if runtime := environment.get("XDG_RUNTIME_DIR"):
        files.insert(1, Path(runtime) / "containers" / "auth.json")
    if named := environment.get("REGISTRY_AUTH_FILE"):
        files.insert(0, Path(named))
    return files


async def find_file_login(file: Path, image: ImageReference, environment: Mapping[str, str]) -> UserLogin | None:
    """Return the login of one auth file for an image, from a helper that it names or from its entries; None for none.

    Args:
        file: The auth file.
        image: The image; only its registry and repository count.
        environment: The user's environment.

    Raises:
        UnusableCredentialError: The file or its helper cannot be used.
    """
    name = format_path(file, find_home(environment))
    data = read_user_file(file, name)
    if data is None:
        return None
    try:
        document: Any = msgspec.json.decode(data)
    except DECODE_ERRORS:
        raise UnusableCredentialError(f"{name}: expected JSON, found another format") from None
    if not isinstance(document, dict):
        raise UnusableCredentialError(f"{name}: expected an object, found another type")
    if helper := _find_helper(document, image.registry, name):
        login = await _ask_helper(helper, image.registry, environment, name)
        if login is not None:
            return login
    entry = find_login(image, {"config.json": data})
    return None if entry is None else UserLogin(entry.user, entry.password, name)


def _find_helper(document: Mapping[str, Any], registry: str, file: str) -> str:
    """Return the helper for a registry; empty for none.

    Raises:
        UnusableCredentialError: Its name is not the name of a helper.
    """
    listed = document.get("credHelpers")
    names = [name for key, name in _iter_members(listed) if _normalize(key) == registry]
    helper = names[0] if names else document.get("credsStore")
    if helper in (None, ""):
        return ""
    if not isinstance(helper, str) or not _HELPER.fullmatch(helper):
        # A name with a slash would be a program anywhere.
        raise UnusableCredentialError(f"{file}: expected the name of a credential helper, found another text")
    return helper


def _iter_members(value: Any) -> Iterator[tuple[str, Any]]:
    yield from value.items() if isinstance(value, dict) else ()


def _normalize(key: str) -> str:
    try:
        return normalize_registry(key.removeprefix("https://").removeprefix("http://").partition("/")[0])
    except ValueError:
        return ""


async def _ask_helper(helper: str, registry: str, environment: Mapping[str, str], file: str) -> UserLogin | None:
    program = f"docker-credential-{helper}"
    name = f"{program} (of {file})"
    key = _HUB_KEY if registry == DOCKER_HUB else registry
    output = await run_helper([program, "get"], key, environment=environment, name=name)
    if output.status:
        if _NOT_FOUND in output.text[:200]:
            return None
        raise UnusableCredentialError(f"{name}: failed with status {output.status}")
    try:
        answer: Any = msgspec.json.decode(output.text)
    except DECODE_ERRORS:
        answer = None
    if not isinstance(answer, dict) or not {"Username", "Secret"} <= answer.keys():
        raise UnusableCredentialError(f"{name}: expected JSON with Username and Secret, found another output")
    user, secret = answer["Username"], answer["Secret"]
    if user == _IDENTITY_TOKEN:
        raise UnusableCredentialError(f"{name}: expected a password, found an identity token, which is not supported")
    if not (isinstance(user, str) and isinstance(secret, str) and user and secret) or ":" in user:
        return None
    if not (user.isprintable() and secret.isprintable()):
        raise UnusableCredentialError(f"{name}: expected a user and a password in one line each, found others")
    return UserLogin(user, secret, name)

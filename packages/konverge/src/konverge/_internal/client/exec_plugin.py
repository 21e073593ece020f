"""Exec plug-ins: programs that print credentials (client.authentication.k8s.io, v1 and v1beta1). Pure.

A kubeconfig names the program. It receives the cluster in ``KUBERNETES_EXEC_INFO`` and prints an ``ExecCredential``
with a token, a client certificate, or both. `client.exec_credentials` runs it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from konverge._internal.client.credential_renewer import IssuedIdentity
from konverge._internal.client.credentials import Identity
from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge._internal.client.redaction import find_secret_values, redact
from konverge._internal.kube import Object
from konverge.errors import ConfigurationError

__all__ = ["ExecPlugin", "encode_exec_info", "parse_exec_credential", "parse_exec_plugin", "redact_stderr"]

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_MODES = ("Never", "IfAvailable", "Always")

_MAX_STDERR = 400

_SECRET_OPTION = re.compile(r"(?i)(secret|token|password|passphrase|key)")


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A program that prints credentials.

    Args:
        user: The user of the credentials, for messages: ``user "ann" of /home/ann/.kube/config``.
        command: The program: a name to look up in ``PATH``, or a path.
        arguments: The arguments of the program.
        environment: The whole environment of the program.
        api_version: The version of the protocol.
        install_hint: Instructions for the installation of the program.
        interactive_mode: ``Never``, ``IfAvailable`` or ``Always``: whether the program uses the terminal.
        cluster: The cluster to pass to the program; None to pass none.
        secrets: Values that messages must not contain.
    """

    user: str
    command: str
    arguments: tuple[str, ...] = field(default=(), repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    api_version: str = _VERSIONS[0]
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Object | None = field(default=None, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)

    @property
    def name(self) -> str:
        """The name of the plug-in for messages."""
        return f"the credential plug-in {self.command} of {self.user}"


def parse_exec_plugin(
    fields: Mapping[str, Any], *, whose: str, folder: Path, env: Mapping[str, str], cluster: Object
) -> ExecPlugin:
    """Parse the ``exec`` section of a kubeconfig.

    Args:
        fields: The fields of the section.
        whose: The user of the credentials, for messages.
        folder: The folder of the kubeconfig: a relative path of a command is relative to it.
        env: The environment to which the program's variables are added.
        cluster: The cluster to pass to the program if the section requests it.

    Raises:
        konverge.errors.ConfigurationError: The section is invalid.
    """
    command = str(fields.get("command") or "")
    where = f"the exec plug-in of {whose}"
    if not command:
        raise ConfigurationError(f"{where} has no command")
    api_version = str(fields.get("apiVersion") or "")
    if api_version not in _VERSIONS:
        finding = f'found "{api_version}"' if api_version else "found none"
        raise ConfigurationError(
            f"{where} ({command}): apiVersion: expected {' or '.join(_VERSIONS)}, {finding}. Update the plug-in"
        )
    mode = str(fields.get("interactiveMode") or "")
    if mode not in _MODES and (mode or api_version == _VERSIONS[0]):
        finding = f'found "{mode}"' if mode else "found none; v1 requires it"
        raise ConfigurationError(
            f"{where} ({command}): interactiveMode: expected one of {', '.join(_MODES)}, {finding}"
        )
    arguments = tuple(map(str, _read_list(fields, "args", where)))
    added = {}
    for entry in _read_list(fields, "env", where):
        if not isinstance(entry, Mapping) or not entry.get("name"):
            raise ConfigurationError(f"{where} ({command}): env: expected entries with a name and a value")
        added[str(entry["name"])] = str(entry.get("value") or "")
    environment = {**env, **added}
    if not all(map(_is_valid_argument, (command, *arguments, *environment, *environment.values()))) or "=" in "".join(
        added
    ):
        raise ConfigurationError(
            f"{where} ({_to_one_line(command)}): command, args or env: expected text without NUL and other invalid "
            "characters, and names in env without ="
        )
    plugin = ExecPlugin(
        user=whose,
        command=str(folder / command) if os.sep in command else command,
        arguments=arguments,
        environment=environment,
        api_version=api_version,
        install_hint=_to_one_line(str(fields.get("installHint") or "")),
        interactive_mode=mode or "IfAvailable",
        cluster=cluster if fields.get("provideClusterInfo") is True else None,
        secrets=frozenset((*_find_secret_arguments(arguments), *added.values(), *find_secret_values(environment))),
    )
    try:
        encode_exec_info(plugin, interactive=False)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise ConfigurationError(
            f"{where} ({command}): the cluster's extension cannot be encoded as JSON for the program"
        ) from None
    return plugin


def encode_exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    """Encode the ``KUBERNETES_EXEC_INFO`` for the program.

    Args:
        plugin: The program.
        interactive: Whether the program has the terminal.
    """
    spec: Object = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    info = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(info).decode()


def parse_exec_credential(plugin: ExecPlugin, output: bytes) -> IssuedIdentity:
    """Parse the ``ExecCredential`` that the program printed.

    Raises:
        konverge.errors.ConfigurationError: The output is invalid. The message quotes no value.
    """
    try:
        credential = msgspec.json.decode(output, type=dict)
    except DECODE_ERRORS:
        raise ConfigurationError(f"{plugin.name} printed invalid output: expected JSON") from None
    if credential.get("kind") != "ExecCredential" or credential.get("apiVersion") != plugin.api_version:
        raise ConfigurationError(
            f"{plugin.name} printed invalid output: expected an ExecCredential of {plugin.api_version}, found kind "
            f"{_format_value(credential.get('kind'))}, apiVersion {_format_value(credential.get('apiVersion'))}"
        )
    status = credential.get("status")
    status = status if isinstance(status, Mapping) else {}
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if bool(certificate) != bool(key):
        one, other = ("clientCertificateData", "clientKeyData") if certificate else ("clientKeyData", "a certificate")
        raise ConfigurationError(f"{plugin.name} printed {one} without {other}")
    if not (token or certificate):
        raise ConfigurationError(f"{plugin.name} printed neither a token nor a client certificate")
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError(f"{plugin.name} printed an invalid token: expected printable ASCII characters")
    headers = Identity.from_token(token).headers if token else {}
    identity = Identity(headers, certificate.encode(), key.encode())
    return IssuedIdentity(identity, _parse_expiration(plugin, status.get("expirationTimestamp")))


def _parse_expiration(plugin: ExecPlugin, value: object) -> datetime | None:
    if not value:
        return None
    try:
        expiration = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        raise ConfigurationError(
            f"{plugin.name} printed an invalid expirationTimestamp: expected a time of RFC 3339, "
            f"found {_format_value(value)}"
        ) from None
    return expiration if expiration.tzinfo is not None else expiration.replace(tzinfo=UTC)


def redact_stderr(stderr: bytes, plugin: ExecPlugin) -> str:
    """Return the end of a program's standard error, on one line and without secrets."""
    text = _to_one_line(redact(stderr.decode("utf-8", "replace"), plugin.secrets))
    return text if len(text) <= _MAX_STDERR else f"... {text[-_MAX_STDERR:]}"


def _find_secret_arguments(arguments: tuple[str, ...]) -> list[str]:
    """Find the values of options with a secret name: ``--client-secret=x`` and ``--client-secret x``."""
    values = []
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if not (option.startswith("-") and _SECRET_OPTION.search(option)):
            continue
        if equals:
            values.append(value)
        elif position + 1 < len(arguments):
            values.append(arguments[position + 1])
    return values


def _is_valid_argument(text: str) -> bool:
    """Return True if the text is valid as an argument or a variable of a program."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _to_one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _format_value(value: object) -> str:
    return f'"{_to_one_line(str(value))[:80]}"' if value is not None else "none"


def _read_list(fields: Mapping[str, Any], name: str, where: str) -> list[Any]:
    entries = fields.get(name)
    if entries is None:
        return []
    if not isinstance(entries, list):
        raise ConfigurationError(f"{where}: {name}: expected a list")
    return entries

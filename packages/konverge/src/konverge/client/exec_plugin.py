"""Programs that print credentials: exec plug-ins (client.authentication.k8s.io, v1 and v1beta1). Pure.

A kubeconfig names the program. It learns of the cluster in ``KUBERNETES_EXEC_INFO`` and prints an ``ExecCredential``
with a token, a client certificate, or both. `konverge.client.exec_credentials` runs it.
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

from konverge.client.credential_renewer import IssuedIdentity
from konverge.client.credentials import Identity
from konverge.client.json_decoding import DECODE_ERRORS
from konverge.client.redaction import find_secret_values, redact
from konverge.errors import ConfigurationError
from konverge.kube import Object

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
        user: Whose credentials they are, for messages: ``user "ann" of /home/ann/.kube/config``.
        command: The program: a name to look up in ``PATH``, or a path.
        arguments: Its arguments.
        environment: All of its environment.
        api_version: The version in which both speak.
        install_hint: How to come by the program.
        interactive_mode: ``Never``, ``IfAvailable`` or ``Always``: whether it wants the terminal.
        cluster: The cluster, for who wants to know; None for who does not.
        secrets: Values that no message may hold.
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
        """What it is, for messages."""
        return f"the credential plug-in {self.command} of {self.user}"


def parse_exec_plugin(
    fields: Mapping[str, Any], *, whose: str, folder: Path, env: Mapping[str, str], cluster: Object
) -> ExecPlugin:
    """Read a kubeconfig's ``exec``.

    Args:
        fields: What it says.
        whose: Whose credentials they are, for messages.
        folder: Where the kubeconfig is: a command that is a relative path is relative to that.
        env: The environment that the program's is added to.
        cluster: What the program is told of the cluster if it wants to know.

    Raises:
        konverge.errors.ConfigurationError: It cannot be used.
    """
    command = str(fields.get("command") or "")
    where = f"the exec plug-in of {whose}"
    if not command:
        raise ConfigurationError(f"{where} has no command")
    api_version = str(fields.get("apiVersion") or "")
    if api_version not in _VERSIONS:
        found = f'found "{api_version}"' if api_version else "there is none"
        raise ConfigurationError(
            f"{where} ({command}): apiVersion must be {' or '.join(_VERSIONS)} ({found}). Update the plug-in"
        )
    mode = str(fields.get("interactiveMode") or "")
    if mode not in _MODES and (mode or api_version == _VERSIONS[0]):
        found = f'found "{mode}"' if mode else "it must be said in v1"
        raise ConfigurationError(f"{where} ({command}): interactiveMode must be one of {', '.join(_MODES)} ({found})")
    arguments = tuple(map(str, _read_list(fields, "args", where)))
    added = {}
    for entry in _read_list(fields, "env", where):
        if not isinstance(entry, Mapping) or not entry.get("name"):
            raise ConfigurationError(f"{where} ({command}): each of env must have a name and a value")
        added[str(entry["name"])] = str(entry.get("value") or "")
    environment = {**env, **added}
    if not all(map(_is_valid_argument, (command, *arguments, *environment, *environment.values()))) or "=" in "".join(
        added
    ):
        raise ConfigurationError(
            f"{where} ({_to_one_line(command)}): command, args and env must hold no NUL and "
            "nothing else that no program "
            "can be given, and a name of env no ="
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
            f"{where} ({command}): what it is to be told of the cluster cannot be written as JSON"
        ) from None
    return plugin


def encode_exec_info(plugin: ExecPlugin, *, interactive: bool) -> str:
    """What the program finds in ``KUBERNETES_EXEC_INFO``.

    Args:
        plugin: The program.
        interactive: Whether it has the terminal.
    """
    spec: Object = {"interactive": interactive}
    if plugin.cluster is not None:
        spec["cluster"] = plugin.cluster
    told = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    return msgspec.json.encode(told).decode()


def parse_exec_credential(plugin: ExecPlugin, printed: bytes) -> IssuedIdentity:
    """Read the ``ExecCredential`` that the program has printed.

    Raises:
        konverge.errors.ConfigurationError: It is none. The message says what is wrong with it and quotes no value.
    """
    try:
        found = msgspec.json.decode(printed, type=dict)
    except DECODE_ERRORS:
        raise ConfigurationError(f"{plugin.name} printed something that is not JSON") from None
    if found.get("kind") != "ExecCredential" or found.get("apiVersion") != plugin.api_version:
        raise ConfigurationError(
            f"{plugin.name} must print an ExecCredential of {plugin.api_version} "
            f"(found kind {_format_value(found.get('kind'))}, apiVersion {_format_value(found.get('apiVersion'))})"
        )
    status = found.get("status")
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
        raise ConfigurationError(f"{plugin.name} printed a token with characters that no token has")
    headers = Identity.from_token(token).headers if token else {}
    identity = Identity(headers, certificate.encode(), key.encode())
    return IssuedIdentity(identity, _parse_expiration(plugin, status.get("expirationTimestamp")))


def _parse_expiration(plugin: ExecPlugin, written: object) -> datetime | None:
    if not written:
        return None
    try:
        found = msgspec.convert(written, datetime)
    except msgspec.ValidationError:
        raise ConfigurationError(
            f"{plugin.name} printed an expirationTimestamp that is no time of RFC 3339 (found {_format_value(written)})"
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def redact_stderr(complaint: bytes, plugin: ExecPlugin) -> str:
    """The end of what a program had to say, on one line, without what must stay secret."""
    text = _to_one_line(redact(complaint.decode("utf-8", "replace"), plugin.secrets))
    return text if len(text) <= _MAX_STDERR else f"... {text[-_MAX_STDERR:]}"


def _find_secret_arguments(arguments: tuple[str, ...]) -> list[str]:
    """The values of options whose names say that they are secret: ``--client-secret=x`` and ``--client-secret x``."""
    found = []
    for position, argument in enumerate(arguments):
        option, equals, value = argument.partition("=")
        if not (option.startswith("-") and _SECRET_OPTION.search(option)):
            continue
        if equals:
            found.append(value)
        elif position + 1 < len(arguments):
            found.append(arguments[position + 1])
    return found


def _is_valid_argument(text: str) -> bool:
    """Tell whether a program can be given it as an argument or a variable."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _to_one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def _format_value(found: object) -> str:
    return f'"{_to_one_line(str(found))[:80]}"' if found is not None else "nothing"


def _read_list(fields: Mapping[str, Any], name: str, where: str) -> list[Any]:
    found = fields.get(name)
    if found is None:
        return []
    if not isinstance(found, list):
        raise ConfigurationError(f"{where}: {name} must be a list")
    return found

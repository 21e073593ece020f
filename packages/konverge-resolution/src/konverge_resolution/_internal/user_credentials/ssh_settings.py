"""The user's settings of ssh for one host, as ``ssh -G`` prints them: name, agent, keys and host keys."""

from __future__ import annotations

from collections.abc import Mapping

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.user_access import SshAccess
from konverge_resolution._internal.user_credentials.helper_programs import run_helper
from konverge_resolution._internal.user_credentials.user_files import UnusableCredentialError

__all__ = ["read_ssh_access"]

_SOURCE = "the ssh configuration of this user"
_NONE = ("", "none")
_DETOURS = {"proxyjump": "ProxyJump", "proxycommand": "ProxyCommand"}


async def read_ssh_access(host: str, port: int, user: str, environment: Mapping[str, str]) -> SshAccess:
    """Return what the user's ssh would use for a host.

    Args:
        host: The host of the reference; the configuration may have another name for it.
        port: The port of the reference; 22 leaves it to the configuration.
        user: The user of the reference; empty leaves it to the configuration.
        environment: The user's environment.

    Raises:
        UnusableCredentialError: There is no ssh, or its configuration cannot be read.
        ResolutionError: ``InvalidConfiguration``: the configuration requires a detour, whose addresses nobody checks.
    """
    command = ["ssh", "-G", *(["-p", str(port)] if port != 22 else []), *(["-l", user] if user else []), "--", host]
    output = await run_helper(command, "", environment=environment, name=_SOURCE)
    if output.status:
        raise UnusableCredentialError(f"{_SOURCE}: ssh -G failed with status {output.status}")
    settings: dict[str, list[str]] = {}
    for line in output.text.splitlines():
        name, _, value = line.partition(" ")
        settings.setdefault(name.lower(), []).append(value.strip())
    for name, option in _DETOURS.items():
        if settings.get(name, [""])[0] not in _NONE:
            message = f"{_SOURCE} for host {host} has {option}, which konverge does not follow: it checks each address"
            raise ResolutionError(
                Reason.INVALID_CONFIGURATION, f"{message}; use https, or a key with parameter 'gitSSHSecret'"
            )
    return _build_access(settings, host, port, user, environment)


def _build_access(
    settings: Mapping[str, list[str]], host: str, port: int, user: str, environment: Mapping[str, str]
) -> SshAccess:
    def first(name: str) -> str:
        return settings.get(name, [""])[0]

    agent = first("identityagent") or "SSH_AUTH_SOCK"
    if agent == "SSH_AUTH_SOCK":
        agent = environment.get("SSH_AUTH_SOCK", "")
    known_hosts = [file for name in ("userknownhostsfile", "globalknownhostsfile") for file in first(name).split()]
    configured_port = first("port")
    return SshAccess(
        host=first("hostname") or host,
        port=int(configured_port) if configured_port.isdecimal() else port,
        user=user or first("user"),
        agent="" if agent == "none" else agent,
        identity_files=tuple(settings.get("identityfile", ())),
        known_hosts_files=tuple(file for file in known_hosts if file not in _NONE),
        host_key_alias=first("hostkeyalias"),
        is_limited_to_files=first("identitiesonly") == "yes",
        source=_SOURCE,
    )

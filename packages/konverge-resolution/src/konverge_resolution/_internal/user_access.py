"""Credentials that the user of a command already has, for references without a Secret: the interface for resolvers.

In a cluster there are none. On the command line `konverge_resolution._internal.user_credentials` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["SshAccess", "UserCredentials", "UserLogin"]


@dataclass(frozen=True, slots=True)
class UserLogin:
    """User and password for one host; the representation contains neither.

    Args:
        user: The user name.
        password: The password or token.
        source: The place where it was found, for messages: ``~/.netrc``.
    """

    user: str = field(repr=False)
    password: str = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class SshAccess:
    """Means of the user's ssh to reach one host.

    Args:
        host: The host to connect to; another one than in the reference if the user's configuration renames it.
        port: The port.
        user: The user name on that host.
        agent: The socket of the agent; empty for none.
        identity_files: Files with private keys, as ssh spells them.
        known_hosts_files: Files with host keys, as ssh spells them.
        host_key_alias: The name of the host in those files; empty for the host itself.
        is_limited_to_files: Whether only the keys of these files are offered, and no others of the agent.
        source: The place where it was found, for messages.
    """

    host: str
    port: int
    user: str
    agent: str
    identity_files: tuple[str, ...]
    known_hosts_files: tuple[str, ...]
    host_key_alias: str
    is_limited_to_files: bool
    source: str


class UserCredentials(Protocol):
    """Credentials of the user of a command. Each is for one host, and only hosts that the user named have any."""

    def recall_login(self, uri: str) -> UserLogin | None:
        """Return the login that was found for exactly this source before; None without one."""

    async def find_registry_login(self, uri: str) -> UserLogin | None:
        """Return the login for a repository of a registry, ``oci://example.com/team/boxes``; None without one."""

    async def find_git_login(self, uri: str) -> UserLogin | None:
        """Return the login for a repository over HTTP, ``git+https://example.com/team/boxes``; None without one."""

    async def find_http_login(self, uri: str) -> UserLogin | None:
        """Return the login for a file, ``https://example.com/box.yaml``; None without one."""

    async def find_ssh_access(self, host: str, port: int, user: str) -> SshAccess | None:
        """Return the means of the user's ssh to reach a host; None if they must not be used for it.

        Args:
            host: The host of the reference.
            port: Its port.
            user: Its user; empty for that of the user's configuration.

        Raises:
            konverge_resolution.ResolutionError: ``InvalidConfiguration``: the user's configuration requires something
                that konverge does not do for this host, such as a connection through another host.
        """

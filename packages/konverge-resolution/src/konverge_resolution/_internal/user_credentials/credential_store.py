"""Lookup of credentials in all places of the user, for the hosts that the user named."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference
from konverge_resolution._internal.user_access import SshAccess, UserLogin
from konverge_resolution._internal.user_credentials.git_logins import SOURCE, find_helper_login
from konverge_resolution._internal.user_credentials.netrc_logins import find_netrc_login, get_netrc_file
from konverge_resolution._internal.user_credentials.registry_logins import find_file_login, list_auth_files
from konverge_resolution._internal.user_credentials.ssh_settings import read_ssh_access
from konverge_resolution._internal.user_credentials.user_files import (
    UnusableCredentialError,
    find_home,
    format_path,
)

__all__ = ["UserCredentialStore"]

_log = logging.getLogger("konverge.resolution")


class UserCredentialStore:
    """Credentials of one user (`user_access.UserCredentials`), for one command, which looks up each source once.

    A definition or a lock file from somebody else can name any host. So a host that the user has not named
    (`permit_source`) receives no credential.

    Args:
        environment: The user's environment; that of this process when None.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._environment = dict(os.environ if environment is None else environment)
        self._home = find_home(self._environment)
        self._permitted: set[str] = set()
        self._logins: dict[str, UserLogin | None] = {}
        self._reported: set[str] = set()

    def permit_source(self, uri: str) -> None:
        """Permit credentials for the host of a reference that the user gave.

        Args:
            uri: The address of its source: ``git+https://example.com/team/boxes``.
        """
        self._permitted.add(urlsplit(uri).netloc)

    def recall_login(self, uri: str) -> UserLogin | None:
        """Return the login that was found for exactly this source before; None without one."""
        return self._logins.get(uri)

    async def find_registry_login(self, uri: str) -> UserLogin | None:
        """Return the login of the first auth file that has one; None without one."""
        if uri in self._logins or not self._is_permitted(uri):
            return self._logins.get(uri)
        parts = urlsplit(uri)
        image = ImageReference(parts.netloc, parts.path.removeprefix("/"))
        files = list_auth_files(self._environment)
        for file in files:
            try:
                login = await find_file_login(file, image, self._environment)
            except UnusableCredentialError as error:
                self._warn(error)
                continue
            if login is not None:
                return self._record(uri, login)
        self._record_absence(uri, *(format_path(file, self._home) for file in files))
        return None

    async def find_git_login(self, uri: str) -> UserLogin | None:
        """Return the login of git's helpers, then of netrc; None without one."""
        if uri in self._logins or not self._is_permitted(uri):
            return self._logins.get(uri)
        try:
            login = await find_helper_login(uri.removeprefix("git+"), self._environment)
        except UnusableCredentialError as error:
            self._warn(error)
            login = None
        login = login or self._find_netrc_login(uri)
        if login is not None:
            return self._record(uri, login)
        self._record_absence(uri, SOURCE, self._name_netrc())
        return None

    async def find_http_login(self, uri: str) -> UserLogin | None:
        """Return the login of netrc; None without one."""
        if uri in self._logins or not self._is_permitted(uri):
            return self._logins.get(uri)
        login = self._find_netrc_login(uri)
        if login is not None:
            return self._record(uri, login)
        self._record_absence(uri, self._name_netrc())
        return None

    async def find_ssh_access(self, host: str, port: int, user: str) -> SshAccess | None:
        """Return the agent, the keys and the host keys of the user's ssh for a host; None if it is not permitted.

        Raises:
            ResolutionError: ``InvalidConfiguration``: the user's configuration requires a detour.
        """
        name = f"[{host}]" if ":" in host else host
        if not self._is_permitted(f"ssh://{name if port == 22 else f'{name}:{port}'}"):
            return None
        try:
            access = await read_ssh_access(host, port, user, self._environment)
        except UnusableCredentialError as error:
            self._warn(error)
            return None
        agent = "agent and keys" if access.agent else "keys"
        _log.debug("credentials for %s: %s of %s", host, agent, access.source)
        return access

    def _is_permitted(self, uri: str) -> bool:
        host = urlsplit(uri).netloc
        if host in self._permitted:
            return True
        _log.debug("credentials for %s: none are sent, because no reference of the command names this host", host)
        return False

    def _find_netrc_login(self, uri: str) -> UserLogin | None:
        try:
            return find_netrc_login(urlsplit(uri).hostname or "", self._environment)
        except UnusableCredentialError as error:
            self._warn(error)
            return None

    def _name_netrc(self) -> str:
        return format_path(get_netrc_file(self._environment), self._home)

    def _record(self, uri: str, login: UserLogin) -> UserLogin:
        _log.debug("credentials for %s: found in %s", urlsplit(uri).netloc, login.source)
        self._logins[uri] = login
        return login

    def _record_absence(self, uri: str, *places: str) -> None:
        self._logins[uri] = None
        _log.debug("credentials for %s: none in %s", urlsplit(uri).netloc, ", ".join(places))

    def _warn(self, error: UnusableCredentialError) -> None:
        """Report an unusable place once."""
        if str(error) not in self._reported:
            self._reported.add(str(error))
            _log.warning("%s", error)

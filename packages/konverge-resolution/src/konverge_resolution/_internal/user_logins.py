"""Credentials of a command's user in resolvers: looked up when a source requires one, sent only where they may go."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from konverge_resolution._internal.credential_hosts import CredentialDestination, check_host
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import FetchRequest
from konverge_resolution._internal.user_access import UserCredentials, UserLogin

__all__ = ["find_user_login", "name_user_login_in_errors", "recall_user_login"]

_CREDENTIAL = "the credential of the request"
"""Words of every message about a refused credential."""


async def find_user_login(
    fetch: FetchRequest,
    destination: CredentialDestination,
    find: Callable[[UserCredentials], Awaitable[UserLogin | None]],
) -> UserLogin | None:
    """Return a login of the user for a server that requires one; None without one.

    Args:
        fetch: The resolution.
        destination: The server.
        find: Finds it among the credentials of the user.

    Raises:
        ResolutionError: ``Denied``: the server has no TLS, or the settings do not permit credentials for it.
    """
    credentials = fetch.services.user_credentials
    if credentials is None:
        return None
    fetch.services.progress.enter("looking up a credential for", destination.authority)
    login = await find(credentials)
    if login is not None:
        _check_destination(fetch, destination, login)
    return login


def recall_user_login(fetch: FetchRequest, destination: CredentialDestination, uri: str) -> UserLogin | None:
    """Return the login that `find_user_login` found for the source before; None without one.

    Args:
        fetch: The resolution.
        destination: The server.
        uri: The address of the source.

    Raises:
        ResolutionError: As `find_user_login`.
    """
    credentials = fetch.services.user_credentials
    login = None if credentials is None else credentials.recall_login(uri)
    if login is not None:
        _check_destination(fetch, destination, login)
    return login


def _check_destination(fetch: FetchRequest, destination: CredentialDestination, login: UserLogin) -> None:
    try:
        check_host(destination, {}, fetch.settings)
    except ResolutionError as error:
        raise error.with_message(f"{error.message} (found in {login.source})") from None


@contextmanager
def name_user_login_in_errors(fetch: FetchRequest, uri: str) -> Iterator[None]:
    """Add the place of a login of the user to errors of the block that report it as refused.

    Args:
        fetch: The resolution.
        uri: The address of the source.
    """
    try:
        yield
    except ResolutionError as error:
        credentials = fetch.services.user_credentials
        login = None if credentials is None else credentials.recall_login(uri)
        if login is None or error.reason is not Reason.DENIED:
            raise
        raise error.with_message(error.message.replace(_CREDENTIAL, f"{_CREDENTIAL} (from {login.source})")) from None

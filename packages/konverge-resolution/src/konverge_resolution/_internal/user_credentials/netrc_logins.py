"""Logins of ``netrc`` files."""

from __future__ import annotations

import netrc
from collections.abc import Mapping
from pathlib import Path

from konverge_resolution._internal.user_access import UserLogin
from konverge_resolution._internal.user_credentials.user_files import (
    UnusableCredentialError,
    find_home,
    format_path,
    read_user_file,
)

__all__ = ["find_netrc_login", "get_netrc_file"]

_EVERY_HOST = "default"


def get_netrc_file(environment: Mapping[str, str]) -> Path:
    """Return the file: that of ``NETRC``, otherwise ``~/.netrc``."""
    return Path(environment.get("NETRC") or find_home(environment) / ".netrc")


def find_netrc_login(host: str, environment: Mapping[str, str]) -> UserLogin | None:
    """Return the login for a host; None without one. The entry ``default`` is not used: it is for every host.

    Args:
        host: The host without a port.
        environment: The user's environment.

    Raises:
        UnusableCredentialError: The file cannot be read or parsed.
    """
    file = get_netrc_file(environment)
    name = format_path(file, find_home(environment))
    if read_user_file(file, name) is None:
        return None
    try:
        entry = netrc.netrc(str(file)).hosts.get(host)
    except netrc.NetrcParseError as error:
        # Its text can contain a password.
        message = f"{name}: expected the format of netrc, found another in line {error.lineno}"
        raise UnusableCredentialError(message) from None
    except (OSError, UnicodeDecodeError):
        raise UnusableCredentialError(f"{name}: expected text in UTF-8, found another encoding") from None
    if entry is None or host == _EVERY_HOST:
        return None
    user, _, password = entry
    if not user or not password or ":" in user or not (user.isprintable() and password.isprintable()):
        return None
    return UserLogin(user, password, name)

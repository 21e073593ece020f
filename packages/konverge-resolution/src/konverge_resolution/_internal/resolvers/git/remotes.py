"""Addresses of repositories with exactly one reading. Pure.

Git and curl each have several readings of addresses: a leading dash is an option, ``ext::`` a program, ``0x7f.1`` the
machine itself. An accepted address has exactly one reading, which was checked.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from konverge_resolution._internal.parameter_checks import build_param_error

__all__ = ["Remote", "parse_remote"]

_MAX_LENGTH = 2048
_PORTS = {"http": 80, "https": 443, "ssh": 22}
_ADDRESS = re.compile(r"(?P<scheme>[a-z]+)://(?P<authority>[^/]*)(?P<path>/.*)")
_SHORT_SSH = re.compile(r"(?P<user>[^/:@\[\]]+)@(?P<host>[^/:@\[\]]+):(?P<path>[^/].*)")
_AUTHORITY = re.compile(r"(?:(?P<user>[^@]*)@)?(?P<host>\[[^\]]*\]|[^:\[\]@]+)(?::(?P<port>[0-9]{1,5}))?")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_HIDDEN = re.compile(r"%(?:2e|2f|5c|25|[01][0-9a-f]|7f)|%(?![0-9a-f]{2})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Remote:
    """Address of a repository; made by `parse_remote`.

    Args:
        scheme: ``http``, ``https`` or ``ssh``.
        host: A name in lower case or an address, without brackets.
        port: A number.
        path: Begins with a slash; for the short form of ssh, ``user@host:path``, with ``/~/``.
        user: The user of ssh.
    """

    scheme: str
    host: str
    port: int
    path: str
    user: str = ""

    @property
    def authority(self) -> str:
        """Host and port; the default port is omitted."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, to which a credential belongs."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """Address of the repository for git's command line."""
        user = f"{self.user}@" if self.user else ""
        return f"{self.scheme}://{user}{self.authority}{self.path}"

    @property
    def uri(self) -> str:
        """Address for policies and records, without the user of ssh, who is the same for all."""
        return f"git+{self.origin}{self.path.removeprefix('/~')}"

    @property
    def is_address(self) -> bool:
        """Tell whether the host is an address itself."""
        return _parse_address(self.host) is not None


def parse_remote(text: str, *, allows_ssh: bool = False, parameter: str = "url") -> Remote:
    """Parse the address of a repository.

    Args:
        text: ``https://example.com/team/repo.git``; with ssh also ``git@example.com:team/repo.git``.
        allows_ssh: Whether ssh may be used.
        parameter: The name of the parameter in messages.

    Raises:
        ResolutionError: It is not permitted. The message does not repeat it, since it may contain a password.
    """
    schemes = "http, https or ssh" if allows_ssh else "http or https"
    if len(text) > _MAX_LENGTH or any(not "!" <= character <= "~" for character in text) or "\\" in text:
        raise build_param_error(parameter, f"expected at most {_MAX_LENGTH} printable characters without spaces")
    found = _ADDRESS.fullmatch(text)
    if found is None:
        short = _SHORT_SSH.fullmatch(text)
        if short is None or not allows_ssh:
            raise build_param_error(parameter, f"expected {schemes}, then ://, a host and a path")
        scheme, user, host, port, path = "ssh", short["user"], short["host"], None, f"/~/{short['path']}"
    else:
        scheme = found["scheme"]
        authority = _AUTHORITY.fullmatch(found["authority"])
        if scheme not in _PORTS or (scheme == "ssh" and not allows_ssh):
            message = f"expected {schemes}, found {scheme[:20]}; other protocols are not supported"
            raise build_param_error(parameter, message)
        if authority is None:
            raise build_param_error(parameter, "expected a host with an optional port after ://")
        user, host, port, path = authority["user"], authority["host"], authority["port"], found["path"]
    if user is not None and scheme != "ssh":
        raise build_param_error(
            parameter, "expected no user and no password in the address; name a Secret with parameter 'gitToken'"
        )
    if user is not None and not _USER.fullmatch(user):
        raise build_param_error(parameter, "expected a user name of letters, digits, '.', '_' and '-', and no password")
    return Remote(
        scheme,
        _parse_host(host, parameter),
        _parse_port(port, scheme, parameter),
        _parse_path(path, parameter),
        user=user or "",
    )


def _parse_host(text: str, parameter: str) -> str:
    host = text.lower()
    if host.startswith("["):
        address = _parse_address(host[1:-1])
        if isinstance(address, ipaddress.IPv6Address) and address.scope_id is None:
            return str(address)
        raise build_param_error(parameter, "expected an IPv6 address between the brackets")
    labels = host.split(".")
    # curl reads 127.1, 0x7f000001 and 2130706433 as addresses, so that the checked address would not be the one in use.
    if _NUMBER.fullmatch(labels[-1]) and _parse_address(host) is None:
        raise build_param_error(parameter, "expected a host name or an IPv4 address of four decimal numbers")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise build_param_error(parameter, "expected a host name of letters, digits, '-' and '.'")
    return host


def _parse_port(text: str | None, scheme: str, parameter: str) -> int:
    port = _PORTS[scheme] if text is None else int(text)
    if not 0 < port < 65536:
        raise build_param_error(parameter, "expected a port from 1 to 65535")
    return port


def _parse_path(text: str, parameter: str) -> str:
    path = text.rstrip("/")
    segments = path.split("/")[1:]
    if "?" in path or "#" in path or _HIDDEN.search(path):
        raise build_param_error(
            parameter, "expected a path without ?, # and encoded dots, slashes or control characters"
        )
    if not segments:
        raise build_param_error(parameter, "expected host/path, found no path")
    if any(segment in ("", ".", "..") for segment in segments):
        raise build_param_error(parameter, "expected a path without empty parts, . and ..")
    return path


def _parse_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None

"""Changes of a request by a redirect, and redirects that are refused. Pure.

Headers for one server are never sent to another. They are not restored when the other server redirects back to the
first one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from yarl import URL

from konverge_resolution._internal.network.errors import InvalidRequestError, RefusedRedirectError
from konverge_resolution._internal.network.origin_credential import OriginCredential
from konverge_resolution._internal.network.url_parsing import parse_url, redact_url

__all__ = ["MAX_REDIRECTS", "REDIRECT_STATUSES", "RequestHop", "follow_redirect"]

MAX_REDIRECTS = 5
"""Maximum number of redirects of one request."""

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
"""Status codes that redirect if there is a ``Location``."""

_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that are also sent to another server after a redirect."""


@dataclass(frozen=True, slots=True)
class RequestHop:
    """Request to one server, before or after a redirect.

    Args:
        method: The method in upper case.
        url: The URL.
        headers: The headers without the credential.
        body: The body; None for none.
        credential: Sent only to its origin.
    """

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    credential: OriginCredential | None


def follow_redirect(hop: RequestHop, status: int, location: str) -> RequestHop:
    """Return the request that follows a redirect.

    Args:
        hop: The redirected request.
        status: One of `REDIRECT_STATUSES`.
        location: The target; it may be relative.

    Raises:
        RefusedRedirectError: The target is not a valid URL, gives up TLS, or would send a body to another server.
    """
    here = redact_url(hop.url)
    try:
        url = parse_url(str(hop.url.join(URL(location))))
    except (InvalidRequestError, ValueError, UnicodeError) as error:
        message = error.problem if isinstance(error, InvalidRequestError) else "cannot be used: invalid syntax"
        raise RefusedRedirectError(here, f"redirects to a URL that {message}") from None
    if hop.url.scheme == "https" and url.scheme != "https":
        raise RefusedRedirectError(here, "redirects from https to http; expected https")
    following = replace(hop, url=url)
    becomes_get = status == 303 or (status in (301, 302) and hop.method == "POST")
    if becomes_get and hop.method != "HEAD":
        following = replace(following, method="GET", body=None)
    if url.origin() != hop.url.origin():
        if following.body is not None:
            raise RefusedRedirectError(
                here, "redirects a request with a body to another server; expected the same server"
            )
        headers = {name: value for name, value in following.headers.items() if name.lower() in _HARMLESS}
        following = replace(following, headers=headers, credential=None)
    if following.body is None:
        headers = {name: value for name, value in following.headers.items() if name.lower() != "content-type"}
        following = replace(following, headers=headers)
    return following

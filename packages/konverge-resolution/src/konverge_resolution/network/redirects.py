"""What a redirect changes about a request, and which redirects are not followed. Pure.

What was meant for one server is not shown to another, whoever says so; nor does it come back to the first one, when
that other server redirects there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from yarl import URL

from konverge_resolution.network.errors import InvalidRequestError, RefusedRedirectError
from konverge_resolution.network.origin_credential import OriginCredential
from konverge_resolution.network.url_parsing import parse_url, redact_url

__all__ = ["MAX_REDIRECTS", "REDIRECT_STATUSES", "RequestHop", "follow_redirect"]

MAX_REDIRECTS = 5
"""How many are followed for one request."""

REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
"""The statuses that redirect, if there is a ``Location``."""

_HARMLESS = frozenset({"accept", "accept-language", "content-type", "user-agent"})
"""Headers that another server may see, too, when one redirects to it."""


@dataclass(frozen=True, slots=True)
class RequestHop:
    """What is asked of one server on a request's way.

    Args:
        method: In capital letters.
        url: Where.
        headers: What is sent, without the credential.
        body: What is sent; None for nothing.
        credential: Sent to its origin alone.
    """

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes | None
    credential: OriginCredential | None


def follow_redirect(hop: RequestHop, status: int, location: str) -> RequestHop:
    """The next hop.

    Args:
        hop: The one that was answered with a redirect.
        status: One of `REDIRECT_STATUSES`.
        location: Where to; it may be relative.

    Raises:
        RefusedRedirectError: It leads to no URL that is used, from TLS to none, or takes a body to another server.
    """
    here = redact_url(hop.url)
    try:
        url = parse_url(str(hop.url.join(URL(location))))
    except (InvalidRequestError, ValueError, UnicodeError) as error:
        message = error.problem if isinstance(error, InvalidRequestError) else "cannot be used: it is none"
        raise RefusedRedirectError(here, f"redirects to a URL that {message}") from None
    if hop.url.scheme == "https" and url.scheme != "https":
        raise RefusedRedirectError(here, "redirects from https to http, which is not followed")
    following = replace(hop, url=url)
    becomes_get = status == 303 or (status in (301, 302) and hop.method == "POST")
    if becomes_get and hop.method != "HEAD":
        following = replace(following, method="GET", body=None)
    if url.origin() != hop.url.origin():
        if following.body is not None:
            raise RefusedRedirectError(here, "redirects a request with a body to another server; expected none")
        headers = {name: value for name, value in following.headers.items() if name.lower() in _HARMLESS}
        following = replace(following, headers=headers, credential=None)
    if following.body is None:
        headers = {name: value for name, value in following.headers.items() if name.lower() != "content-type"}
        following = replace(following, headers=headers)
    return following

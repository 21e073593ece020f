"""Who may read metrics and the debug page: a bearer token, and somebody who knows what it is good for.

`ClusterAuthorization` asks the API server, as controller-runtime's ``metrics/filters`` do: a TokenReview says whose
token it is, a SubjectAccessReview whether that user may ``get`` the path. The operator needs the right to ``create``
both (the ClusterRole ``system:auth-delegator``), the reader a rule ``nonResourceURLs: ["/metrics"], verbs: ["get"]``.
`TokenFile` needs no cluster: whoever has a token of the file may read everything.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, ForbiddenError, KonvergeError
from konverge.kube import Object

__all__ = [
    "AccessDecision",
    "Authenticator",
    "ClusterAuthorization",
    "ReviewClient",
    "TokenFileAuthenticator",
    "parse_bearer_token",
]

_log = logging.getLogger("konverge.runtime.observability")

_MAX_TOKEN_BYTES = 16 * 1024
_MIN_STATIC_TOKEN = 16
_MAX_FILE_BYTES = 64 * 1024
_NOT_DELEGATED = (
    "readers of metrics cannot be authenticated: the operator may not create tokenreviews.authentication.k8s.io and "
    "subjectaccessreviews.authorization.k8s.io; bind it to the ClusterRole system:auth-delegator"
)


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Whether a request is answered.

    Args:
        status: 200, or the HTTP status of the refusal.
        text: What the refused is told.
    """

    status: int
    text: str = ""


ALLOWED = AccessDecision(200)
UNAUTHORIZED = AccessDecision(401, "Unauthorized\n")
UNAVAILABLE = AccessDecision(500, "Authentication failed\n")
BUSY = AccessDecision(503, "Too many requests are being authenticated\n")


class Authenticator(Protocol):
    """Decides on a request."""

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Decide on a request with that token.

        Args:
            token: The bearer token; empty when there was none.
            method: The HTTP method.
            path: The path.
        """


class ReviewClient(Protocol):
    """The one verb that reviews need; a `konverge.client.Client` has it."""

    async def create(self, obj: Object) -> Object:
        """Send the review; the answer has its ``status``."""


def parse_bearer_token(authorization: str) -> str:
    """The token of an ``Authorization`` header; empty when there is none that can be read.

    Besides ``Bearer`` the password of ``Basic`` is taken for the token: that is how a browser can show the debug page.
    """
    scheme, _, rest = authorization.strip().partition(" ")
    token = rest.strip()
    if scheme.lower() == "basic":
        try:
            token = base64.b64decode(token, validate=True).decode().partition(":")[2]
        except ValueError:  # no base64 (also by a character that is not ASCII), or no UTF-8 in it
            return ""
    elif scheme.lower() != "bearer":
        return ""
    return token if token.isascii() and len(token) <= _MAX_TOKEN_BYTES else ""


class ClusterAuthorization:
    """Lets the API server decide, and remembers what it said for a short time.

    Args:
        client: Sends the reviews. It must be allowed to at any time: a client without a write permit, or a stand-by
            could not be scraped.
        clock: Measures how long an answer holds.
        allowed_seconds: For how long a token that was accepted is; after that a revoked one is noticed.
        refused_seconds: For how long one that was refused stays so.
        size: How many answers are remembered.
        concurrent: How many tokens are reviewed at once; further ones are turned away.
    """

    def __init__(
        self,
        client: ReviewClient,
        *,
        clock: Clock | None = None,
        allowed_seconds: float = 60.0,
        refused_seconds: float = 10.0,
        size: int = 256,
        concurrent: int = 8,
    ) -> None:
        self._client = client
        self._clock = clock or SystemClock()
        self._allowed_seconds = allowed_seconds
        self._refused_seconds = refused_seconds
        self._size = size
        self._free = concurrent
        # By a hash: a token has no business in memory once it was answered.
        self._known: OrderedDict[tuple[bytes, str, str], tuple[float, AccessDecision]] = OrderedDict()

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Ask the server, or remember what it said."""
        if not token:
            return UNAUTHORIZED
        asked = (hashlib.sha256(token.encode()).digest(), method, path)
        known = self._known.get(asked)
        if known is not None and known[0] > self._clock.monotonic():
            return known[1]
        if self._free <= 0:
            return BUSY
        self._free -= 1
        try:
            decision = await self._review(token, method, path)
        except ForbiddenError:
            _log.error("%s", _NOT_DELEGATED)
            return UNAVAILABLE
        except KonvergeError as error:
            # Neither its text nor its trace: they may show what was sent.
            _log.error("a request for %s could not be authenticated: %s", path, type(error).__name__)
            return UNAVAILABLE
        finally:
            self._free += 1
        self._remember(asked, decision)
        return decision

    def _remember(self, asked: tuple[bytes, str, str], decision: AccessDecision) -> None:
        seconds = self._allowed_seconds if decision == ALLOWED else self._refused_seconds
        self._known[asked] = (self._clock.monotonic() + seconds, decision)
        self._known.move_to_end(asked)
        while len(self._known) > self._size:
            self._known.popitem(last=False)

    async def _review(self, token: str, method: str, path: str) -> AccessDecision:
        answered = await self._client.create(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        )
        status = _to_mapping(answered.get("status"))
        if status.get("authenticated") is not True:
            return UNAUTHORIZED
        user = _to_mapping(status.get("user"))
        name = str(user.get("username") or "")
        answered = await self._client.create(
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {
                    "user": name,
                    "groups": user.get("groups") or [],
                    "uid": user.get("uid") or "",
                    "extra": user.get("extra") or {},
                    "nonResourceAttributes": {"path": path, "verb": method.lower()},
                },
            }
        )
        status = _to_mapping(answered.get("status"))
        if status.get("allowed") is True and status.get("denied") is not True:
            return ALLOWED
        return AccessDecision(403, f"Authorization denied for user {name}\n")


class TokenFileAuthenticator:
    """Whoever has one of the file's tokens may read; the file is read anew for each request.

    Args:
        path: A text file with one token a line, each of at least 16 characters. Empty lines and those that begin with
            ``#`` are left out.

    Raises:
        ConfigurationError: The file cannot be read, or holds no token or a short one.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._read_tokens()

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Compare with the file as it is now."""
        try:
            tokens = await asyncio.to_thread(self._read_tokens)
        except ConfigurationError as error:
            _log.error("a request for %s could not be authenticated: %s", path, error)
            return UNAVAILABLE
        given = token.encode()
        # All of them, each in a time that does not depend on how much of it is right.
        matches = [hmac.compare_digest(given, each) for each in tokens]
        return ALLOWED if any(matches) else UNAUTHORIZED

    def _read_tokens(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ConfigurationError(f"the token file {self._path} cannot be read: {error.strerror}") from error
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigurationError(f"the token file {self._path} has more than {_MAX_FILE_BYTES} bytes")
        tokens = [line.strip() for line in content.splitlines()]
        tokens = [token for token in tokens if token and not token.startswith(b"#")]
        if not tokens or min(map(len, tokens)) < _MIN_STATIC_TOKEN:
            raise ConfigurationError(
                f"the token file {self._path} must hold one token or more, one a line, "
                f"each of at least {_MIN_STATIC_TOKEN} characters"
            )
        return tokens


def _to_mapping(found: Any) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}

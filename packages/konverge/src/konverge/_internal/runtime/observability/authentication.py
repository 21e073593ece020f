"""Access to metrics and the debug page: a bearer token, and an authenticator that checks it.

`ClusterAuthorization` asks the API server, as controller-runtime's ``metrics/filters`` do: a TokenReview identifies the
user of the token, a SubjectAccessReview decides whether that user may ``get`` the path. The operator needs the
permission to ``create`` both (the ClusterRole ``system:auth-delegator``), and the client a rule ``nonResourceURLs:
["/metrics"], verbs: ["get"]``. `TokenFileAuthenticator` needs no cluster: a client with a token from the file may read
everything.
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

from konverge._internal.kube import Object
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError, ForbiddenError, KonvergeError

__all__ = [
    "AccessDecision",
    "Authenticator",
    "ClusterAuthorization",
    "ReviewClient",
    "TokenFileAuthenticator",
    "parse_bearer_token",
]

_log = logging.getLogger("konverge.runtime")

_MAX_TOKEN_BYTES = 16 * 1024
_MIN_STATIC_TOKEN = 16
_MAX_FILE_BYTES = 64 * 1024
_NOT_DELEGATED = (
    "clients of metrics cannot be authenticated: the operator may not create tokenreviews.authentication.k8s.io and "
    "subjectaccessreviews.authorization.k8s.io; bind it to the ClusterRole system:auth-delegator"
)


@dataclass(frozen=True, slots=True)
class AccessDecision:
    """Decision on a request.

    Args:
        status: 200, or the HTTP status of the refusal.
        text: The body of the refusal.
    """

    status: int
    text: str = ""


ALLOWED = AccessDecision(200)
UNAUTHORIZED = AccessDecision(401, "Unauthorized\n")
UNAVAILABLE = AccessDecision(500, "Authentication failed\n")
BUSY = AccessDecision(503, "Too many requests are being authenticated\n")


class Authenticator(Protocol):
    """Port that decides whether a request is allowed."""

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Decide on a request with the token.

        Args:
            token: The bearer token; empty for a request without one.
            method: The HTTP method.
            path: The path.
        """


class ReviewClient(Protocol):
    """The one client method that reviews need; `konverge.client.Client` implements it."""

    async def create(self, obj: Object) -> Object:
        """Send the review; the response has its ``status``."""


def parse_bearer_token(authorization: str) -> str:
    """Return the token of an ``Authorization`` header; empty if it has none or is malformed.

    Besides ``Bearer``, the password of ``Basic`` is accepted as the token, so that a browser can show the debug page.
    """
    scheme, _, rest = authorization.strip().partition(" ")
    token = rest.strip()
    if scheme.lower() == "basic":
        try:
            token = base64.b64decode(token, validate=True).decode().partition(":")[2]
        except ValueError:  # invalid base64 (also with a character outside ASCII), or invalid UTF-8 in it
            return ""
    elif scheme.lower() != "bearer":
        return ""
    return token if token.isascii() and len(token) <= _MAX_TOKEN_BYTES else ""


class ClusterAuthorization:
    """Authenticator that asks the API server, and caches its decisions for a short time.

    Args:
        client: Sends the reviews. It must be allowed to at any time: use a client without a write permit, or the
            metrics of a standby replica could not be read.
        clock: Measures the age of cached decisions.
        allowed_seconds: Lifetime of a cached acceptance; a revoked token is refused after it.
        refused_seconds: Lifetime of a cached refusal.
        size: Maximum number of cached decisions.
        concurrent: Maximum number of concurrent reviews; further requests are refused.
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
        # By a hash: a token must not stay in memory after its review.
        self._decisions: OrderedDict[tuple[bytes, str, str], tuple[float, AccessDecision]] = OrderedDict()

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Return the cached decision, or ask the server."""
        if not token:
            return UNAUTHORIZED
        cache_key = (hashlib.sha256(token.encode()).digest(), method, path)
        cached = self._decisions.get(cache_key)
        if cached is not None and cached[0] > self._clock.monotonic():
            return cached[1]
        if self._free <= 0:
            return BUSY
        self._free -= 1
        try:
            decision = await self._review(token, method, path)
        except ForbiddenError:
            _log.error("%s", _NOT_DELEGATED)
            return UNAVAILABLE
        except KonvergeError as error:
            # Neither its text nor its traceback: both may contain the token.
            _log.error("%s: authentication of a request failed: %s", path, type(error).__name__)
            return UNAVAILABLE
        finally:
            self._free += 1
        self._remember(cache_key, decision)
        return decision

    def _remember(self, cache_key: tuple[bytes, str, str], decision: AccessDecision) -> None:
        seconds = self._allowed_seconds if decision == ALLOWED else self._refused_seconds
        self._decisions[cache_key] = (self._clock.monotonic() + seconds, decision)
        self._decisions.move_to_end(cache_key)
        while len(self._decisions) > self._size:
            self._decisions.popitem(last=False)

    async def _review(self, token: str, method: str, path: str) -> AccessDecision:
        response = await self._client.create(
            {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        )
        status = _to_mapping(response.get("status"))
        if status.get("authenticated") is not True:
            return UNAUTHORIZED
        user = _to_mapping(status.get("user"))
        name = str(user.get("username") or "")
        response = await self._client.create(
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
        status = _to_mapping(response.get("status"))
        if status.get("allowed") is True and status.get("denied") is not True:
            return ALLOWED
        return AccessDecision(403, f"Authorization denied for user {name}\n")


class TokenFileAuthenticator:
    """Authenticator that accepts the tokens of a file; each request reads the file anew.

    Args:
        path: A text file with one token per line, each of at least 16 characters. Empty lines and lines that begin with
            ``#`` are ignored.

    Raises:
        ConfigurationError: The file cannot be read, contains no token, or contains a short one.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._read_tokens()

    async def decide(self, token: str, *, method: str, path: str) -> AccessDecision:
        """Compare the token with the present content of the file."""
        try:
            tokens = await asyncio.to_thread(self._read_tokens)
        except ConfigurationError as error:
            _log.error("%s: authentication of a request failed: %s", path, error)
            return UNAVAILABLE
        given = token.encode()
        # Compare with every token, in a time that does not depend on the number of correct characters.
        matches = [hmac.compare_digest(given, expected) for expected in tokens]
        return ALLOWED if any(matches) else UNAUTHORIZED

    def _read_tokens(self) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_FILE_BYTES + 1)
        except OSError as error:
            raise ConfigurationError(f"{self._path}: reading the token file failed: {error.strerror}") from error
        if len(content) > _MAX_FILE_BYTES:
            raise ConfigurationError(
                f"{self._path}: expected a token file of at most {_MAX_FILE_BYTES} bytes, found more"
            )
        tokens = [line.strip() for line in content.splitlines()]
        tokens = [token for token in tokens if token and not token.startswith(b"#")]
        if not tokens or min(map(len, tokens)) < _MIN_STATIC_TOKEN:
            raise ConfigurationError(
                f"{self._path}: expected at least one token, one per line, each of at least {_MIN_STATIC_TOKEN} "
                "characters"
            )
        return tokens


def _to_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}

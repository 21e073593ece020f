"""Shows a registry what it wants to see before it answers: a password, or a token that is given for one.

An `Authorization` is for one image and one resolution, and what it has found goes to that registry alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from yarl import URL

from konverge.clock import Clock
from konverge_resolution._internal.credential_hosts import encode_basic_auth
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_status_error, wrap_network_errors
from konverge_resolution._internal.network import GuardedHttp, HttpResponse, HttpSession, OriginCredential
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolvers.bundles.auth_challenges import (
    MAX_TOKEN_BYTES,
    BearerChallenge,
    may_receive_password,
    parse_challenges,
    parse_token,
)
from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference
from konverge_resolution._internal.resolvers.bundles.keychains import RegistryLogin

__all__ = ["RegistryAccess", "RegistryAuth"]


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How a registry is asked.

    Args:
        http: Who asks.
        clock: The time.
        login: Finds the user and password for it, when it wants to see some.
        realms: Which hosts may see them for its tokens, besides its own: ``registry=host``.
        is_plain_http: Whether it is spoken to without TLS.
    """

    http: GuardedHttp
    clock: Clock
    login: Callable[[], Awaitable[RegistryLogin | None]]
    realms: Sequence[str] = ()
    is_plain_http: bool = False

    def build_origin(self, image: ImageReference) -> str:
        """Scheme, host and port of an image's registry."""
        return f"{'http' if self.is_plain_http else 'https'}://{image.host}"


class RegistryAuth:
    """What a registry is shown for an image; nothing until it wants to see something.

    Args:
        access: How the registry is asked.
        session: Its connections.
        image: Which image.

    Attributes:
        credential: What the registry is shown now; None for nothing.
        has_login: Whether there was a user and a password to show.
    """

    def __init__(self, access: RegistryAccess, session: HttpSession, image: ImageReference) -> None:
        self.credential: OriginCredential | None = None
        self.has_login = False
        self._access = access
        self._session = session
        self._image = image

    async def handle_challenge(self, response: HttpResponse) -> bool:
        """Find what a registry wants to see that has answered 401.

        Args:
            response: The answer.

        Returns:
            Whether there is anything to show that it has not seen yet.

        Raises:
            ResolutionError: It wants a token that is not given, or for which nobody may be asked.
        """
        before = self.credential
        challenge = parse_challenges(response.headers.get("www-authenticate", ""))
        if challenge is None:
            return False
        login = await self._access.login()
        self.has_login = login is not None
        if isinstance(challenge, BearerChallenge):
            self._set_credential(await self._fetch_token(challenge, login))
        elif login is not None:
            self._set_credential(encode_basic_auth(login.user, login.password))
        return self.credential != before

    def _name_realm(self, url: str) -> str:
        """What policies call a place of tokens: one of the registry's own is part of the image's registry."""
        is_own = URL(url).origin() == URL(self._access.build_origin(self._image)).origin()
        return self._image.uri if is_own else url

    def _set_credential(self, value: str) -> None:
        self.credential = OriginCredential(value, self._access.build_origin(self._image))

    async def _fetch_token(self, challenge: BearerChallenge, login: RegistryLogin | None) -> str:
        is_plain_http = self._access.is_plain_http
        who = f"registry {self._image.registry}: {challenge.host}, which gives its tokens,"
        if not challenge.realm.startswith("https://") and not is_plain_http:
            raise ResolutionError(Reason.DENIED, f"{who} is to be asked without TLS, while the registry has it")
        realms = self._access.realms
        if login is not None and not may_receive_password(
            challenge, self._image.host, realms, is_plain_http=is_plain_http
        ):
            message = f"{who} may not see the password; setting 'token-realms' does not name it for this registry"
            raise ResolutionError(Reason.DENIED, message)
        shown = (
            None if login is None else OriginCredential(encode_basic_auth(login.user, login.password), challenge.origin)
        )
        with wrap_network_errors(who):
            answer = await self._session.with_address_names(name_address=self._name_realm).get(
                challenge.build_url(self._image.repository),
                headers={"Accept": "application/json"},
                max_bytes=MAX_TOKEN_BYTES,
                credential=shown,
            )
        if answer.status != 200:
            now = self._access.clock.now()
            raise build_status_error(answer, who, has_credential=login is not None, now=now)
        return parse_token(answer.body, what=who)

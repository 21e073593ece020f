"""Authentication at registries: a password, or a token from the registry's token server.

A `RegistryAuth` is for one image and one resolution. It sends its credential only to that registry.
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
    """Means to send requests to a registry.

    Args:
        http: The HTTP client.
        clock: The clock for ``Retry-After``.
        login: Looks up the user and password when the registry requires them.
        realms: Further token servers that may receive the password: ``registry=host``.
        is_plain_http: Whether connections to the registry use no TLS.
    """

    http: GuardedHttp
    clock: Clock
    login: Callable[[], Awaitable[RegistryLogin | None]]
    realms: Sequence[str] = ()
    is_plain_http: bool = False

    def build_origin(self, image: ImageReference) -> str:
        """Return scheme, host and port of an image's registry."""
        return f"{'http' if self.is_plain_http else 'https'}://{image.host}"


class RegistryAuth:
    """Credential for the requests about one image; none until the registry requires one.

    Args:
        access: The means to send requests to the registry.
        session: The connections to the registry.
        image: The image that the credential is for.

    Attributes:
        credential: The current credential; None for none.
        has_login: Whether a user and a password were available.
    """

    def __init__(self, access: RegistryAccess, session: HttpSession, image: ImageReference) -> None:
        self.credential: OriginCredential | None = None
        self.has_login = False
        self._access = access
        self._session = session
        self._image = image

    async def handle_challenge(self, response: HttpResponse) -> bool:
        """Get the credential that a registry requires with status 401.

        Args:
            response: The response with the challenge.

        Returns:
            Whether there is a credential that the registry has not received yet.

        Raises:
            ResolutionError: The token server gives no token, or must not receive a request.
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
        """Return the name of a token server in policies: the image's repository if it is the registry itself."""
        is_own = URL(url).origin() == URL(self._access.build_origin(self._image)).origin()
        return self._image.uri if is_own else url

    def _set_credential(self, value: str) -> None:
        self.credential = OriginCredential(value, self._access.build_origin(self._image))

    async def _fetch_token(self, challenge: BearerChallenge, login: RegistryLogin | None) -> str:
        is_plain_http = self._access.is_plain_http
        who = f"registry {self._image.registry}: token server {challenge.host}"
        if not challenge.realm.startswith("https://") and not is_plain_http:
            raise ResolutionError(
                Reason.DENIED, f"{who} has a URL without TLS; expected https, as the registry has TLS"
            )
        realms = self._access.realms
        if login is not None and not may_receive_password(
            challenge, self._image.host, realms, is_plain_http=is_plain_http
        ):
            message = (
                f"{who} is not permitted to receive the password; add it to setting 'token-realms' for this registry"
            )
            raise ResolutionError(Reason.DENIED, message)
        credential = (
            None if login is None else OriginCredential(encode_basic_auth(login.user, login.password), challenge.origin)
        )
        with wrap_network_errors(who):
            response = await self._session.with_address_names(name_address=self._name_realm).get(
                challenge.build_url(self._image.repository),
                headers={"Accept": "application/json"},
                max_bytes=MAX_TOKEN_BYTES,
                credential=credential,
            )
        if response.status != 200:
            now = self._access.clock.now()
            raise build_status_error(response, who, has_credential=login is not None, now=now)
        return parse_token(response.body, what=who)

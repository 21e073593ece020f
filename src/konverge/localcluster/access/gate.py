"""The gate: who sends a request, and whether the request may pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from konverge.errors import BadRequestError, UnauthorizedError
from konverge.localcluster.access.attributes import Attributes
from konverge.localcluster.access.authorization import Authorizer, forbidden
from konverge.localcluster.access.tokens import Tokens
from konverge.localcluster.access.users import ADMIN, ANONYMOUS, User

__all__ = ["Gate"]

_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
_EXTRA = "impersonate-extra-"


@dataclass(frozen=True, slots=True)
class Gate:
    """Knows users by their tokens, and lets through what they may do.

    Attributes:
        tokens: Whose a token is.
        authorizer: Who may do what.
        is_open: Whether everybody without a token that is known is the administrator.
        asks_everybody: Whether a request from elsewhere without a token is refused, where it is nobody's otherwise.
    """

    tokens: Tokens
    authorizer: Authorizer
    is_open: bool
    asks_everybody: bool = False

    def user_of(self, headers: Mapping[str, str], *, trusted: bool) -> User:
        """Who sends a request with these headers.

        Args:
            headers: The headers, names in lower case.
            trusted: Whether the request comes from within this process: without a token it is the administrator's.

        Raises:
            UnauthorizedError: It has a token that is nobody's, or none where everybody is asked for one.
            ForbiddenError: It wants to be taken for somebody else, and may not.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self.tokens.user_of(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if user is None:
            if not self.is_open and (token.strip() or (self.asks_everybody and not trusted)):
                raise UnauthorizedError("Unauthorized")
            user = ADMIN if self.is_open or trusted else ANONYMOUS
        return self._impersonated(user, headers)

    def check(self, user: User, wanted: Attributes) -> None:
        """Let a request pass.

        Raises:
            ForbiddenError: The user may not do that.
        """
        decision = self.authorizer.decide(user, wanted)
        if not decision.allowed:
            raise forbidden(user, wanted, decision.reason)

    def _impersonated(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("impersonate-user", "")
        groups = tuple(filter(None, (each.strip() for each in headers.get("impersonate-group", "").split(","))))
        extra = {unquote(key[len(_EXTRA) :]): (value,) for key, value in headers.items() if key.startswith(_EXTRA)}
        if not name:
            if groups or extra:
                raise BadRequestError("requested impersonation without impersonating a user")
            return user
        self.check(user, _impersonation(name))
        for group in groups:
            self.check(user, Attributes("impersonate", resource="groups", name=group))
        if not groups and name.startswith("system:serviceaccount:"):
            namespace = name.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        signed_in = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
        if signed_in not in groups:
            groups = (*groups, signed_in)
        return User(name, groups, headers.get("impersonate-uid", ""), extra)


def _impersonation(name: str) -> Attributes:
    parts = name.split(":")
    if name.startswith("system:serviceaccount:") and len(parts) == 4:
        return Attributes("impersonate", resource="serviceaccounts", namespace=parts[2], name=parts[3])
    return Attributes("impersonate", resource="users", name=name)

"""The gate: who sends a request, and whether the request may pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from konverge.errors import BadRequestError, UnauthorizedError
from konverge_cluster.embedded.access.authorization import Authorizer, new_forbidden
from konverge_cluster.embedded.access.request_attributes import RequestAttributes
from konverge_cluster.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster.embedded.access.users import ADMIN, ANONYMOUS, User

__all__ = ["AccessFilter"]

_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
_EXTRA = "impersonate-extra-"


@dataclass(frozen=True, slots=True)
class AccessFilter:
    """Knows users by their tokens, and lets through what they may do.

    Attributes:
        tokens: Whose a token is.
        authorizer: Who may do what.
        is_open: Whether everybody without a token that is known is the administrator.
        requires_token: Whether a request from elsewhere without a token is refused, where it is nobody's otherwise.
    """

    tokens: ServiceAccountTokens
    authorizer: Authorizer
    is_open: bool
    requires_token: bool = False

    def authenticate(self, headers: Mapping[str, str], *, trusted: bool) -> User:
        """Who sends a request with these headers.

        Args:
            headers: The headers, names in lower case.
            trusted: Whether the request comes from within this process: without a token it is the administrator's.

        Raises:
            UnauthorizedError: It has a token that is nobody's, or none where everybody is asked for one.
            ForbiddenError: It wants to be taken for somebody else, and may not.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self.tokens.authenticate(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if user is None:
            if not self.is_open and (token.strip() or (self.requires_token and not trusted)):
                raise UnauthorizedError("Unauthorized")
            user = ADMIN if self.is_open or trusted else ANONYMOUS
        return self._impersonate(user, headers)

    def check_access(self, user: User, wanted: RequestAttributes) -> None:
        """Let a request pass.

        Raises:
            ForbiddenError: The user may not do that.
        """
        decision = self.authorizer.authorize(user, wanted)
        if not decision.allowed:
            raise new_forbidden(user, wanted, decision.reason)

    def _impersonate(self, user: User, headers: Mapping[str, str]) -> User:
        name = headers.get("impersonate-user", "")
        groups = tuple(filter(None, (each.strip() for each in headers.get("impersonate-group", "").split(","))))
        extra = {unquote(key[len(_EXTRA) :]): (value,) for key, value in headers.items() if key.startswith(_EXTRA)}
        if not name:
            if groups or extra:
                raise BadRequestError("requested impersonation without impersonating a user")
            return user
        self.check_access(user, _build_impersonation_attributes(name))
        for group in groups:
            self.check_access(user, RequestAttributes("impersonate", resource="groups", name=group))
        if not groups and name.startswith("system:serviceaccount:"):
            namespace = name.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        signed_in = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
        if signed_in not in groups:
            groups = (*groups, signed_in)
        return User(name, groups, headers.get("impersonate-uid", ""), extra)


def _build_impersonation_attributes(name: str) -> RequestAttributes:
    parts = name.split(":")
    if name.startswith("system:serviceaccount:") and len(parts) == 4:
        return RequestAttributes("impersonate", resource="serviceaccounts", namespace=parts[2], name=parts[3])
    return RequestAttributes("impersonate", resource="users", name=name)

"""The filter in front of all verbs: it authenticates a request and checks that it is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from konverge.errors import BadRequestError, UnauthorizedError
from konverge_cluster._internal.embedded.access.authorization import Authorizer, new_forbidden
from konverge_cluster._internal.embedded.access.request_attributes import RequestAttributes
from konverge_cluster._internal.embedded.access.service_account_tokens import ServiceAccountTokens
from konverge_cluster._internal.embedded.access.users import ADMIN, ANONYMOUS, User

__all__ = ["AccessFilter"]

_AUTHENTICATED, _UNAUTHENTICATED = "system:authenticated", "system:unauthenticated"
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"


@dataclass(frozen=True, slots=True)
class AccessFilter:
    """Authenticates users by their tokens and checks their permissions.

    Attributes:
        tokens: The tokens and their users.
        authorizer: Decides which requests are allowed.
        is_open: True if every client without a known token is the administrator.
        requires_token: True to reject requests over HTTP without a token; otherwise they are anonymous.
    """

    tokens: ServiceAccountTokens
    authorizer: Authorizer
    is_open: bool
    requires_token: bool = False

    def authenticate(self, headers: Mapping[str, str], *, trusted: bool) -> User:
        """Return the user who sends a request with these headers.

        Args:
            headers: The headers, names in lower case.
            trusted: True for a request from this process: without a token, it is the administrator's.

        Raises:
            UnauthorizedError: The token is unknown, or a required token is absent.
            ForbiddenError: The user may not impersonate the requested user.
        """
        scheme, _, token = headers.get("authorization", "").partition(" ")
        user = self.tokens.authenticate(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        if user is None:
            if not self.is_open and (token.strip() or (self.requires_token and not trusted)):
                raise UnauthorizedError("Unauthorized")
            user = ADMIN if self.is_open or trusted else ANONYMOUS
        return self._impersonate(user, headers)

    def check_access(self, user: User, attributes: RequestAttributes) -> None:
        """Check that a user may send a request.

        Raises:
            ForbiddenError: The user has no permission for it.
        """
        decision = self.authorizer.authorize(user, attributes)
        if not decision.allowed:
            raise new_forbidden(user, attributes, decision.reason)

    def _impersonate(self, user: User, headers: Mapping[str, str]) -> User:
        """Return the user as whom a request acts; each part of the identity needs the permission to impersonate it."""
        name = headers.get("impersonate-user", "")
        uid = headers.get("impersonate-uid", "")
        groups = tuple(_split_values(headers, "impersonate-group"))
        extra = {
            unquote(key[len(_EXTRA) :]): tuple(_split_values(headers, key)) for key in headers if key.startswith(_EXTRA)
        }
        if not name:
            if groups or extra or uid:
                raise BadRequestError("requested impersonation without impersonating a user")
            return user
        self.check_access(user, _build_impersonation_attributes(name))
        if uid:
            self.check_access(user, RequestAttributes("impersonate", group=_GROUP, resource="uids", name=uid))
        for group in groups:
            self.check_access(user, RequestAttributes("impersonate", resource="groups", name=group))
        for key, values in extra.items():
            for value in values:
                attributes = RequestAttributes(
                    "impersonate", group=_GROUP, resource="userextras", subresource=key, name=value
                )
                self.check_access(user, attributes)
        if not groups and name.startswith("system:serviceaccount:"):
            namespace = name.split(":")[2]
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
        return User(name, _add_identity_group(name, groups), uid, extra)


def _split_values(headers: Mapping[str, str], name: str) -> list[str]:
    """Return the values of a header that can be repeated (`ServerRequest.headers`)."""
    return headers[name].split("\n") if name in headers else []


def _add_identity_group(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """Return the groups with the one that contains all known users, or all unknown ones."""
    if _UNAUTHENTICATED in groups:
        return groups
    own = _UNAUTHENTICATED if name == ANONYMOUS.name else _AUTHENTICATED
    return groups if own in groups else (*groups, own)


def _build_impersonation_attributes(name: str) -> RequestAttributes:
    parts = name.split(":")
    if name.startswith("system:serviceaccount:") and len(parts) == 4:
        return RequestAttributes("impersonate", resource="serviceaccounts", namespace=parts[2], name=parts[3])
    return RequestAttributes("impersonate", resource="users", name=name)

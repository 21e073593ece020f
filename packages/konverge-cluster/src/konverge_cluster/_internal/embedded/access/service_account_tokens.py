"""The tokens of ServiceAccounts, issued and verified by this cluster as signed JSON like those of a real cluster."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

import msgspec

from konverge._internal.kube import ObjectKey
from konverge.clock import Clock, Entropy
from konverge_cluster._internal.embedded.access.users import User
from konverge_cluster._internal.embedded.storage import Storage

__all__ = ["AUDIENCE", "ServiceAccountTokens"]

AUDIENCE = "https://kubernetes.default.svc"
"""The default audience of a token."""

_HEADER = b'{"alg":"HS256","kid":"konverge"}'
_AUTHENTICATED = "system:authenticated"
_LONGEST_TOKEN = 16_384


class ServiceAccountTokens:
    """Issues tokens and finds the user of a token.

    Args:
        storage: The storage with the ServiceAccounts.
        clock: The clock for the expiry of tokens.
        entropy: The source of the key and of the token identifiers.
        fixed: Predefined tokens and their users.
    """

    def __init__(self, storage: Storage, clock: Clock, entropy: Entropy, fixed: Mapping[str, User]) -> None:
        self._storage = storage
        self._clock = clock
        self._entropy = entropy
        self._fixed = dict(fixed)
        self._key: bytes | None = None

    def issue(self, account: ObjectKey, uid: str, audiences: list[str], seconds: int) -> str:
        """Return a new token for a ServiceAccount.

        Args:
            account: The ServiceAccount.
            uid: The UID of the ServiceAccount.
            audiences: The audiences of the token.
            seconds: The lifetime in seconds.
        """
        now = int(self._clock.now().timestamp())
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "iss": AUDIENCE,
            "jti": self._entropy.uid(),
            "kubernetes.io": {
                "namespace": account.namespace,
                "serviceaccount": {"name": account.name, "uid": uid},
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{account.namespace}:{account.name}",
        }
        signed = f"{_encode_base64url(_HEADER)}.{_encode_base64url(msgspec.json.encode(claims))}"
        return f"{signed}.{_encode_base64url(self._sign(signed))}"

    def authenticate(self, token: str, audiences: tuple[str, ...] = (AUDIENCE,)) -> User | None:
        """Return the user of a token; None if it is unknown, expired or for other audiences."""
        for fixed_token, user in self._fixed.items():
            if hmac.compare_digest(fixed_token.encode(), token.encode()):
                return User(user.name, (*user.groups, _AUTHENTICATED), user.uid, user.extra)
        claims = self._verify_claims(token)
        if claims is None or not set(claims["aud"]) & set(audiences):
            return None
        account = claims["kubernetes.io"]["serviceaccount"]
        namespace = claims["kubernetes.io"]["namespace"]
        stored = self._storage.get("serviceaccounts", ObjectKey(namespace, account["name"]))
        if stored is None or stored.object["metadata"]["uid"] != account["uid"]:
            return None
        return User(
            claims["sub"],
            ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", _AUTHENTICATED),
            account["uid"],
            {"authentication.kubernetes.io/credential-id": (f"JTI={claims['jti']}",)},
        )

    def _verify_claims(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token that this cluster signed and that is valid now; otherwise None."""
        signed, _, signature = token.rpartition(".")
        if len(token) > _LONGEST_TOKEN or not signed.isascii() or not signature.isascii():
            return None
        if not hmac.compare_digest(signature, _encode_base64url(self._sign(signed))):
            return None
        text = signed.partition(".")[2]
        try:
            claims: dict[str, Any] = msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, binascii.Error, msgspec.DecodeError):
            return None
        now = self._clock.now().timestamp()
        return claims if claims["nbf"] <= now < claims["exp"] else None

    def _sign(self, text: str) -> bytes:
        if self._key is None:
            # Created on first use: a cluster without tokens must draw the same random values as before.
            self._key = self._entropy.uid().encode()
        return hmac.new(self._key, text.encode(), hashlib.sha256).digest()


def _encode_base64url(text: bytes) -> str:
    return base64.urlsafe_b64encode(text).decode().rstrip("=")

"""The users of the server: a name and its groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge._internal.kube import Object

__all__ = ["ADMIN", "ANONYMOUS", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """A user that the server has authenticated.

    Attributes:
        name: The name of the user.
        groups: The groups of the user.
        uid: An identifier that stays the same when the name changes; empty for none.
        extra: Additional attributes.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_user_info(self) -> Object:
        """Return the user as a ``UserInfo``."""
        user_info: Object = {"username": self.name}
        if self.uid:
            user_info["uid"] = self.uid
        if self.groups:
            user_info["groups"] = list(self.groups)
        if self.extra:
            user_info["extra"] = {name: list(values) for name, values in self.extra.items()}
        return user_info


ADMIN = User("embedded-admin", ("system:masters", "system:authenticated"))
"""The user of every client if authentication is off."""
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
"""The user of a client that sends no credentials if authentication is on."""

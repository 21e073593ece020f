"""Who asks: a name, and the groups that it is in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from konverge.kube import Object

__all__ = ["ADMIN", "ANONYMOUS", "User"]


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who is known to the server.

    Attributes:
        name: The name.
        groups: The groups.
        uid: An identifier that stays when the name does not; empty for none.
        extra: What else is known.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def to_user_info(self) -> Object:
        """The user as a ``UserInfo``."""
        told: Object = {"username": self.name}
        if self.uid:
            told["uid"] = self.uid
        if self.groups:
            told["groups"] = list(self.groups)
        if self.extra:
            told["extra"] = {name: list(values) for name, values in self.extra.items()}
        return told


ADMIN = User("embedded-admin", ("system:masters", "system:authenticated"))
"""Who everybody is where nobody has to sign in."""
ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
"""Who sends no credentials where they are asked for."""

"""How things outside of the cluster say whose they are."""

from __future__ import annotations

from konverge_box.providers.plugin import ForeignError, ItemOwner

__all__ = ["build_owner_mark", "build_retention_mark", "is_owned", "needs_mark"]

_OWNED = "konverge.dev/owner: "
_RETAINED = "konverge.dev/retained-from: "


def build_owner_mark(owner: ItemOwner) -> str:
    """The mark of a thing that belongs to this owner. Its UID counts; the rest is for people."""
    return f"{_OWNED}{owner.uid} {owner}"


def build_retention_mark(owner: ItemOwner) -> str:
    """The mark of a thing that nobody owns, and that an owner of this kind, namespace and name may have again.

    So what outlives its owner is there for the next one of that name; and who wants to hand something over writes this.
    """
    return f"{_RETAINED}{owner}"


def is_owned(mark: str, owner: ItemOwner) -> bool:
    """Tell whether a thing with this mark belongs to this owner."""
    return mark.startswith(_OWNED) and mark.removeprefix(_OWNED).split(" ", 1)[0] == owner.uid


def needs_mark(subject: str, mark: str, owner: ItemOwner) -> bool:
    """Tell whether a thing that is there has still to be marked for this owner.

    Raises:
        ForeignError: It is not this owner's to have.
    """
    if is_owned(mark, owner):
        return mark != build_owner_mark(owner)
    wanted = build_retention_mark(owner)
    if mark == wanted:
        return True
    raise ForeignError(subject, mark, wanted)

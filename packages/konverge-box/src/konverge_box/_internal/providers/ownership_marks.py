"""The marks on external items, which identify their owners."""

from __future__ import annotations

from konverge_box._internal.providers.plugin import ForeignError, ItemOwner

__all__ = ["build_owner_mark", "build_retention_mark", "is_owned", "needs_mark"]

_OWNED = "konverge.dev/owner: "
_RETAINED = "konverge.dev/retained-from: "


def build_owner_mark(owner: ItemOwner) -> str:
    """Return the mark of an item of this owner. Only the UID counts; the rest is for users."""
    return f"{_OWNED}{owner.uid} {owner}"


def build_retention_mark(owner: ItemOwner) -> str:
    """Return the mark of an item without an owner, which an owner of this kind, namespace and name can adopt.

    So a retained item is available to the next owner of that name. A user can write this mark to hand an item over.
    """
    return f"{_RETAINED}{owner}"


def is_owned(mark: str, owner: ItemOwner) -> bool:
    """Tell whether an item with this mark belongs to this owner."""
    return mark.startswith(_OWNED) and mark.removeprefix(_OWNED).split(" ", 1)[0] == owner.uid


def needs_mark(subject: str, mark: str, owner: ItemOwner) -> bool:
    """Tell whether an existing item must still be marked for this owner.

    Raises:
        ForeignError: The item belongs to another owner.
    """
    if is_owned(mark, owner):
        return mark != build_owner_mark(owner)
    wanted = build_retention_mark(owner)
    if mark == wanted:
        return True
    raise ForeignError(subject, mark, wanted)

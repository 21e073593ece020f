"""What a server made of our applies, remembered: the differences that an apply cannot remove.

A server may default values inside an atomic list or write a value in another form than ours (a quantity, for one). Such
a difference stays after the apply. Without a memory it would be applied again on each pass, forever; with it, once
after a restart.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from konverge.apply import Difference
from konverge.kube import Object

__all__ = ["AppliedMemory"]

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class _Left:
    desired: bytes
    differences: tuple[Difference, ...]


class AppliedMemory:
    """Remembers, by object and field manager, which differences were left by the last apply of which desired object.

    Args:
        limit: How many objects at most; the longest unused is forgotten first, which costs one apply that changes
            nothing.
    """

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._left: OrderedDict[tuple[str, str], _Left] = OrderedDict()

    def remember(self, uid: str, field_manager: str, desired: Object, left: Sequence[Difference]) -> None:
        """Note what still differed right after an apply; nothing left is nothing to remember."""
        key = (uid, field_manager)
        self._left.pop(key, None)
        if not left:
            return
        self._left[key] = _Left(_digest(desired), tuple(left))
        if len(self._left) > self._limit:
            self._left.popitem(last=False)

    def explains(self, uid: str, field_manager: str, desired: Object, found: Sequence[Difference]) -> bool:
        """Tell whether just these differences were left by applying just this object: applying again cannot help."""
        key = (uid, field_manager)
        left = self._left.get(key)
        if left is None or left.differences != tuple(found) or left.desired != _digest(desired):
            return False
        self._left.move_to_end(key)
        return True


def _digest(obj: Object) -> bytes:
    return hashlib.sha256(_encode(obj)).digest()

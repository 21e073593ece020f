"""Values that come from Secrets, and what is made of them.

A `Sensitive` *is* the text ``***``: whatever prints, joins or logs it without knowing about it shows just that, and so
does Python's own ``json``. The value behind it comes out in one way only, by asking for it. msgspec, through which
everything goes that is sent to a cluster, refuses what is no plain text: who forgets to ask, or to mask, gets an error
there, and neither a password in a status nor three asterisks in a Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["MASK", "Sensitive", "has_sensitive", "mask_sensitive", "reveal_sensitive", "to_sensitive"]

MASK = "***"

# What most leaves are, and what most of the rest is: asked in each pass about each object, `Mapping` alone is slow.
_PLAIN = frozenset({str, int, float, bool, type(None)})
_MAPPINGS = (dict, Mapping)


class Sensitive(str):
    """A value that nobody may see; a `str` that reads ``***``.

    Two of them are equal if the values behind them are; none is equal to a plain text.

    Args:
        value: Any JSON value; in a list or a mapping there may be further ones of these.
    """

    __slots__ = ("_value",)
    _value: Any

    def __new__(cls, value: Any) -> Sensitive:
        """One for this value; what is sensitive already is not wrapped twice."""
        made = super().__new__(cls, MASK)
        made._value = reveal_sensitive(value)
        return made

    def reveal(self) -> Any:
        """The value: for who applies objects and sends requests, and nobody else."""
        return self._value

    def __repr__(self) -> str:
        return MASK

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sensitive) and bool(self._value == other._value)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(MASK)

    def __copy__(self) -> Sensitive:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Sensitive:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("a sensitive value is not to be pickled: that would write it out")


def to_sensitive(value: Any) -> Any:
    """The value with each of its leaves sensitive: a Secret's data can be walked, and every value of it is hidden."""
    if isinstance(value, Mapping):
        return {key: to_sensitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_sensitive(item) for item in value]
    return value if isinstance(value, Sensitive) else Sensitive(value)


def has_sensitive(value: Any) -> bool:
    """Tell whether something in it is sensitive."""
    if type(value) in _PLAIN:
        return False
    if isinstance(value, _MAPPINGS):
        return any(map(has_sensitive, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_sensitive, value))
    return isinstance(value, Sensitive)


def reveal_sensitive(value: Any) -> Any:
    """A copy with the real values, to be applied or sent; nothing of it may be shown."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Sensitive):
        return value.reveal()
    if isinstance(value, _MAPPINGS):
        return {key: reveal_sensitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [reveal_sensitive(item) for item in value]
    return value


def mask_sensitive(value: Any) -> Any:
    """A copy in which plain texts ``***`` stand for what is sensitive, to be shown."""
    if isinstance(value, Sensitive):
        return MASK
    if isinstance(value, Mapping):
        return {key: mask_sensitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_sensitive(item) for item in value]
    return value

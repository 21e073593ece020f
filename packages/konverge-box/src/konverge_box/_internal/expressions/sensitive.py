"""Values that come from Secrets, and values computed from them.

A `Sensitive` *is* the string ``***``: code that prints, joins or logs it without special handling outputs only that,
and so does Python's ``json``. Only `reveal` returns the value behind it. msgspec encodes everything that is sent to a
cluster and rejects subclasses of `str`: code that forgets to reveal or mask a value gets an error there, instead of a
password in a status or three asterisks in a Secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["MASK", "Sensitive", "has_sensitive", "mask_sensitive", "reveal_sensitive", "to_sensitive"]

MASK = "***"

# The types of most leaves and of most containers: checked for each object in each reconcile, `Mapping` alone is slow.
_PLAIN = frozenset({str, int, float, bool, type(None)})
_MAPPINGS = (dict, Mapping)


class Sensitive(str):
    """A secret value: a `str` that reads ``***``.

    Two of them are equal if their values are; none is equal to a plain string.

    Args:
        value: Any JSON value; lists and mappings may contain further sensitive values.
    """

    __slots__ = ("_value",)
    _value: Any

    def __new__(cls, value: Any) -> Sensitive:
        """Create a sensitive value; a sensitive argument is not wrapped twice."""
        sensitive = super().__new__(cls, MASK)
        sensitive._value = reveal_sensitive(value)
        return sensitive

    def reveal(self) -> Any:
        """Return the value, only for code that applies objects or sends requests."""
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
        raise TypeError("a sensitive value cannot be pickled: that would expose it")


def to_sensitive(value: Any) -> Any:
    """Return the value with each leaf sensitive: a Secret's data can be traversed, and each value in it is hidden."""
    if isinstance(value, Mapping):
        return {key: to_sensitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_sensitive(item) for item in value]
    return value if isinstance(value, Sensitive) else Sensitive(value)


def has_sensitive(value: Any) -> bool:
    """Tell whether a value contains a sensitive value."""
    if type(value) in _PLAIN:
        return False
    if isinstance(value, _MAPPINGS):
        return any(map(has_sensitive, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_sensitive, value))
    return isinstance(value, Sensitive)


def reveal_sensitive(value: Any) -> Any:
    """Return a copy with the real values, to be applied or sent; it must not be shown."""
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
    """Return a copy for output, with the plain string ``***`` in place of sensitive values."""
    if isinstance(value, Sensitive):
        return MASK
    if isinstance(value, Mapping):
        return {key: mask_sensitive(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_sensitive(item) for item in value]
    return value

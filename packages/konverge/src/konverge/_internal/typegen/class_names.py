"""Names of classes: only letters and digits, unique in a module."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

__all__ = ["ClassNames", "build_class_name", "is_class_field_name"]

_MAX_LENGTH = 160
_WORDS = re.compile(r"[A-Za-z0-9]+")
_FIELD = re.compile(r"(?!__)[A-Za-z_]\w*", re.ASCII)  # a class mangles names with two leading underscores

# Names in annotations, and the keywords with a capital letter: invalid as class names.
_RESERVED = frozenset({"Any", "Literal", "Required", "TypeAlias", "TypedDict", "None", "True", "False"})


class ClassNames:
    """The names of the classes in one module."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._reserved = {*_RESERVED, *reserved}
        self._last_numbers: dict[str, int] = {}

    def reserve(self, base_name: str) -> str:
        """Return this name, or the name with a number if another class has it."""
        name = base_name
        while name in self._reserved:
            number = self._last_numbers[base_name] = self._last_numbers.get(base_name, 1) + 1
            name = f"{base_name}{number}"
        self._reserved.add(name)
        return name


def build_class_name(*parts: str) -> str:
    """Return ``CertificatePrivateKey`` for ``Certificate`` and ``private-key``; a long name is cut."""
    words = (word for part in parts for word in _WORDS.findall(part[:_MAX_LENGTH]))
    name = "".join(word[0].upper() + word[1:] for word in words)[:_MAX_LENGTH]
    return name if name[:1].isalpha() else f"Kind{name}"


def is_class_field_name(name: str) -> bool:
    """Return whether a class statement can have a field of this name."""
    return _FIELD.fullmatch(name) is not None and not keyword.iskeyword(name)

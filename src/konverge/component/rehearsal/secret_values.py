"""The values of Secrets that a rehearsal has met, by which they are known again wherever they were copied to. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from konverge.kube import GroupVersionKind, Object

__all__ = ["SecretValues"]

_SHORTEST_PART = 6
"""Shorter values are hidden where they are the whole of a field, and not in the middle of another text."""


class SecretValues:
    """Values that may not be shown."""

    def __init__(self) -> None:
        self._values: set[str] = set()

    def note(self, obj: Object) -> None:
        """Remember the values of an object if it is a Secret: as they are, and as base64."""
        if not GroupVersionKind.of(obj).is_secret:
            return
        data, texts = obj.get("data"), obj.get("stringData")
        for encoded in data.values() if isinstance(data, dict) else ():
            if isinstance(encoded, str):
                self._add(encoded)
                try:
                    self._add(base64.b64decode(encoded, validate=True).decode())
                except (binascii.Error, ValueError):
                    continue  # no text, so it can be copied as base64 alone
        for text in texts.values() if isinstance(texts, dict) else ():
            if isinstance(text, str):
                self._add(text)
                self._add(base64.b64encode(text.encode()).decode())

    def are_in(self, value: Any) -> bool:
        """Tell whether one of them is in the value of a field, or in what is below it."""
        if not self._values:
            return False
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        return text in self._values or any(len(each) >= _SHORTEST_PART and each in text for each in self._values)

    def _add(self, text: str) -> None:
        if text.strip():
            self._values.add(text)

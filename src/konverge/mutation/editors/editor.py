"""What all editors share: the mapping under them."""

from __future__ import annotations

from konverge.kube import Object

__all__ = ["Editor"]


class Editor:
    """Edits one mapping in place. Its repr shows no content: the mapping may be a Secret's."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Object) -> None:
        self._fields = fields

    def raw(self) -> Object:
        """The plain mapping itself; changing it changes the object."""
        return self._fields

"""What all editors share: the mapping, or the list, under them."""

from __future__ import annotations

from typing import Any, ClassVar

from konverge.kube import Object
from konverge.mutation.field_editing import ensure_list

__all__ = ["Editor", "ListEditor"]


class Editor:
    """Edits one mapping in place. Its repr shows no content: the mapping may be a Secret's."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Object) -> None:
        self._fields = fields

    def raw(self) -> Object:
        """The plain mapping itself; changing it changes the object."""
        return self._fields


class ListEditor:
    """Edits one list in place, and nothing beside it: what else its object holds is out of reach.

    Args:
        parent: The mapping that holds the list, or will.
    """

    __slots__ = ("_parent",)

    field: ClassVar[str]
    """Where in the mapping the list is."""

    def __init__(self, parent: Object) -> None:
        self._parent = parent

    def raw(self) -> list[Any]:
        """The plain list itself, made when it is absent; changing it changes the object."""
        return ensure_list(self._parent, self.field)

    def _drop_when_empty(self) -> None:
        if self._parent.get(self.field) == []:
            del self._parent[self.field]

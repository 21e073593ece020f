"""Base classes of the editors of a mapping and of a list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from konverge._internal.kube import Object
from konverge._internal.mutation.field_editing import copy_json, ensure_list
from konverge._internal.suggestions import did_you_mean

__all__ = ["Editor", "ListEditor"]


class Editor:
    """Edits one mapping in place. Its repr has no content: the mapping may belong to a Secret."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Object) -> None:
        self._fields = fields

    def raw(self) -> Object:
        """Return the edited mapping itself; a change of it changes the object."""
        return self._fields

    def _set_fields(self, fields: Mapping[str, object], names: Collection[str]) -> None:
        """Set fields to copies of the values; None removes a field.

        Raises:
            TypeError: A field is not among the names. Without this check, a typo fails only when the server applies
                the object.
        """
        for field, value in fields.items():
            if field not in names:
                raise TypeError(f"{type(self).__name__}.set: {field}: unknown field{did_you_mean(field, names)}")
            if value is None:
                self._fields.pop(field, None)
            else:
                self._fields[field] = copy_json(value)


class ListEditor:
    """Edits one list in place and no other field of the object.

    Args:
        parent: The mapping that has, or will have, the list.
    """

    __slots__ = ("_parent",)

    field: ClassVar[str]
    """The field of the mapping that holds the list."""

    def __init__(self, parent: Object) -> None:
        self._parent = parent

    def raw(self) -> list[Any]:
        """Return the edited list itself, created if absent; a change of it changes the object."""
        return ensure_list(self._parent, self.field)

    def _drop_when_empty(self) -> None:
        if self._parent.get(self.field) == []:
            del self._parent[self.field]

"""The mutator: what a mutation's callback talks to.

It records edits and makes none. When the callback has returned, the edits are made in the kind's order of categories,
and inside a category in the order in which they were recorded. A callback therefore cannot depend on the order of its
own statements, nor on an object that other mutations have half changed.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from operator import itemgetter
from typing import TypeAlias, TypeVar

from konverge.errors import KonvergeError
from konverge.kube import Object
from konverge.mutation.editors.editor import Editor, ListEditor
from konverge.mutation.editors.object_meta import ObjectMetaEditor
from konverge.mutation.field_editing import ensure_mapping

__all__ = ["EditCategory", "EditFunction", "Mutator"]

E = TypeVar("E", bound=Editor | ListEditor)

EditFunction: TypeAlias = Callable[[E], object]
"""Gets an editor and uses it; its answer is ignored, so that ``lambda spec: spec.raw().pop("paused")`` is one."""


class EditCategory(IntEnum):
    """The order in which the recorded edits of one mutation are made; each kind uses the categories that it has."""

    OBJECT_METADATA = 1
    CONTENT = 2
    """The kind's own part: its spec, data, rules or subjects."""
    JOB_SPEC = 3
    """The spec of the Jobs that a CronJob makes."""
    POD_TEMPLATE_METADATA = 4
    POD_SPEC = 5
    CONTAINER_PRESENCE = 6
    CONTAINER_EDITS = 7
    INIT_CONTAINER_PRESENCE = 8
    INIT_CONTAINER_EDITS = 9
    VOLUME_CLAIM_TEMPLATES = 10


_category = itemgetter(0)


class Mutator:
    """Records the edits of one mutation; kinds add methods for their own parts.

    A None given as an edit is ignored, for edits assigned conditionally.
    """

    def __init__(self) -> None:
        self._plan: list[tuple[EditCategory, Callable[[Object], object]]] = []
        self._is_applied = False

    def edit_object_metadata(self, edit: EditFunction[ObjectMetaEditor] | None) -> None:
        """Edit the object's labels and annotations."""
        self._edit(EditCategory.OBJECT_METADATA, ObjectMetaEditor, ("metadata",), edit)

    def apply_to(self, obj: Object) -> None:
        """Make the recorded edits, in place. The engine's half of the contract: callbacks have no use for it."""
        self._is_applied = True
        for _, change in sorted(self._plan, key=_category):
            change(obj)

    def _edit(
        self,
        category: EditCategory,
        editor: Callable[[Object], E],
        path: tuple[str, ...],
        edit: EditFunction[E] | None,
    ) -> None:
        """Record an edit of the mapping under that path."""
        if edit is not None:
            self._record(category, lambda obj: edit(editor(ensure_mapping(obj, *path))))

    def _record(self, category: EditCategory, change: Callable[[Object], object]) -> None:
        # An edit that records another one would be lost without a word: the plan is already being carried out.
        if self._is_applied:
            raise KonvergeError("an edit was recorded inside an edit: record all edits in the mutation's callback")
        self._plan.append((category, change))

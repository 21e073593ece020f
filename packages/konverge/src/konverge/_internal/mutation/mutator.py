"""The mutator: the argument of a mutation's callback.

It only records edits. After the callback, konverge applies them in the kind's order of categories, and inside a
category in the order of recording. A callback therefore cannot depend on the order of its statements, nor on an object
in the middle of other mutations.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from operator import itemgetter
from typing import TypeAlias, TypeVar

from konverge._internal.kube import Object
from konverge._internal.mutation.editors.editor import Editor, ListEditor
from konverge._internal.mutation.editors.object_meta import ObjectMetaEditor
from konverge._internal.mutation.field_editing import ensure_mapping
from konverge.errors import KonvergeError

__all__ = ["EditCategory", "EditFunction", "Mutator"]

E = TypeVar("E", bound=Editor | ListEditor)

EditFunction: TypeAlias = Callable[[E], object]
"""Gets an editor and uses it; its result is ignored, so that ``lambda spec: spec.raw().pop("paused")`` is valid."""


class EditCategory(IntEnum):
    """The order of the recorded edits of one mutation; each kind uses a part of the categories."""

    OBJECT_METADATA = 1
    CONTENT = 2
    """The part that is specific to the kind: its spec, data, rules or subjects."""
    JOB_SPEC = 3
    """The spec of the Jobs that a CronJob creates."""
    POD_TEMPLATE_METADATA = 4
    POD_SPEC = 5
    CONTAINER_PRESENCE = 6
    CONTAINER_EDITS = 7
    INIT_CONTAINER_PRESENCE = 8
    INIT_CONTAINER_EDITS = 9
    VOLUME_CLAIM_TEMPLATES = 10


_category = itemgetter(0)


class Mutator:
    """Records the edits of one mutation; kinds add methods for their specific parts.

    An edit of None is ignored, so that an edit can be conditional.
    """

    def __init__(self) -> None:
        self._plan: list[tuple[EditCategory, Callable[[Object], object]]] = []
        self._is_applied = False

    def edit_object_metadata(self, edit: EditFunction[ObjectMetaEditor] | None) -> None:
        """Record an edit of the object's labels and annotations."""
        self._edit(EditCategory.OBJECT_METADATA, ObjectMetaEditor, ("metadata",), edit)

    def apply_to(self, obj: Object) -> None:
        """Apply the recorded edits in place. Only the engine calls this, never a callback."""
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
        """Record an edit of the mapping at this path."""
        if edit is not None:
            self._record(category, lambda obj: edit(editor(ensure_mapping(obj, *path))))

    def _record(self, category: EditCategory, change: Callable[[Object], object]) -> None:
        # An edit that records another one would be lost silently: konverge is already applying the plan.
        if self._is_applied:
            raise KonvergeError("an edit recorded another edit: record all edits in the callback of the mutation")
        self._plan.append((category, change))

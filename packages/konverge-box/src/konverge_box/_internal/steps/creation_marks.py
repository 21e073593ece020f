"""The marks on a custom resource: short hashes in an annotation, of objects that must not be created or run again.

A hash covers the UID of the custom resource: a user can copy its annotations to another custom resource, whose objects
do not exist yet.
"""

from __future__ import annotations

import json

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.errors import KindNotServedError, NotFoundError
from konverge_box._internal.steps.labels import CREATED, compute_short_hash
from konverge_box._internal.steps.object_reader import ObjectReader
from konverge_box._internal.steps.ownership import is_ours
from konverge_box._internal.steps.resource_plan import ResourcePlan

__all__ = ["MAX_MARKS_LENGTH", "compute_mark", "plan_marks", "read_marks"]

MAX_MARKS_LENGTH = 8000
"""Maximum number of marks: an object can have 256 KiB of annotations. The oldest marks that the file no longer needs
are removed first."""


def compute_mark(owner: Object, gvk: GroupVersionKind, key: ObjectKey) -> str:
    """Return the mark for one object."""
    return compute_short_hash(str(owner["metadata"]["uid"]), *gvk.group_kind, *key)


def read_marks(owner: Object, annotation: str = CREATED) -> list[str]:
    """Return the marks of a custom resource, the oldest first; nothing for an invalid annotation."""
    annotations = owner["metadata"].get("annotations")
    text = annotations.get(annotation) if isinstance(annotations, dict) else None
    try:
        marks = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return []
    return [mark for mark in marks if isinstance(mark, str)] if isinstance(marks, list) else []


async def plan_marks(plan: ResourcePlan, owner: Object, reader: ObjectReader) -> list[str] | None:
    """Return the marks that the annotation needs after the components of the plan have run; None without a change.

    Only objects that exist are marked: a component can have stopped before it created an object.

    Raises:
        konverge.errors.KonvergeError: An object could not be read.
    """
    old = read_marks(owner)
    due = []
    for entry in (entry for group in plan.groups for entry in group.entries if entry.mark):
        try:
            live = await reader.get(entry.gvk, entry.key)
        except (NotFoundError, KindNotServedError):
            continue
        if is_ours(live, owner):
            due.append(entry.mark)
    if not due:
        return None
    current = {compute_mark(owner, entry.gvk, entry.key) for group in plan.groups for entry in group.entries}
    marks = list(dict.fromkeys([*old, *due]))
    surplus = len(marks) - MAX_MARKS_LENGTH
    dropped = set([mark for mark in marks if mark not in current][: max(0, surplus)])
    return [mark for mark in marks if mark not in dropped]

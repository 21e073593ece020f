"""What a custom resource remembers: short hashes in an annotation of it, of what is not to be made or run again.

A hash covers the UID of the custom resource: its annotations may be copied to another one, whose objects have not been
made for that.
"""

from __future__ import annotations

import json

from konverge.errors import KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box.steps.labels import CREATED, compute_short_hash
from konverge_box.steps.object_reader import ObjectReader
from konverge_box.steps.ownership import is_ours
from konverge_box.steps.resource_plan import ResourcePlan

__all__ = ["MAX_MARKS_LENGTH", "compute_mark", "plan_marks", "read_marks"]

MAX_MARKS_LENGTH = 8000
"""An object may have 256 KiB of annotations. The oldest mark of what the file does not make any more is forgotten."""


def compute_mark(owner: Object, gvk: GroupVersionKind, key: ObjectKey) -> str:
    """The mark for one object."""
    return compute_short_hash(str(owner["metadata"]["uid"]), *gvk.group_kind, *key)


def read_marks(owner: Object, annotation: str = CREATED) -> list[str]:
    """The marks that a custom resource has, the oldest first; none where somebody has written something else."""
    annotations = owner["metadata"].get("annotations")
    text = annotations.get(annotation) if isinstance(annotations, dict) else None
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except (ValueError, RecursionError):
        return []
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


async def plan_marks(plan: ResourcePlan, owner: Object, reader: ObjectReader) -> list[str] | None:
    """What the annotation is to hold after the components of the plan have run; None when that is what it holds.

    Only what is really there is marked: a component may have stopped before it made an object.

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
    spare = len(marks) - MAX_MARKS_LENGTH
    forgotten = set([each for each in marks if each not in current][: max(0, spare)])
    return [each for each in marks if each not in forgotten]

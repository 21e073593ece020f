"""How kubectl moves from client-side to server-side apply: through the annotation in which the former keeps its record.

What that annotation lists and the live object still has was applied by kubectl, though ``managedFields`` calls it an
update; so a server-side apply by kubectl may take it without a conflict, and keeps the annotation up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from konverge.apply.comparison import compare
from konverge.apply.fields import EMPTY, FieldSet, encoded
from konverge.apply.mistakes import mistakes_of
from konverge.apply.schema import Schema
from konverge.apply.structure import field_set_of
from konverge.kube import Object
from konverge.kube.secrets import LAST_APPLIED

__all__ = ["KUBECTL", "with_last_applied", "without_client_side"]

KUBECTL = "kubectl"
"""The field manager of kubectl's server-side apply; no other is treated so."""


_Manager = TypeVar("_Manager")


def _annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def without_client_side(
    conflicts: Mapping[_Manager, FieldSet], live: Object, schema: Schema
) -> dict[_Manager, FieldSet]:
    """The conflicts but for fields that kubectl applied on the client side, and that nobody has changed since."""
    allowed = _applied_fields(live, schema)
    left = {manager: fields - allowed for manager, fields in conflicts.items()}
    return {manager: fields for manager, fields in left.items() if fields}


def _applied_fields(live: Object, schema: Schema) -> FieldSet:
    record = _annotations(live).get(LAST_APPLIED)
    try:
        applied = msgspec.json.decode(record) if isinstance(record, str) and record else None
    except msgspec.DecodeError:
        return EMPTY
    if not isinstance(applied, dict) or applied.get("apiVersion") != live.get("apiVersion"):
        return EMPTY
    if mistakes_of(applied, schema):
        return EMPTY
    changes = compare(applied, live, schema)
    return field_set_of(applied, schema) - changes.modified - changes.added - changes.removed


def with_last_applied(stored: Object, applied: Object) -> Object:
    """The object with the annotation, if it has one, set to what was applied."""
    if not _annotations(stored).get(LAST_APPLIED):
        return stored
    metadata = dict(applied.get("metadata") or {})
    if "annotations" in metadata:
        kept = {name: value for name, value in _annotations(applied).items() if name != LAST_APPLIED}
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    record = encoded({**applied, "metadata": metadata}) + "\n"
    annotations = {**_annotations(stored), LAST_APPLIED: record}
    return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}

"""How kubectl moves from client-side to server-side apply: through the annotation in which the former keeps its record.

What that annotation lists and the live object still has was applied by kubectl, though ``managedFields`` calls it an
update; so a server-side apply by kubectl may take it without a conflict, and keeps the annotation up to date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from konverge.apply.field_comparison import compare
from konverge.apply.field_set import EMPTY, FieldSet, encode_value
from konverge.apply.schema import Schema
from konverge.apply.schema_errors import find_schema_errors
from konverge.apply.typed_values import build_field_set
from konverge.kube import Object
from konverge.kube.secret_redaction import LAST_APPLIED

__all__ = ["KUBECTL", "remove_client_side_conflicts", "with_last_applied"]

KUBECTL = "kubectl"
"""The field manager of kubectl's server-side apply; no other is treated so."""


_Manager = TypeVar("_Manager")


def _read_annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def remove_client_side_conflicts(
    conflicts: Mapping[_Manager, FieldSet], live: Object, schema: Schema
) -> dict[_Manager, FieldSet]:
    """The conflicts but for fields that kubectl applied on the client side, and that nobody has changed since."""
    allowed = _read_client_side_fields(live, schema)
    left = {manager: fields - allowed for manager, fields in conflicts.items()}
    return {manager: fields for manager, fields in left.items() if fields}


def _read_client_side_fields(live: Object, schema: Schema) -> FieldSet:
    record = _read_annotations(live).get(LAST_APPLIED)
    try:
        applied = msgspec.json.decode(record) if isinstance(record, str) and record else None
    except msgspec.DecodeError:
        return EMPTY
    if not isinstance(applied, dict) or applied.get("apiVersion") != live.get("apiVersion"):
        return EMPTY
    if find_schema_errors(applied, schema):
        return EMPTY
    changes = compare(applied, live, schema)
    return build_field_set(applied, schema) - changes.modified - changes.added - changes.removed


def with_last_applied(stored: Object, applied: Object) -> Object:
    """The object with the annotation, if it has one, set to what was applied."""
    if not _read_annotations(stored).get(LAST_APPLIED):
        return stored
    metadata = dict(applied.get("metadata") or {})
    if "annotations" in metadata:
        kept = {name: value for name, value in _read_annotations(applied).items() if name != LAST_APPLIED}
        metadata["annotations"] = kept
        if not kept:
            del metadata["annotations"]
    record = encode_value({**applied, "metadata": metadata}) + "\n"
    annotations = {**_read_annotations(stored), LAST_APPLIED: record}
    return {**stored, "metadata": {**stored["metadata"], "annotations": annotations}}

"""The migration of kubectl from client-side to server-side apply, through the last-applied annotation.

If a field in that annotation is unchanged in the live object, kubectl applied it, although ``managedFields`` records an
update. So a server-side apply by kubectl may take the field without a conflict. It also keeps the annotation up to
date.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from konverge._internal.apply.field_comparison import compare
from konverge._internal.apply.field_set import EMPTY, FieldSet, encode_value
from konverge._internal.apply.schema import Schema
from konverge._internal.apply.schema_errors import find_schema_errors
from konverge._internal.apply.typed_values import build_field_set
from konverge._internal.kube import Object
from konverge._internal.kube.secret_redaction import LAST_APPLIED

__all__ = ["KUBECTL", "remove_client_side_conflicts", "with_last_applied"]

KUBECTL = "kubectl"
"""The field manager of kubectl's server-side apply; only this manager gets the special treatment."""


_Manager = TypeVar("_Manager")


def _read_annotations(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def remove_client_side_conflicts(
    conflicts: Mapping[_Manager, FieldSet], live: Object, schema: Schema
) -> dict[_Manager, FieldSet]:
    """Return the conflicts without fields that kubectl applied on the client side and that are unchanged since."""
    allowed = _read_client_side_fields(live, schema)
    remaining = {manager: fields - allowed for manager, fields in conflicts.items()}
    return {manager: fields for manager, fields in remaining.items() if fields}


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
    """Return the object with its last-applied annotation, if any, set to the applied object."""
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

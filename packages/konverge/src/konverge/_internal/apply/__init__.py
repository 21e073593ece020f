"""Server-side apply as data: the effect of a write to a Kubernetes object, computed without a server.

The inputs are a live object, the desired object of a manager, and the schema of the kind. The outputs are the merged
object with its ``managedFields``, the conflicts, or the proof that no write is necessary. The engine uses it to omit
requests that would change nothing; the embedded cluster uses it to serve apply. Everything here is pure: no I/O, and
time is an argument. The real API server decides what is right: the tests send the same requests to both.
"""

from konverge._internal.apply.builtin_defaults import with_builtin_defaults
from konverge._internal.apply.builtin_schemas import (
    build_custom_resource_schema,
    find_builtin_schema,
    list_builtin_kinds,
)
from konverge._internal.apply.drift import HIDDEN, Difference, find_drift
from konverge._internal.apply.field_set import FieldSet
from konverge._internal.apply.merge import ApplyConflictError, server_side_apply, track_update
from konverge._internal.apply.normalization import normalize, to_stored_form
from konverge._internal.apply.schema import ABSENT, Schema
from konverge._internal.apply.structural_schema import remove_meaningless_nulls, with_schema_defaults

__all__ = [
    "ABSENT",
    "HIDDEN",
    "ApplyConflictError",
    "Difference",
    "FieldSet",
    "Schema",
    "build_custom_resource_schema",
    "find_builtin_schema",
    "find_drift",
    "list_builtin_kinds",
    "normalize",
    "remove_meaningless_nulls",
    "server_side_apply",
    "to_stored_form",
    "track_update",
    "with_builtin_defaults",
    "with_schema_defaults",
]

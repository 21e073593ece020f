"""Server-side apply as data: what a write to a Kubernetes object means, without a server.

In come a live object, what somebody wants, and the schema of the kind; out come the merged object with its
``managedFields``, the conflicts, or the proof that nothing need be written. The engine uses it to send no request
that would change nothing; the embedded cluster uses it to serve apply. Everything here is pure: no I/O, and time is
an argument. The real API server is the judge: the tests put the same questions to both.
"""

from konverge.apply.builtin_schemas import builtin_kinds, builtin_schema, custom_resource_schema
from konverge.apply.defaults import with_defaults
from konverge.apply.fields import FieldSet
from konverge.apply.matches import HIDDEN, Difference, differences
from konverge.apply.merge import ApplyConflict, server_side_apply, track_update
from konverge.apply.normal import normalize, stored_form
from konverge.apply.schema import ABSENT, Schema
from konverge.apply.structural import with_schema_defaults, without_meaningless_nulls

__all__ = [
    "ABSENT",
    "HIDDEN",
    "ApplyConflict",
    "Difference",
    "FieldSet",
    "Schema",
    "builtin_kinds",
    "builtin_schema",
    "custom_resource_schema",
    "differences",
    "normalize",
    "server_side_apply",
    "stored_form",
    "track_update",
    "with_defaults",
    "with_schema_defaults",
    "without_meaningless_nulls",
]

"""Custom resources as Python classes: declared once, served by a cluster, decoded for a reconcile.

In comes a dataclass, an attrs class or a `msgspec.Struct` under `@custom_resource`; out come the
CustomResourceDefinition with its structural schema (`crd_manifest`), instances (`decode`) and JSON (`encode`). A field
``tracing_enabled`` is ``tracingEnabled`` in JSON, everywhere.

Invariants: the same class gives the same bytes of manifest; what the schema lets through decodes, and a default means
the same to the server as to Python.
"""

from konverge.crd.constraints import Rule, list_map, rules
from konverge.crd.convert import decode, encode
from konverge.crd.definition import Definition, PrintColumn, custom_resource, definition_of
from konverge.crd.manifest import crd_manifest
from konverge.crd.metadata import Metadata

__all__ = [
    "Definition",
    "Metadata",
    "PrintColumn",
    "Rule",
    "crd_manifest",
    "custom_resource",
    "decode",
    "definition_of",
    "encode",
    "list_map",
    "rules",
]

"""Custom resources as Python classes: declared once, served by a cluster, decoded for a reconcile.

In comes a dataclass, an attrs class, a `msgspec.Struct` or a pydantic model under `@custom_resource`; out come the
CustomResourceDefinition with its structural schema (`crd_manifest`), instances (`decode`) and JSON (`encode`). A field
``tracing_enabled`` is ``tracingEnabled`` in JSON, everywhere. Several versions of a kind are a class each. A kind that
is known by a schema alone gets a class from `declared_resource`.

Invariants: the same class gives the same bytes of manifest; what the schema lets through decodes, and a default means
the same to the server as to Python.
"""

from konverge.crd.constraints import Rule, atomic, class_rules, embedded_resource, immutable, list_map, rules
from konverge.crd.convert import decode, encode
from konverge.crd.declared import PlainResource, declared_resource
from konverge.crd.definition import Definition, PrintColumn, custom_resource, definition_of
from konverge.crd.manifest import crd_manifest
from konverge.crd.metadata import Metadata
from konverge.crd.names import plural_of
from konverge.crd.samples import Samples, sample_objects
from konverge.crd.subresources import Scale

__all__ = [
    "Definition",
    "Metadata",
    "PlainResource",
    "PrintColumn",
    "Rule",
    "Samples",
    "Scale",
    "atomic",
    "class_rules",
    "crd_manifest",
    "custom_resource",
    "declared_resource",
    "decode",
    "definition_of",
    "embedded_resource",
    "encode",
    "immutable",
    "list_map",
    "plural_of",
    "rules",
    "sample_objects",
]

"""Custom resources as Python classes: declared once, served by a cluster, decoded for a reconcile.

The input is a dataclass, an attrs class, a `msgspec.Struct` or a pydantic model with `@custom_resource`. The output is
the CustomResourceDefinition with its structural schema (`crd_manifest`), instances (`decode`) and JSON (`encode`). A
field ``tracing_enabled`` is always ``tracingEnabled`` in JSON. Each version of a kind has its own class. For a kind
with only a schema, `unstructured_resource` creates a class.

Invariants: the same class gives the same bytes of the manifest. An object that the schema accepts can be decoded. A
default has the same meaning for the server and for Python.
"""

from konverge._internal.crd.api_names import to_plural
from konverge._internal.crd.codec import decode, encode
from konverge._internal.crd.constraints import (
    CelRule,
    atomic,
    class_rules,
    embedded_resource,
    immutable,
    list_map,
    rules,
)
from konverge._internal.crd.definition import PrintColumn, ResourceDefinition, custom_resource, find_definition
from konverge._internal.crd.manifest import crd_manifest
from konverge._internal.crd.plain_resources import is_plain, plain_resource
from konverge._internal.crd.resource_metadata import Metadata
from konverge._internal.crd.sample_objects import SampleObjects, build_sample_objects
from konverge._internal.crd.subresources import Scale
from konverge._internal.crd.unstructured import UnstructuredResource, unstructured_resource

__all__ = [
    "CelRule",
    "Metadata",
    "PrintColumn",
    "ResourceDefinition",
    "SampleObjects",
    "Scale",
    "UnstructuredResource",
    "atomic",
    "build_sample_objects",
    "class_rules",
    "crd_manifest",
    "custom_resource",
    "decode",
    "embedded_resource",
    "encode",
    "find_definition",
    "immutable",
    "is_plain",
    "list_map",
    "plain_resource",
    "rules",
    "to_plural",
    "unstructured_resource",
]

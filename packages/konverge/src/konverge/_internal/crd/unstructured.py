"""Custom resources with a schema instead of a class of the author."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from konverge._internal.crd.api_names import to_plural
from konverge._internal.crd.definition import AGE, READY, REASON, PrintColumn, ResourceDefinition, attach_definition
from konverge._internal.crd.resource_metadata import Metadata
from konverge._internal.crd.schema_validation import validate_schema
from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["UnstructuredResource", "unstructured_resource"]

_ANYTHING: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class UnstructuredResource(msgspec.Struct, frozen=True, kw_only=True):
    """An owner without a declaration in Python: spec and status are JSON."""

    metadata: Metadata
    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


def unstructured_resource(
    gvk: GroupVersionKind,
    schema: Mapping[Literal["spec", "status"], Object] | None,
    *,
    plural: str = "",
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    short_names: Sequence[str] = (),
    categories: Sequence[str] = (),
    print_columns: Sequence[PrintColumn] = (READY, REASON, AGE),
) -> type[UnstructuredResource]:
    """Create a class for a kind, equivalent to a class with `konverge.crd.custom_resource`.

    Args:
        gvk: The kind.
        schema: The structural schemas of spec and status; an absent one accepts any content. None for a kind whose
            definition the cluster already has: konverge then creates no definition.
        plural: The resource's name in URLs (default: derived from the kind).
        scope: Namespaced or Cluster.
        short_names: Short names for kubectl.
        categories: Groups of kinds for kubectl.
        print_columns: Columns of ``kubectl get`` after the name.

    Raises:
        konverge.errors.BuildError: The definition is invalid; the message lists every error.
    """
    cls: Any = msgspec.defstruct(
        gvk.kind, [], bases=(UnstructuredResource,), frozen=True, kw_only=True, module=__name__
    )
    given = schema or {}
    spec = given.get("spec") or _ANYTHING
    status = {"properties": {}, **(given.get("status") or _ANYTHING)}
    whole: Object = {"type": "object", "properties": {"spec": spec, "status": status}}
    if spec.get("required"):
        whole["required"] = ["spec"]
    definition = ResourceDefinition(
        cls=cls,
        schema=whole,
        gvk=gvk,
        plural=plural or to_plural(gvk.kind),
        namespaced=scope == "Namespaced",
        short_names=tuple(short_names),
        categories=tuple(categories),
        print_columns=tuple(print_columns),
        is_external=schema is None,
    )
    attach_definition(definition, validate_schema(whole))
    found: type[UnstructuredResource] = cls
    return found

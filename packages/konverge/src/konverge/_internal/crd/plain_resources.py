"""Kinds whose objects an author gets as JSON: built-in kinds, and custom resources of others without a class."""

from __future__ import annotations

from typing import Any, Literal

from konverge._internal.crd.definition import ResourceDefinition, attach_definition
from konverge._internal.kube import GroupVersionKind

__all__ = ["PlainResource", "is_plain", "plain_resource"]


class PlainResource:
    """The base of the classes for such kinds; they have no instances, because an object stays a ``dict``."""


def plain_resource(
    gvk: GroupVersionKind, *, plural: str, scope: Literal["Namespaced", "Cluster"]
) -> type[PlainResource]:
    """Create the class for a kind that the cluster already has.

    Args:
        gvk: The kind.
        plural: The resource's name in URLs.
        scope: Namespaced or Cluster.
    """
    cls: type[PlainResource] = type(gvk.kind, (PlainResource,), {})
    definition = ResourceDefinition(
        cls=cls,
        schema={"type": "object", "properties": {"spec": {"type": "object"}}},
        gvk=gvk,
        plural=plural,
        namespaced=scope == "Namespaced",
        short_names=(),
        categories=(),
        print_columns=(),
        is_external=True,
        has_own_status=False,
    )
    attach_definition(definition)
    return cls


def is_plain(cls: type[Any]) -> bool:
    """Return True for a class whose objects are JSON."""
    return issubclass(cls, PlainResource)

"""The ways in which an author can specify a kind."""

from __future__ import annotations

from typing import Any, TypeAlias

from konverge._internal.crd import find_definition
from konverge._internal.kube import GroupVersionKind

__all__ = ["Kind", "kind_of"]

Kind: TypeAlias = GroupVersionKind | str | type[Any]
"""A kind: ``"apps/v1/Deployment"``, ``"v1/Secret"``, a custom resource class, or a `GroupVersionKind`."""


def kind_of(kind: Kind) -> GroupVersionKind:
    """Return the kind of a name, a class or a `GroupVersionKind`.

    Raises:
        ValueError: The text is not ``group/version/Kind`` or ``version/Kind``.
        konverge.errors.BuildError: The class is not a custom resource.
    """
    if isinstance(kind, GroupVersionKind):
        return kind
    if not isinstance(kind, str):
        return find_definition(kind).gvk
    api_version, _, name = kind.rpartition("/")
    if api_version.count("/") > 1 or not api_version.strip("/") or not name[:1].isupper():
        raise ValueError(f'"{kind}" is not a kind: expected for example "apps/v1/Deployment" or "v1/Secret"')
    return GroupVersionKind.parse(api_version, name)

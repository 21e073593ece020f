"""The schemas of the built-in kinds, read from the data files beside this module on first use.

``tools/schemas/generate.py`` writes the files from a real server's OpenAPI v3 documents: one for each group-version,
and one for shared definitions. Each contains ``kinds`` (kind to definition) and ``definitions`` (name to OpenAPI node).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import msgspec

from konverge._internal.apply.schema import EMBEDDED, Schema, SchemaDefinitions
from konverge._internal.kube import GroupVersionKind

__all__ = ["build_custom_resource_schema", "find_builtin_schema", "list_builtin_kinds"]


class _DataFile(msgspec.Struct, frozen=True):
    kinds: dict[str, str]
    definitions: dict[str, dict[str, Any]]


_FOLDER = resources.files("konverge._internal.apply") / "builtin"

# The file with the definitions that the index assigns to no other file.
_SHARED = "shared"


class _SchemaIndex(msgspec.Struct, frozen=True):
    group_versions: dict[str, str]
    packages: dict[str, str]


@cache
def _read_index() -> _SchemaIndex:
    return msgspec.json.decode((_FOLDER / "index.json").read_bytes(), type=_SchemaIndex)


@cache
def _read_data_file(name: str) -> _DataFile:
    return msgspec.json.decode((_FOLDER / f"{name}.json").read_bytes(), type=_DataFile)


def _find_definition(name: str) -> Mapping[str, Any] | None:
    package = name.rpartition(".")[0]
    return _read_data_file(_read_index().packages.get(package, _SHARED)).definitions.get(name)


_DEFINITIONS = SchemaDefinitions(_find_definition)


@cache
def find_builtin_schema(gvk: GroupVersionKind) -> Schema | None:
    """Return the schema of a built-in kind; None for a kind without a schema in this version of konverge."""
    file = _read_index().group_versions.get(gvk.api_version)
    name = _read_data_file(file).kinds.get(gvk.kind) if file is not None else None
    return _DEFINITIONS.find_schema(name) if name is not None else None


def list_builtin_kinds() -> tuple[GroupVersionKind, ...]:
    """List every kind that `find_builtin_schema` finds, sorted."""
    return tuple(
        sorted(
            GroupVersionKind.parse(api_version, kind)
            for api_version, file in _read_index().group_versions.items()
            for kind in _read_data_file(file).kinds
        )
    )


def build_custom_resource_schema(open_api_v3_schema: Mapping[str, Any] | None) -> Schema:
    """Build the schema of a custom resource's objects.

    Args:
        open_api_v3_schema: The schema in the CustomResourceDefinition. As in the API server, apiVersion, kind and
            metadata get their real schemas. None or an empty schema accepts anything.
    """
    spec = dict(open_api_v3_schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True})
    spec["properties"] = {**EMBEDDED, **(spec.get("properties") or {}), "metadata": EMBEDDED["metadata"]}
    return Schema(spec, _DEFINITIONS)

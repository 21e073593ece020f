"""One module for custom resources: a class for each served version of each kind, and for the objects inside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge._internal.kube import GroupVersionKind
from konverge._internal.typegen.annotations import ANY_MAPPING, Annotation
from konverge._internal.typegen.class_names import ClassNames, build_class_name
from konverge._internal.typegen.module_source import ModuleSource, TypedDictClass, TypedDictField, with_kind_fields
from konverge._internal.typegen.schema_translation import (
    SchemaPath,
    SchemaTranslator,
    format_name,
    format_value,
    has_arbitrary_fields,
)

__all__ = ["generate_custom_resource_module"]

_API_VERSION = "apiextensions.k8s.io/v1"
_VERSION = re.compile(r"v([0-9]{1,9})(?:(alpha|beta)([0-9]{1,9}))?")
_STABILITIES = {"alpha": 0, "beta": 1, None: 2}

_DOCSTRING = """Custom resources as TypedDicts, for type checkers and editors.

Written by ``konverge types`` from their CustomResourceDefinitions; not to be edited.
"""


@dataclass(frozen=True, slots=True)
class _ServedVersion:
    """One served version of a kind."""

    gvk: GroupVersionKind
    schema: Mapping[str, Any]
    path: SchemaPath


def generate_custom_resource_module(definitions: Iterable[Mapping[str, Any]]) -> str:
    """Return the text of a module with the kinds of CustomResourceDefinitions.

    The version that a cluster prefers has the kind's name, ``Certificate``; other names end with the version,
    ``CertificateV1beta1``. If two groups have a kind of the same name, both names begin with the group.

    Args:
        definitions: The definitions of a file or a cluster; the last one of the same group, kind and version wins.

    Raises:
        konverge.errors.ConfigurationError: An object is not a CustomResourceDefinition, or the result is too large.
    """
    served = {version.gvk: version for definition in definitions for version in _iter_served_versions(definition)}
    # Newest first, so that the first one of a kind is the preferred one.
    ordered = sorted(served.values(), key=lambda version: _version_rank(version.gvk.version), reverse=True)
    ordered.sort(key=lambda version: version.gvk.group_kind)
    names = ClassNames()
    # Before the classes of nested objects, whose names get a number in case of a conflict.
    kind_names = [names.reserve(name) for name in _choose_class_names([version.gvk for version in ordered])]
    translation = SchemaTranslator(names)
    aliases: dict[str, Annotation] = {}
    for name, version in zip(kind_names, ordered, strict=True):
        if has_arbitrary_fields(version.schema):
            aliases[name] = ANY_MAPPING
        else:
            fields = translation.translate_fields(version.schema, name, version.path)
            translation.classes.append(TypedDictClass(name, _with_own_metadata(fields, version.gvk)))
    return ModuleSource(_DOCSTRING, translation.classes, aliases).render()


def _with_own_metadata(fields: tuple[TypedDictField, ...], gvk: GroupVersionKind) -> tuple[TypedDictField, ...]:
    """Return the fields with the server's own schema of metadata, which replaces that of the definition."""
    is_required = any(field.name == "metadata" and field.is_required for field in fields)
    metadata = TypedDictField("metadata", Annotation("meta_v1.ObjectMeta"), is_required)
    return with_kind_fields((*fields, metadata), gvk.api_version, gvk.kind)


def _iter_served_versions(definition: Mapping[str, Any]) -> Iterator[_ServedVersion]:
    named = definition.get("metadata")
    name = named.get("name") if isinstance(named, Mapping) else None
    whole = SchemaPath(f"CustomResourceDefinition {format_name(name) if isinstance(name, str) else format_value(name)}")
    if definition.get("apiVersion") != _API_VERSION:
        raise whole.child("apiVersion").build_error(_API_VERSION, definition.get("apiVersion"))
    spec, place = _require_mapping(definition, "spec", whole)
    names, place_of_names = _require_mapping(spec, "names", place)
    group, kind = _require_text(spec, "group", place), _require_text(names, "kind", place_of_names)
    versions = spec.get("versions")
    if not isinstance(versions, list):
        raise place.child("versions").build_error("a list", versions)
    for index, version in enumerate(versions):
        of = place.child("versions").child(f"[{index}]")
        if not isinstance(version, Mapping):
            raise of.build_error("a mapping", version)
        if version.get("served") is not True:
            continue
        validation, of_validation = _require_mapping(version, "schema", of)
        schema, _ = _require_mapping(validation, "openAPIV3Schema", of_validation)
        gvk = GroupVersionKind(group, _require_text(version, "name", of), kind)
        yield _ServedVersion(gvk, schema, SchemaPath(f"{whole}, version {format_name(gvk.version)}"))


def _require_mapping(node: Mapping[str, Any], name: str, path: SchemaPath) -> tuple[Mapping[str, Any], SchemaPath]:
    found, below = node.get(name), path.child(name)
    if not isinstance(found, Mapping):
        raise below.build_error("a mapping", found)
    return found, below


def _require_text(node: Mapping[str, Any], name: str, path: SchemaPath) -> str:
    found = node.get(name)
    if not (isinstance(found, str) and found):
        raise path.child(name).build_error("a name", found)
    return found


def _version_rank(version: str) -> tuple[int, int, int, str]:
    """Return a sort key: other names, then alpha, beta and stable, older before newer (the API server's order)."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return -1, 0, 0, version
    major, stability, minor = match.groups()
    return _STABILITIES[stability], int(major), int(minor or 0), version


def _choose_class_names(kinds: Sequence[GroupVersionKind]) -> Iterator[str]:
    """Yield the class name of each kind; the preferred version of a kind comes first."""
    groups: dict[str, set[str]] = {}
    for gvk in kinds:
        groups.setdefault(gvk.kind, set()).add(gvk.group)
    preferred: set[tuple[str, str]] = set()
    for gvk in kinds:
        parts = [gvk.kind] if len(groups[gvk.kind]) == 1 else [gvk.group.partition(".")[0], gvk.kind]
        yield build_class_name(*parts) if gvk.group_kind not in preferred else build_class_name(*parts, gvk.version)
        preferred.add(gvk.group_kind)

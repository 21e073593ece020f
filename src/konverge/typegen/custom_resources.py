"""One module for custom resources: a class for each served version of each kind, and those of what it holds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from konverge.kube import GroupVersionKind
from konverge.typegen.annotations import ANY_MAPPING, Annotation
from konverge.typegen.modules import Field, Module, TypedDictClass, fields_of_kind
from konverge.typegen.names import Names, class_name
from konverge.typegen.schemas import Place, Translation, plain, shown, takes_any_fields

__all__ = ["custom_resource_module"]

_API_VERSION = "apiextensions.k8s.io/v1"
_VERSION = re.compile(r"v([0-9]{1,9})(?:(alpha|beta)([0-9]{1,9}))?")
_STAGES = {"alpha": 0, "beta": 1, None: 2}

_DOCSTRING = """Custom resources as TypedDicts, for type checkers and editors.

Written by ``konverge types`` from their CustomResourceDefinitions; not to be edited.
"""


@dataclass(frozen=True, slots=True)
class _Served:
    """One version of a kind."""

    gvk: GroupVersionKind
    schema: Mapping[str, Any]
    place: Place


def custom_resource_module(definitions: Iterable[Mapping[str, Any]]) -> str:
    """The text of a module with the kinds of CustomResourceDefinitions.

    The version that a cluster prefers has the kind's name, ``Certificate``; others say which they are,
    ``CertificateV1beta1``. Where two groups have a kind of one name, the names of both begin with their group's.

    Args:
        definitions: As a file or a cluster has them; of two with one group, kind and version the last counts.

    Raises:
        konverge.errors.ConfigurationError: One is no CustomResourceDefinition, or more than may come of one.
    """
    served = {each.gvk: each for definition in definitions for each in _served(definition)}
    # Newest first, so that the first one of a kind is the preferred one.
    ordered = sorted(served.values(), key=lambda each: _rank(each.gvk.version), reverse=True)
    ordered.sort(key=lambda each: each.gvk.group_kind)
    names = Names()
    # All of them before the first class of what they hold: that one gives way.
    taken = [names.take(name) for name in _class_names([each.gvk for each in ordered])]
    translation = Translation(names)
    aliases: dict[str, Annotation] = {}
    for name, each in zip(taken, ordered, strict=True):
        if takes_any_fields(each.schema):
            aliases[name] = ANY_MAPPING
        else:
            fields = translation.fields(each.schema, name, each.place)
            translation.classes.append(TypedDictClass(name, _with_own_metadata(fields, each.gvk)))
    return Module(_DOCSTRING, translation.classes, aliases).text()


def _with_own_metadata(fields: tuple[Field, ...], gvk: GroupVersionKind) -> tuple[Field, ...]:
    """The server puts its own schema in the place of a definition's for metadata."""
    is_required = any(field.name == "metadata" and field.is_required for field in fields)
    metadata = Field("metadata", Annotation("meta_v1.ObjectMeta"), is_required)
    return fields_of_kind((*fields, metadata), gvk.api_version, gvk.kind)


def _served(definition: Mapping[str, Any]) -> Iterator[_Served]:
    named = definition.get("metadata")
    name = named.get("name") if isinstance(named, Mapping) else None
    whole = Place(f"CustomResourceDefinition {plain(name) if isinstance(name, str) else shown(name)}")
    if definition.get("apiVersion") != _API_VERSION:
        raise whole.below("apiVersion").mistake(_API_VERSION, definition.get("apiVersion"))
    spec, place = _mapping(definition, "spec", whole)
    names, place_of_names = _mapping(spec, "names", place)
    group, kind = _text(spec, "group", place), _text(names, "kind", place_of_names)
    versions = spec.get("versions")
    if not isinstance(versions, list):
        raise place.below("versions").mistake("a list", versions)
    for index, version in enumerate(versions):
        of = place.below("versions").below(f"[{index}]")
        if not isinstance(version, Mapping):
            raise of.mistake("a mapping", version)
        if version.get("served") is not True:
            continue
        validation, of_validation = _mapping(version, "schema", of)
        schema, _ = _mapping(validation, "openAPIV3Schema", of_validation)
        gvk = GroupVersionKind(group, _text(version, "name", of), kind)
        yield _Served(gvk, schema, Place(f"{whole}, version {plain(gvk.version)}"))


def _mapping(node: Mapping[str, Any], name: str, place: Place) -> tuple[Mapping[str, Any], Place]:
    found, below = node.get(name), place.below(name)
    if not isinstance(found, Mapping):
        raise below.mistake("a mapping", found)
    return found, below


def _text(node: Mapping[str, Any], name: str, place: Place) -> str:
    found = node.get(name)
    if not (isinstance(found, str) and found):
        raise place.below(name).mistake("a name", found)
    return found


def _rank(version: str) -> tuple[int, int, int, str]:
    """Stable after beta after alpha, newer after older, anything else first (as the API server prefers versions)."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return -1, 0, 0, version
    major, stage, minor = found.groups()
    return _STAGES[stage], int(major), int(minor or 0), version


def _class_names(kinds: Sequence[GroupVersionKind]) -> Iterator[str]:
    """What each is to be called, of those that are ordered with the preferred version of a kind first."""
    groups: dict[str, set[str]] = {}
    for gvk in kinds:
        groups.setdefault(gvk.kind, set()).add(gvk.group)
    preferred: set[tuple[str, str]] = set()
    for gvk in kinds:
        parts = [gvk.kind] if len(groups[gvk.kind]) == 1 else [gvk.group.partition(".")[0], gvk.kind]
        yield class_name(*parts) if gvk.group_kind not in preferred else class_name(*parts, gvk.version)
        preferred.add(gvk.group_kind)

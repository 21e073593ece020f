"""Comparison of a CustomResourceDefinition in a cluster with that of a new version of an operator. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.upgrade.findings import Finding
from konverge._internal.upgrade.schema_diff import diff_schemas

__all__ = ["diff_definitions", "list_stored_versions", "list_versions", "read_schema", "storage_version"]

_MIGRATE = "rewrite the objects with konverge migrate-storage first"


def storage_version(definition: Object) -> str:
    """Return the version in which a definition stores objects; empty for none."""
    return next((str(version["name"]) for version in list_versions(definition) if version.get("storage")), "")


def list_versions(definition: Object) -> Sequence[Mapping[str, Any]]:
    """Return the declared versions."""
    versions: Sequence[Mapping[str, Any]] = (definition.get("spec") or {}).get("versions") or ()
    return versions


def list_stored_versions(definition: Object) -> tuple[str, ...]:
    """Return the versions in which objects may be stored."""
    return tuple((definition.get("status") or {}).get("storedVersions") or ())


def read_schema(version: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a version; empty without one."""
    schema: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def diff_definitions(live: Object, new: Object, *, converts: bool) -> Iterator[Finding]:
    """Yield the changes from the definition in the cluster to the new one.

    Args:
        live: The definition in the cluster, with its status.
        new: The definition of the new version of the operator.
        converts: True if the new version serves a conversion webhook.
    """
    yield from _diff_identity(live["spec"], new["spec"])
    yield from _diff_versions(live, new, converts=converts)
    before = {str(version["name"]): version for version in list_versions(live)}
    for version in list_versions(new):
        name = str(version["name"])
        if name in before:
            yield from _diff_subresources(before[name], version, name)
            yield from diff_schemas(read_schema(before[name]), read_schema(version), name)


def _diff_identity(live: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    was, now = live.get("scope"), new.get("scope")
    if was != now:
        yield Finding(
            "refused",
            "scope",
            f"changed from {was} to {now}",
            "impossible in place: give the kind another name, or delete the definition with all of its objects",
        )
    for name in ("kind", "listKind", "singular"):
        was, now = live["names"].get(name), new["names"].get(name)
        if was != now:
            change = f"changed from {was} to {now}"
            yield Finding(
                "refused" if name == "kind" else "breaking", f"names.{name}", change, "clients use the old name"
            )
    for name in ("shortNames", "categories"):
        if removed := sorted(set(live["names"].get(name) or ()) - set(new["names"].get(name) or ())):
            yield Finding("note", f"names.{name}", f"{', '.join(removed)} removed")


def _diff_versions(live: Object, new: Object, *, converts: bool) -> Iterator[Finding]:
    before = {str(version["name"]): version for version in list_versions(live)}
    after = {str(version["name"]): version for version in list_versions(new)}
    stored = list_stored_versions(live)
    for name, version in before.items():
        if name not in after:
            if name in stored:
                yield Finding(
                    "refused",
                    name,
                    "removed, but status.storedVersions contains it: objects may be stored in it",
                    _MIGRATE,
                )
            elif version.get("served"):
                yield Finding("breaking", name, "removed", "clients of this version fail")
            else:
                yield Finding("note", name, "removed; it was not served")
        elif version.get("served") and not after[name].get("served"):
            yield Finding("breaking", name, "no longer served", "clients of this version fail")
        elif after[name].get("deprecated") and not version.get("deprecated"):
            yield Finding("note", name, "deprecated: the server warns its clients")
    for name in stored:
        if name not in before and name not in after:
            yield Finding("refused", name, "status.storedVersions contains it, and no version declares it", _MIGRATE)
    for name in after:
        if name not in before:
            yield Finding("note", name, "added")
    was, now = storage_version(live), storage_version(new)
    if was != now:
        advice = f"run konverge migrate-storage {new['metadata']['name']} afterwards, before {was} is removed"
        yield Finding("note", now, f"becomes the storage version; it was {was}", advice)
    yield from _diff_conversion(live, len(after), converts=converts)


def _diff_conversion(live: Object, versions: int, *, converts: bool) -> Iterator[Finding]:
    was = (live["spec"].get("conversion") or {}).get("strategy") or "None"
    now = "Webhook" if converts else "None"
    if was == now:
        return
    if converts:
        yield Finding(
            "note",
            "conversion",
            "a webhook converts between the versions",
            "the operator must run with --webhooks and --register-webhooks before the storage version changes",
        )
    else:
        # With one version there is nothing to convert, except objects in a version that is gone.
        is_needed = versions > 1 or len(list_stored_versions(live)) > 1
        advice = "fields that the versions do not share are dropped"
        yield Finding("breaking" if is_needed else "note", "conversion", "no webhook converts any more", advice)


def _diff_subresources(was: Mapping[str, Any], now: Mapping[str, Any], name: str) -> Iterator[Finding]:
    before, after = was.get("subresources") or {}, now.get("subresources") or {}
    for subresource in ("status", "scale"):
        if subresource in before and subresource not in after:
            yield Finding("breaking", f"{name} /{subresource}", "subresource removed", "its clients fail")
        elif subresource in after and subresource not in before:
            breaks = subresource == "status"
            advice = "writes to the object no longer change its status" if breaks else ""
            yield Finding("breaking" if breaks else "note", f"{name} /{subresource}", "subresource added", advice)
        elif before.get(subresource) != after.get(subresource):
            yield Finding("breaking", f"{name} /{subresource}", "paths changed", "its clients read other fields")
    fields, kept = ({entry["jsonPath"] for entry in version.get("selectableFields") or ()} for version in (was, now))
    for path in sorted(fields - kept):
        yield Finding("breaking", f"{name} {path}", "no longer selectable", "field selectors with it fail")

"""The steps of a write, from the request body to the object to store; the caller stores it.

The order is that of the real server: read the body, record field ownership, restore the fields that the write cannot
change, validate the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge._internal.apply import FieldSet, server_side_apply, track_update
from konverge._internal.apply.schema_errors import find_schema_errors
from konverge._internal.kube import Object
from konverge.errors import BadRequestError, ServerError
from konverge_cluster._internal.embedded.admission_plugins import (
    run_create_plugins,
    run_update_plugins,
    stamp_template_generation,
)
from konverge_cluster._internal.embedded.object_decoding import FieldValidation, read_object
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.scale import get_replicas, has_owner
from konverge_cluster._internal.embedded.service_addresses import release_addresses
from konverge_cluster._internal.embedded.storage import Storage
from konverge_cluster._internal.embedded.storage_conversion import VersionConversion
from konverge_cluster._internal.embedded.strategies import prepare_create, prepare_update
from konverge_cluster._internal.embedded.validation.object_validation import check_create, check_update

__all__ = ["WriteAuthor", "begin_apply", "begin_create", "begin_update", "finish_create", "finish_update"]

_NOTHING = FieldSet.of(())
_UNNAMED = "unknown"
_DAEMON_SETS = "daemonsets.apps"
# Subresources whose writers own no fields.
_UNTRACKED = frozenset({"binding", "finalize"})


@dataclass(frozen=True, slots=True)
class WriteAuthor:
    """The author and the time of a write.

    Attributes:
        manager: The field manager.
        now: The time of the write.
    """

    manager: str
    now: datetime


def begin_create(
    resource: ServedResource, body: Object, author: WriteAuthor, storage: Storage, *, is_tracked: bool = False
) -> Object:
    """Return a new object as admission first receives it: with managed fields, and after the server's own plug-ins.

    Args:
        resource: The resource of the object.
        body: The object from `read_object`, with its namespace and name.
        author: The author of the write.
        storage: The storage with the classes that objects name.
        is_tracked: True if the body comes from an apply, which has recorded the field ownership.
    """
    obj = {**body, "metadata": {**body["metadata"]}}
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        obj["metadata"].pop(name, None)
    if resource.storage == _DAEMON_SETS:
        stamp_template_generation(obj)
    if not is_tracked:
        obj = track_update(None, obj, resource.schema, **_build_tracking_options(resource, author, ""))
    run_create_plugins(resource, obj, storage)
    return obj


def finish_create(resource: ServedResource, obj: Object, warnings: list[str], *, uid: str, now: datetime) -> Object:
    """Return a new object in its form for storage.

    Args:
        resource: The resource of the object.
        obj: The object after `begin_create` and the webhooks.
        warnings: Receives the warnings of the validation.
        uid: The UID of the new object.
        now: The creation time.

    Raises:
        InvalidError: The object violates a rule.
    """
    obj = {**obj, "metadata": {**obj["metadata"]}}
    prepare_create(resource, obj, uid=uid, now=now)
    check_create(resource, obj, warnings)
    return obj


def begin_update(
    resource: ServedResource, old: Object, body: Object, author: WriteAuthor, *, subresource: str = ""
) -> Object:
    """Return the object of an update as admission first receives it, not yet prepared and validated.

    Args:
        resource: The resource of the object.
        old: The stored object in the served form; not changed.
        body: The requested object from `read_object`.
        author: The author of the write.
        subresource: The subresource; empty for the object itself.
    """
    obj = _complete_identity(old, body)
    if subresource != "scale" and _find_undeclared(resource, body["metadata"], old, obj):
        # The real server cannot compare the fields of that manager: it forgets all managers.
        obj["metadata"].pop("managedFields", None)
    elif subresource in _UNTRACKED:
        if "managedFields" in old["metadata"]:
            obj["metadata"]["managedFields"] = old["metadata"]["managedFields"]
    elif subresource == "status":
        # The write gives ownership of nothing else, so the rest, most of the object, need not be compared.
        before, after = _keep_status_only(old), _keep_status_only(obj)
        obj["metadata"] = track_update(
            before, after, resource.schema, **_build_tracking_options(resource, author, subresource)
        )["metadata"]
    else:
        obj = track_update(old, obj, resource.schema, **_build_tracking_options(resource, author, subresource))
    if subresource == "scale":
        _record_scaling(resource, obj, is_owned=has_owner(resource, body))
    run_update_plugins(resource, old, obj, subresource)
    return obj


def _keep_status_only(obj: Object) -> Object:
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata", "status") if name in obj}


def _record_scaling(resource: ServedResource, obj: Object, *, is_owned: bool) -> None:
    """Record the author of a scaling as the real server does.

    The entry has no time and precedes the updates. Zero replicas have no owner: a Scale omits the number then.
    Replicas without an owner stay without.
    """
    entries = obj["metadata"].get("managedFields") or []
    scaling = [entry for entry in entries if entry.get("subresource") == "scale"]
    others = [entry for entry in entries if entry.get("subresource") != "scale"]
    for entry in scaling:
        entry.pop("time", None)
    first = next((at for at, entry in enumerate(others) if entry["operation"] == "Update"), len(others))
    kept = scaling if is_owned and get_replicas(resource, obj) else []
    obj["metadata"]["managedFields"] = [*others[:first], *kept, *others[first:]]


def begin_apply(
    resource: ServedResource,
    old: Object | None,
    body: Any,
    author: WriteAuthor,
    fields: FieldValidation,
    *,
    force: bool,
    subresource: str = "",
) -> Object:
    """Return the object of an apply, not yet prepared and validated: the body of a create or of an update.

    Args:
        resource: The resource of the object.
        old: The stored object in the served form; None if it does not exist.
        body: The applied configuration.
        author: The author of the write.
        fields: The handling of unknown fields.
        force: True to take fields from other managers.
        subresource: The subresource; empty for the object itself.

    Raises:
        BadRequestError: The configuration has another type.
        ApplyConflictError: Other managers own fields that the configuration changes.
        ServerError: A manager wrote in another version, whose schema lacks a field of the object.
    """
    gvk = resource.gvk
    if not isinstance(body, Mapping) or (body.get("apiVersion"), body.get("kind")) != (gvk.api_version, gvk.kind):
        version, kind = (body.get("apiVersion", ""), body.get("kind", "")) if isinstance(body, Mapping) else ("", "")
        group, _, version = str(version).rpartition("/")
        raise BadRequestError(f"invalid object type: {group}/{version}, Kind={kind}")
    fields.report_unknown(())
    undeclared = _find_undeclared(resource, old["metadata"], old) if old is not None else ""
    if undeclared:
        raise ServerError(undeclared, reason="", code=500)
    merged = server_side_apply(
        old, dict(body), resource.schema, force=force, **_build_tracking_options(resource, author, subresource)
    )
    obj = read_object(resource, merged, keeps_nulls=True)
    if old is not None:
        run_update_plugins(resource, old, obj, subresource)
    return obj


def finish_update(
    resource: ServedResource, old: Object, obj: Object, warnings: list[str], *, now: datetime, subresource: str = ""
) -> Object:
    """Return the result of an update or an apply in its form for storage.

    Args:
        resource: The resource of the object.
        old: The stored object in the served form.
        obj: The object after `begin_update` or `begin_apply` and the webhooks.
        warnings: Receives the warnings of the validation.
        now: The time of the write.
        subresource: The subresource; empty for the object itself.

    Raises:
        InvalidError: The object violates a rule.
    """
    obj = _complete_identity(old, obj)
    sent = {**obj, "metadata": dict(obj["metadata"])}
    prepare_update(resource, old, obj, now=now, subresource=subresource)
    if resource.storage == _DAEMON_SETS:
        stamp_template_generation(obj, old)
    if resource.storage == "services" and not subresource:
        release_addresses(old, obj)
    check_update(resource, old, obj, warnings, sent=sent, subresource=subresource)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return obj


def _find_undeclared(resource: ServedResource, metadata: Mapping[str, Any], *objects: Object) -> str:
    """Return the error of the objects in another version in which a manager wrote, or an empty string.

    Such a version of a custom resource can lack their fields, because the conversion strategy None converts nothing.
    """
    if not isinstance(resource.conversion, VersionConversion):
        return ""
    versions = {entry.get("apiVersion") for entry in metadata.get("managedFields") or ()}
    schemas = resource.conversion.schemas
    for version in sorted(versions & schemas.keys() - {resource.gvk.api_version}):
        for obj in objects:
            fields = {name: value for name, value in obj.items() if name != "metadata"}
            for error in find_schema_errors(fields, schemas[version]):
                return error
    return ""


def _build_tracking_options(resource: ServedResource, author: WriteAuthor, subresource: str) -> dict[str, Any]:
    """Return the options for field ownership. ``status`` is a normal field if it is not a subresource."""
    is_plain = resource.is_custom and "status" not in resource.mapping.subresources
    return {
        "manager": author.manager or _UNNAMED,
        "now": author.now,
        "subresource": subresource,
        "ignored": _NOTHING if is_plain and not subresource else None,
    }


def _complete_identity(old: Object, body: Object) -> Object:
    """Return the body with the identity fields that a client may omit."""
    metadata = dict(body.get("metadata") or {})
    before = old["metadata"]
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if not metadata.get(name) and name in before:
            metadata[name] = before[name]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name not in metadata and name in before:
            metadata[name] = before[name]
    return {**body, "metadata": metadata}

"""How an object is written, from what a client sent to what is stored; the store itself is the caller's.

The order is the real server's: read the body, note who changes what, carry over what the write may not change, hold the
result to the rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge.apply import FieldSet, server_side_apply, track_update
from konverge.errors import BadRequestError
from konverge.kube import Object
from konverge_cluster.embedded.admission_plugins import run_plugins, stamp_template_generation
from konverge_cluster.embedded.object_decoding import FieldValidation, read_object
from konverge_cluster.embedded.resource_registry import ServedResource
from konverge_cluster.embedded.service_addresses import release_addresses
from konverge_cluster.embedded.strategies import prepare_create, prepare_update
from konverge_cluster.embedded.validation.object_validation import check_create, check_update

__all__ = ["WriteAuthor", "begin_apply", "begin_create", "begin_update", "finish_create", "finish_update"]

_NOTHING = FieldSet.of(())
_UNNAMED = "unknown"
_DAEMON_SETS = "daemonsets.apps"
# Subresources whose writers own nothing.
_UNTRACKED = frozenset({"binding", "finalize"})


@dataclass(frozen=True, slots=True)
class WriteAuthor:
    """Who writes, and when.

    Attributes:
        manager: The field manager.
        now: The time of the write.
    """

    manager: str
    now: datetime


def begin_create(resource: ServedResource, body: Object, author: WriteAuthor, *, is_tracked: bool = False) -> Object:
    """A new object as admission sees it first: who wrote what is noted, and the server's plug-ins have had their say.

    Args:
        resource: What it is.
        body: The object as `read_object` gave it, with its namespace and name.
        author: Who creates it.
        is_tracked: The body came from an apply, which has noted who owns what.
    """
    obj = {**body, "metadata": {**body["metadata"]}}
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        obj["metadata"].pop(name, None)
    if resource.storage == _DAEMON_SETS:
        stamp_template_generation(obj)
    if not is_tracked:
        obj = track_update(None, obj, resource.schema, **_build_tracking_options(resource, author, ""))
    run_plugins(resource, obj)
    return obj


def finish_create(resource: ServedResource, obj: Object, *, uid: str, now: datetime) -> Object:
    """A new object as it is to be stored.

    Args:
        resource: What it is.
        obj: The object as it was begun, and as webhooks left it.
        uid: What its UID will be.
        now: When it is created.

    Raises:
        InvalidError: It breaks a rule.
    """
    obj = {**obj, "metadata": {**obj["metadata"]}}
    prepare_create(resource, obj, uid=uid, now=now)
    check_create(resource, obj)
    return obj


def begin_update(
    resource: ServedResource, old: Object, body: Object, author: WriteAuthor, *, subresource: str = ""
) -> Object:
    """An object as an update makes it and admission sees it first, not yet prepared and checked.

    Args:
        resource: What it is.
        old: The object as stored, in the served form; not changed.
        body: What it is to be, as `read_object` gave it.
        author: Who changes it.
        subresource: What part of it is written, empty for the object itself.
    """
    obj = _complete_identity(old, body)
    if subresource in _UNTRACKED:
        if "managedFields" in old["metadata"]:
            obj["metadata"]["managedFields"] = old["metadata"]["managedFields"]
    elif subresource == "status":
        # Nobody comes to own anything else by this, so the rest, most of the object, need not be compared.
        before, after = _keep_status_only(old), _keep_status_only(obj)
        obj["metadata"] = track_update(
            before, after, resource.schema, **_build_tracking_options(resource, author, subresource)
        )["metadata"]
    else:
        obj = track_update(old, obj, resource.schema, **_build_tracking_options(resource, author, subresource))
    if subresource == "scale":
        _record_scaling(resource, obj)
    return obj


def _keep_status_only(obj: Object) -> Object:
    return {name: obj[name] for name in ("apiVersion", "kind", "metadata", "status") if name in obj}


def _record_scaling(resource: ServedResource, obj: Object) -> None:
    """Record who scaled as the real server does.

    Without a time, before the other updates; of a custom resource, not at all.
    """
    entries = obj["metadata"].get("managedFields") or []
    scaling = [entry for entry in entries if entry.get("subresource") == "scale"]
    others = [entry for entry in entries if entry.get("subresource") != "scale"]
    for entry in scaling:
        entry.pop("time", None)
    first = next((at for at, entry in enumerate(others) if entry["operation"] == "Update"), len(others))
    kept = [] if resource.is_custom else scaling
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
    """What an apply makes of an object, not yet prepared and checked: the body of a create or of an update.

    Args:
        resource: What it is.
        old: The object as stored, in the served form; None when there is none.
        body: The applied configuration.
        author: Who applies it.
        fields: What becomes of unknown fields.
        force: Whether fields are taken from other managers.
        subresource: What part of it is written, empty for the object itself.

    Raises:
        BadRequestError: The configuration is of another type.
        ApplyConflictError: Other managers own fields that it changes.
    """
    gvk = resource.gvk
    if not isinstance(body, Mapping) or (body.get("apiVersion"), body.get("kind")) != (gvk.api_version, gvk.kind):
        version, kind = (body.get("apiVersion", ""), body.get("kind", "")) if isinstance(body, Mapping) else ("", "")
        group, _, version = str(version).rpartition("/")
        raise BadRequestError(f"invalid object type: {group}/{version}, Kind={kind}")
    fields.report_unknown(())
    merged = server_side_apply(
        old, dict(body), resource.schema, force=force, **_build_tracking_options(resource, author, subresource)
    )
    return read_object(resource, merged, keeps_nulls=True)


def finish_update(resource: ServedResource, old: Object, obj: Object, *, subresource: str = "") -> Object:
    """What an update or an apply made of a stored object, as it is to be stored.

    Raises:
        InvalidError: It breaks a rule.
    """
    obj = _complete_identity(old, obj)
    sent = {**obj, "metadata": dict(obj["metadata"])}
    prepare_update(resource, old, obj, subresource=subresource)
    if resource.storage == _DAEMON_SETS:
        stamp_template_generation(obj, old)
    if resource.storage == "services" and not subresource:
        release_addresses(old, obj)
    check_update(resource, old, obj, sent=sent, subresource=subresource)
    obj["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
    return obj


def _build_tracking_options(resource: ServedResource, author: WriteAuthor, subresource: str) -> dict[str, Any]:
    """How to note who changes what. ``status`` is a field like any other where it is no subresource."""
    is_plain = resource.is_custom and "status" not in resource.mapping.subresources
    return {
        "manager": author.manager or _UNNAMED,
        "now": author.now,
        "subresource": subresource,
        "ignored": _NOTHING if is_plain and not subresource else None,
    }


def _complete_identity(old: Object, body: Object) -> Object:
    """The body with the identity that a client may leave out."""
    metadata = dict(body.get("metadata") or {})
    before = old["metadata"]
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        if not metadata.get(name) and name in before:
            metadata[name] = before[name]
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if name not in metadata and name in before:
            metadata[name] = before[name]
    return {**body, "metadata": metadata}

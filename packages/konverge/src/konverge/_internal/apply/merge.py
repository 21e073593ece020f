"""Server-side apply, and the tracking of ownership for every other write, as in the API server.

Both functions take the live object and return the object to store, including ``metadata.managedFields``. They validate
only what a merge needs. They set no identity and no versions, and do not perform the work of the kind's endpoint
(allocation of addresses, reset of ``status``): the calling server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from konverge._internal.apply import managed_fields
from konverge._internal.apply.csa_upgrade import KUBECTL, remove_client_side_conflicts, with_last_applied
from konverge._internal.apply.field_comparison import FieldComparison, compare
from konverge._internal.apply.field_set import EMPTY, FieldSet, format_path
from konverge._internal.apply.managed_fields import Manager, ManagerEntries, ManagerEntry
from konverge._internal.apply.normalization import to_stored_form
from konverge._internal.apply.reset_fields import find_reset_fields
from konverge._internal.apply.round_trip import round_trip_value
from konverge._internal.apply.schema import Schema
from konverge._internal.apply.schema_errors import find_schema_errors
from konverge._internal.apply.typed_values import (
    build_field_set,
    is_same_value,
    merge_values,
    remove_fields,
    with_named_parents,
)
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.kube.timestamps import format_time
from konverge.errors import BadRequestError, ConflictError, ServerError

__all__ = ["ApplyConflictError", "server_side_apply", "track_update"]

# The manager of fields that existed before the first apply.
_BEFORE_FIRST_APPLY = "before-first-apply"


class ApplyConflictError(ConflictError):
    """An apply without force would change fields that other managers own (status 409).

    Attributes:
        conflicts: The manager (in the server's format) and the path of each conflict.
        fields: The paths of the conflicts by manager.
    """

    def __init__(self, conflicts: Mapping[Manager, FieldSet]) -> None:
        self.fields = conflicts
        pairs = [(manager, path) for manager in sorted(conflicts) for path in conflicts[manager].iter_paths()]
        self.conflicts = tuple((str(manager), format_path(path)) for manager, path in pairs)
        causes = [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path}
            for manager, path in self.conflicts
        ]
        super().__init__(_format_conflicts(self.conflicts), details={"causes": causes})


def _format_conflicts(conflicts: tuple[tuple[str, str], ...]) -> str:
    if len(conflicts) == 1:
        manager, path = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {path}"
    lines: dict[str, list[str]] = {}
    for manager, path in conflicts:
        lines.setdefault(manager, [f"conflicts with {manager}:"]).append(f"- {path}")
    text = "\n".join(line for manager_lines in lines.values() for line in manager_lines)
    return f"Apply failed with {len(conflicts)} conflicts: {text}"


def server_side_apply(
    live: Object | None,
    applied: Object,
    schema: Schema,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str = "",
    ignored: FieldSet | None = None,
) -> Object:
    """Apply a configuration and return the object to store.

    Args:
        live: The stored object; None if it does not exist.
        applied: The configuration, as it was received.
        schema: The schema of the kind.
        manager: The field manager.
        force: Whether to take fields over from other managers instead of raising an error.
        now: The time for the manager's entry if anything changed.
        subresource: The subresource of the write; empty for the object itself.
        ignored: Paths that this endpoint neither writes nor tracks (``status`` on the object itself); None for the
            usual paths of the kind's endpoint.

    Returns:
        A new object with the defaults of its kind; it may share parts with the given ones. If nothing changed, it
        equals `live`, including the times in managedFields. Fields that the manager no longer applies and no other
        manager owns are removed.

    Raises:
        ApplyConflictError: Other managers own changed fields, and `force` is off.
        konverge.errors.BadRequestError: The configuration has managedFields.
        konverge.errors.ServerError: The configuration does not match the schema (the API server returns 500 then).
    """
    metadata = applied.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("managedFields") is not None:
        raise BadRequestError("metadata.managedFields must be nil")
    schema_errors = find_schema_errors(applied, schema)
    if schema_errors:
        raise ServerError(_format_schema_error(applied, schema_errors))
    ignored = find_reset_fields(GroupVersionKind.of(applied), subresource) if ignored is None else ignored
    before, managed = _split_managed_fields(live, applied, schema)
    if live is not None and not managed:
        updater = Manager.updater(_BEFORE_FIRST_APPLY, str(applied["apiVersion"]), subresource)
        _track(_build_empty_object(applied, schema), before, schema, managed, updater, ignored, now)
    applier = Manager.applier(manager, subresource)
    try:
        after, managed = _apply(before, applied, schema, managed, applier, ignored, force=force)
    except ApplyConflictError as conflict:
        left = remove_client_side_conflicts(conflict.fields, before, schema) if manager == KUBECTL else conflict.fields
        if left:
            raise ApplyConflictError(left) from None
        after, managed = _apply(before, applied, schema, managed, applier, ignored, force=True)
    if not is_same_value(before, after) and applier in managed:
        managed[applier] = managed_fields.touch_entry(managed[applier], now)
    stored = to_stored_form(after, schema)
    if manager == KUBECTL:
        stored = with_last_applied(stored, applied)
    return _join_managed_fields(live, stored, managed)


def track_update(
    old: Object | None,
    new: Object,
    schema: Schema,
    *,
    manager: str,
    now: datetime,
    subresource: str = "",
    ignored: FieldSet | None = None,
) -> Object:
    """Track the ownership of changed fields in a write that is not an apply (create, update, patch).

    Args:
        old: The stored object; None on create.
        new: The object to store, including defaults; its managedFields, if any, are those of the request.
        schema: The schema of the kind.
        manager: The field manager.
        now: The time for the manager's entry if anything changed.
        subresource: The subresource of the write; empty for the object itself.
        ignored: The same as for `server_side_apply`.

    Returns:
        A new object, with managedFields.
    """
    ignored = find_reset_fields(GroupVersionKind.of(new), subresource) if ignored is None else ignored
    before, managed = _split_managed_fields(old, new, schema)
    managed = _choose_managed_fields(new, managed, subresource)
    after = _remove_managed_fields(new)
    if managed or old is None:  # An object without managers stays so until the first apply.
        updater = Manager.updater(manager, str(new["apiVersion"]), subresource)
        _track(before, after, schema, managed, updater, ignored, now)
        managed_fields.cap_updaters(managed)
    return _join_managed_fields(old, after, managed)


def _apply(
    before: Object,
    applied: Object,
    schema: Schema,
    managed: ManagerEntries,
    applier: Manager,
    ignored: FieldSet,
    *,
    force: bool,
) -> tuple[Object, ManagerEntries]:
    """Return the merged object and its managers."""
    managed = dict(managed)
    last = managed.get(applier)
    fields = build_field_set(applied, schema).subtract_trees(ignored)
    managed[applier] = ManagerEntry(fields, str(applied["apiVersion"]), last.time if last is not None else None)
    after = merge_values(before, applied, schema)
    if last is not None:
        after = _prune(after, last.fields, managed, schema)
    _transfer_ownership(before, after, schema, managed, applier, ignored, force=force)
    managed_fields.strip_untracked_fields(managed, applier)
    return after, managed


def _track(
    before: Object,
    after: Object,
    schema: Schema,
    managed: ManagerEntries,
    updater: Manager,
    ignored: FieldSet,
    now: datetime,
) -> None:
    """Make the updater the owner of the changed fields, in place."""
    # A temporary manager keeps the updater's present fields out of the transfer; both are merged afterwards.
    current = Manager("", managed_fields.UPDATE, updater.api_version, "")
    changes = _transfer_ownership(before, after, schema, managed, current, ignored, force=True)
    managed[current] = ManagerEntry(changes.modified | changes.added, updater.api_version)
    managed_fields.strip_untracked_fields(managed, current)
    if current in managed:
        fields = managed.pop(current).fields
        earlier = managed.get(updater)
        fields = fields if earlier is None else fields | earlier.fields
        managed[updater] = ManagerEntry(fields, updater.api_version, format_time(now))


def _format_schema_error(applied: Object, schema_errors: tuple[str, ...]) -> str:
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    gvk = GroupVersionKind.of(applied)
    identity = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {gvk.group}/{gvk.version}, Kind={gvk.kind}"
    text = schema_errors[0] if len(schema_errors) == 1 else "\n  ".join(("errors:", *schema_errors))
    return f"failed to create typed patch object ({identity}): {text}"


def _remove_managed_fields(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _split_managed_fields(live: Object | None, like: Object, schema: Schema) -> tuple[Object, ManagerEntries]:
    """Return the live object without managedFields, and its managers; invalid managedFields count as empty."""
    if live is None:
        return _build_empty_object(like, schema), {}
    metadata = live.get("metadata")
    try:
        managed = managed_fields.decode_managed_fields(
            metadata.get("managedFields") if isinstance(metadata, dict) else None
        )
    except ValueError:
        managed = {}
    return _remove_managed_fields(live), managed


def _build_empty_object(like: Object, schema: Schema) -> Object:
    """Build the object to compare a create with: it has only the fields that its type always writes."""
    empty: Object = round_trip_value({"apiVersion": like["apiVersion"], "kind": like["kind"]}, schema)
    return empty


def _choose_managed_fields(new: Object, managed: ManagerEntries, subresource: str) -> ManagerEntries:
    """Return the managers of the request if it has valid ones: an empty list removes all. Not for a subresource."""
    metadata = new.get("metadata")
    sent = metadata.get("managedFields") if isinstance(metadata, dict) else None
    if subresource or sent is None:
        return managed
    if sent in ([], [{}]):
        return {}
    try:
        return managed_fields.decode_managed_fields(sent) or managed
    except ValueError:
        return managed


def _join_managed_fields(live: Object | None, after: Object, managed: ManagerEntries) -> Object:
    """Add managedFields to the object; their times stay if nothing else changed, so that the write changes nothing."""
    stored = {**after, "metadata": dict(after.get("metadata") or {})}
    entries = managed_fields.encode_managed_fields(managed)
    if entries:
        earlier = (live or {}).get("metadata", {}).get("managedFields") if live is not None else None
        if (
            earlier
            and _is_same_except_times(earlier, entries)
            and is_same_value(_remove_managed_fields(live or {}), after)
        ):
            entries = earlier
        stored["metadata"]["managedFields"] = entries
    return stored


def _is_same_except_times(earlier: Any, entries: list[dict[str, Any]]) -> bool:
    if not isinstance(earlier, list) or len(earlier) != len(entries):
        return False
    return all({**one, "time": None} == {**other, "time": None} for one, other in zip(earlier, entries, strict=True))


def _transfer_ownership(
    before: Object,
    after: Any,
    schema: Schema,
    managed: ManagerEntries,
    writer: Manager,
    ignored: FieldSet,
    *,
    force: bool,
) -> FieldComparison:
    """Remove the changed fields from the other managers, in place; return the comparison of before and after.

    Raises:
        ApplyConflictError: Other managers own changed fields, and `force` is off.
    """
    changes = compare(before, after, schema).subtract_trees(ignored)
    changed = changes.modified | changes.added
    conflicts = {}
    for other, owned in managed.items():
        if other != writer:
            lost = owned.fields & changed
            if lost:
                conflicts[other] = lost
    if conflicts and not force:
        raise ApplyConflictError(conflicts)
    for other, owned in list(managed.items()):
        fields = owned.fields if other == writer else owned.fields - conflicts.get(other, EMPTY) - changes.removed
        if fields:
            managed[other] = replace(owned, fields=fields)
        else:
            del managed[other]
    return changes


def _prune(merged: Any, last: FieldSet, managed: ManagerEntries, schema: Schema) -> Any:
    """Remove the fields of the manager's last apply that it no longer applies and that no other manager owns.

    A field can be absent, owned by another manager, or contain fields that the manager never applied. So there are
    three steps: remove all fields of the last apply, restore fields with an owner, and restore fields that were not in
    the last apply.
    """
    kept = EMPTY
    for owned in managed.values():
        kept = kept | owned.fields
    if not last - kept:
        return merged

    def add_parents(fields: FieldSet) -> FieldSet:
        return with_named_parents(fields, schema)

    merged_fields = add_parents(build_field_set(merged, schema))
    pruned = remove_fields(merged, add_parents(last), schema)
    pruned = remove_fields(
        merged, merged_fields - (add_parents(build_field_set(pruned, schema)) | add_parents(kept)), schema
    )
    pruned_fields = add_parents(build_field_set(pruned, schema))
    return remove_fields(merged, (merged_fields - pruned_fields) & add_parents(last), schema)

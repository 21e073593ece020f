"""Writes as the API server understands them: server-side apply, and every other write with its ownership tracked.

Both take the live object and give the object to store, ``metadata.managedFields`` included. Neither validates beyond
what merging needs, sets identity and versions, or knows what the kind's endpoint does next (allocating addresses,
putting ``status`` back): that is the calling server's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from konverge.apply import managed_fields
from konverge.apply.csa_upgrade import KUBECTL, remove_client_side_conflicts, with_last_applied
from konverge.apply.field_comparison import FieldComparison, compare
from konverge.apply.field_set import EMPTY, FieldSet, format_path
from konverge.apply.managed_fields import Manager, ManagerEntries, ManagerEntry
from konverge.apply.normalization import to_stored_form
from konverge.apply.reset_fields import find_reset_fields
from konverge.apply.round_trip import round_trip_value
from konverge.apply.schema import Schema
from konverge.apply.schema_errors import find_schema_errors
from konverge.apply.typed_values import build_field_set, is_same_value, merge_values, remove_fields, with_named_parents
from konverge.errors import BadRequestError, ConflictError, ServerError
from konverge.kube import GroupVersionKind, Object
from konverge.kube.timestamps import format_time

__all__ = ["ApplyConflictError", "server_side_apply", "track_update"]

# Who owns what was there before anybody applied.
_BEFORE_FIRST_APPLY = "before-first-apply"


class ApplyConflictError(ConflictError):
    """409: other managers own fields that an apply without force wants to change.

    Attributes:
        conflicts: The manager (as the server names it) and the path of each.
        fields: The same by manager.
    """

    def __init__(self, conflicts: Mapping[Manager, FieldSet]) -> None:
        self.fields = conflicts
        found = [(manager, path) for manager in sorted(conflicts) for path in conflicts[manager].iter_paths()]
        self.conflicts = tuple((str(manager), format_path(path)) for manager, path in found)
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
    told = "\n".join(line for several in lines.values() for line in several)
    return f"Apply failed with {len(conflicts)} conflicts: {told}"


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
    """Apply a configuration: the object to store.

    Args:
        live: The stored object, None when there is none.
        applied: What the manager wants, as it came in.
        schema: The kind's schema.
        manager: The field manager.
        force: Take fields over from other managers instead of failing.
        now: The time of the entry, if anything changed.
        subresource: The subresource that is written, empty for the object itself.
        ignored: Paths that this endpoint neither writes nor tracks (``status`` on the object itself); None for those
            that the kind's endpoint usually has.

    Returns:
        A new object with the defaults of its kind; it may share parts with the given ones. When nothing changed it
        equals `live`, times of managedFields included. Fields that the manager no longer applies and nobody else owns
        are gone.

    Raises:
        ApplyConflictError: Other managers own changed fields, and `force` is off.
        konverge.errors.BadRequestError: The configuration has managedFields.
        konverge.errors.ServerError: The configuration does not fit the schema (the API server answers 500 there).
    """
    metadata = applied.get("metadata")
    if isinstance(metadata, Mapping) and metadata.get("managedFields") is not None:
        raise BadRequestError("metadata.managedFields must be nil")
    mistakes = find_schema_errors(applied, schema)
    if mistakes:
        raise ServerError(_format_schema_error(applied, mistakes))
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
    """Track who changed what in a write that is not an apply (create, update, patch).

    Args:
        old: The stored object, None on create.
        new: The object as it will be stored, defaults included; its managedFields, if any, are what the client sent.
        schema: The kind's schema.
        manager: The field manager.
        now: The time of the entry, if anything changed.
        subresource: The subresource that is written, empty for the object itself.
        ignored: As for `server_side_apply`.

    Returns:
        A new object, with managedFields.
    """
    ignored = find_reset_fields(GroupVersionKind.of(new), subresource) if ignored is None else ignored
    before, managed = _split_managed_fields(old, new, schema)
    managed = _choose_managed_fields(new, managed, subresource)
    after = _remove_managed_fields(new)
    if managed or old is None:  # An object that nobody is known to manage stays so until somebody applies to it.
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
    """The merged object, and who owns what of it."""
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
    """Give the updater what changed, in place."""
    # Under another name at first: what it owns already is taken away by nobody, and comes back with what is new.
    current = Manager("", managed_fields.UPDATE, updater.api_version, "")
    changes = _transfer_ownership(before, after, schema, managed, current, ignored, force=True)
    managed[current] = ManagerEntry(changes.modified | changes.added, updater.api_version)
    managed_fields.strip_untracked_fields(managed, current)
    if current in managed:
        fields = managed.pop(current).fields
        known = managed.get(updater)
        fields = fields if known is None else fields | known.fields
        managed[updater] = ManagerEntry(fields, updater.api_version, format_time(now))


def _format_schema_error(applied: Object, mistakes: tuple[str, ...]) -> str:
    metadata = applied.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    gvk = GroupVersionKind.of(applied)
    which = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {gvk.group}/{gvk.version}, Kind={gvk.kind}"
    told = mistakes[0] if len(mistakes) == 1 else "\n  ".join(("errors:", *mistakes))
    return f"failed to create typed patch object ({which}): {told}"


def _remove_managed_fields(obj: Object) -> Object:
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}


def _split_managed_fields(live: Object | None, like: Object, schema: Schema) -> tuple[Object, ManagerEntries]:
    """The live object without managedFields, and these; managedFields that cannot be read are as good as none."""
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
    """What a create is compared with: an object of the kind that has nothing but what its type always writes."""
    empty = {"apiVersion": like["apiVersion"], "kind": like["kind"]}
    born: Object = round_trip_value(empty, schema)
    return born


def _choose_managed_fields(new: Object, managed: ManagerEntries, subresource: str) -> ManagerEntries:
    """A client may write managedFields with the object: an empty list forgets them all. Not through a subresource."""
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
    """The object with its managedFields; their times stay when nothing else changed, so that a write can be none."""
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
    """Take what the write changed from the other managers, in place; the comparison of before and after.

    Raises:
        ApplyConflictError: They own something of it, and `force` is off.
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
    """Drop what the manager applied last time, does not apply now, and nobody else owns.

    Three steps, since a field can be gone, owned by another, or hold something that was never ours: take out all that
    was applied, put back what any entry owns, then put back what was not in the last apply anyway.
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

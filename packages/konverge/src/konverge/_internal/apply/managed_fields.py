"""``metadata.managedFields``: the managers of an object, with their fields, times and operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from konverge._internal.apply.field_set import FieldSet
from konverge._internal.kube.timestamps import format_time

__all__ = [
    "APPLY",
    "SERVER_METADATA",
    "UPDATE",
    "Manager",
    "ManagerEntries",
    "ManagerEntry",
    "cap_updaters",
    "decode_managed_fields",
    "encode_managed_fields",
    "find_apply_entry",
    "strip_untracked_fields",
    "touch_entry",
]

APPLY = "Apply"
UPDATE = "Update"

# The maximum number of Update entries; older ones are merged under this name (the API server's limit and name).
_MAX_UPDATERS = 10
_ANCIENT = "ancient-changes"


class Manager(NamedTuple):
    """The manager of an entry. An applier is the same manager in each version; an updater is a different one."""

    name: str
    operation: str
    api_version: str
    subresource: str

    @staticmethod
    def applier(name: str, subresource: str = "") -> Manager:
        """Return the manager for applies under that name; an empty name is ``unknown``, as in the API server."""
        return Manager(name or "unknown", APPLY, "", subresource)

    @staticmethod
    def updater(name: str, api_version: str, subresource: str = "") -> Manager:
        """Return the manager for other writes under that name."""
        return Manager(name or "unknown", UPDATE, api_version, subresource)

    def __str__(self) -> str:
        """Return the text of the API server for the manager in a conflict."""
        text = f'"{self.name}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class ManagerEntry:
    """The fields of one manager. `time` is the text of the last change; None if the entry has no time."""

    fields: FieldSet
    api_version: str
    time: str | None = None


ManagerEntries: TypeAlias = dict[Manager, ManagerEntry]


def decode_managed_fields(entries: Any) -> ManagerEntries:
    """Decode ``managedFields``.

    Raises:
        ValueError: An entry is invalid; the message contains its index.
    """
    managed: ManagerEntries = {}
    if entries is None:
        return managed
    if not isinstance(entries, list):
        raise ValueError("managedFields: expected a list")
    for index, entry in enumerate(entries):
        if not isinstance(entry, Mapping) or entry.get("operation") not in (APPLY, UPDATE):
            raise ValueError(f"managedFields entry {index}: operation must be `ApplyAction` or `UpdateLease`")
        version = entry.get("apiVersion")
        if not isinstance(version, str) or not version:
            raise ValueError(f"managedFields entry {index}: apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError(f"managedFields entry {index}: fieldsType must be FieldsV1")
        operation = entry["operation"]
        fields = entry.get("fieldsV1")
        time = entry.get("time")
        manager = Manager(
            str(entry.get("manager") or ""),
            operation,
            version if operation == UPDATE else "",
            str(entry.get("subresource") or ""),
        )
        managed[manager] = ManagerEntry(
            FieldSet.parse(fields if isinstance(fields, Mapping) else {}),
            version,
            time if isinstance(time, str) else None,
        )
    return managed


def encode_managed_fields(managed: ManagerEntries) -> list[dict[str, Any]]:
    """Encode as ``managedFields``: appliers before updaters, the oldest time first."""
    return [
        _encode_entry(manager, managed[manager])
        for manager in sorted(managed, key=lambda manager: _entry_order(manager, managed[manager]))
    ]


def _entry_order(manager: Manager, owned: ManagerEntry) -> tuple[str, str, str, str, str]:
    return manager.operation, owned.time or "", manager.name, owned.api_version, manager.subresource


def _encode_entry(manager: Manager, owned: ManagerEntry) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
    }
    if owned.time is not None:
        entry["time"] = owned.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": owned.fields.format()}
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def find_apply_entry(obj: Mapping[str, Any], manager: str) -> Mapping[str, Any] | None:
    """Return the manager's Apply entry for the object itself, not for a subresource; None without a valid one."""
    metadata = obj.get("metadata")
    entries = metadata.get("managedFields") if isinstance(metadata, Mapping) else None
    for entry in entries if isinstance(entries, list) else ():
        if (
            isinstance(entry, Mapping)
            and entry.get("manager") == manager
            and entry.get("operation") == APPLY
            and not entry.get("subresource")
        ):
            return entry if isinstance(entry.get("fieldsV1"), Mapping) else None
    return None


# Identity and bookkeeping belong to the server: no manager owns them.
SERVER_METADATA = frozenset(
    {
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_UNTRACKED = FieldSet.of(
    [("f:apiVersion",), ("f:kind",), ("f:metadata",), *(("f:metadata", f"f:{name}") for name in SERVER_METADATA)]
)


def strip_untracked_fields(managed: ManagerEntries, manager: Manager) -> None:
    """Remove the fields that no manager can own from the manager's entry, in place; delete an empty entry."""
    owned = managed.get(manager)
    if owned is None:
        return
    fields = owned.fields - _UNTRACKED
    if fields:
        managed[manager] = replace(owned, fields=fields)
    else:
        del managed[manager]


def cap_updaters(managed: ManagerEntries) -> None:
    """Merge the oldest Update entries of each version into one, in place, until at most ten are left."""
    updaters = sorted(
        (manager for manager in managed if manager.operation == UPDATE),
        key=lambda manager: (managed[manager].time or "", manager),
    )
    excess = len(updaters) - _MAX_UPDATERS
    first_of: dict[str, Manager] = {}
    for manager in updaters:
        if excess <= 0:
            return
        owned = managed[manager]
        first = first_of.setdefault(owned.api_version, manager)
        if first is manager:
            continue
        bucket = Manager.updater(_ANCIENT, owned.api_version)
        if bucket not in managed:
            managed[bucket] = managed.pop(first)
        managed[bucket] = ManagerEntry(owned.fields | managed[bucket].fields, owned.api_version, owned.time)
        del managed[manager]
        excess -= 1


def touch_entry(owned: ManagerEntry, now: datetime) -> ManagerEntry:
    """Return the entry with the time of its last change set to now."""
    return replace(owned, time=format_time(now))

"""Ownership of objects: the rule for deletions, and descriptions of the controller or field managers. Pure.

The objects of a component are those that its owner controls. An object without a controller (unowned, or of a kind that
permits no reference) belongs to the component if ``managedFields`` has its apply entry. The field manager contains the
owner's UID. Therefore an entry under an earlier component name counts, and an entry of an earlier owner does not.

A field manager above the server's length limit is hashed. From hashes, only the component's present field manager is
recognized. An object that an earlier one applied, and that no owner controls, counts as another's and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from konverge._internal.apply import FieldSet
from konverge._internal.apply.field_set import format_path
from konverge._internal.apply.managed_fields import APPLY, Manager, ManagerEntries, decode_managed_fields
from konverge._internal.kube import Object, find_controller

__all__ = [
    "build_field_manager",
    "describe_foreign_controller",
    "describe_holder",
    "describe_overruled",
    "has_own_entry",
    "is_ours",
]

_MANAGER_LIMIT = 128
_MAX_MANAGERS = 5
_MAX_FIELDS = 5


def build_field_manager(owner: Object, component: str) -> str:
    """Return ``<OwnerKind>/<component>/<ownerUID>``, hashed above the server's limit of 128 characters.

    The UID prevents that two owners that render the same object silently take over each other's fields.
    """
    manager = f"{owner['kind']}/{component}/{owner['metadata']['uid']}"
    return manager if len(manager) <= _MANAGER_LIMIT else hashlib.sha256(manager.encode()).hexdigest()


def is_ours(live: Object, owner: Object, component: str) -> bool:
    """Return True if the object belongs to the component, which may then delete it.

    Args:
        live: The object.
        owner: The custom resource.
        component: The component's name.
    """
    controller = find_controller(live)
    if controller is not None:
        return bool(controller.get("uid") == owner["metadata"]["uid"])
    return has_own_entry(live, owner, component)


def has_own_entry(live: Object, owner: Object, component: str) -> bool:
    """Return True if the component has applied the object, under its present or an earlier name."""
    return any(_is_own_manager(manager, owner, component) for manager in _read_managed_fields(live))


def _is_own_manager(manager: Manager, owner: Object, component: str) -> bool:
    if manager.operation != APPLY or manager.subresource:
        return False
    begin, end = f"{owner['kind']}/", f"/{owner['metadata']['uid']}"
    is_named = manager.name.startswith(begin) and manager.name.endswith(end)
    return is_named or manager.name == build_field_manager(owner, component)


def describe_foreign_controller(live: Object | None, owner: Object) -> str:
    """Return ``controlled by <Kind> <name>`` if another owner controls the live object, else an empty string."""
    controller = None if live is None else find_controller(live)
    if controller is None or controller.get("uid") == owner["metadata"]["uid"]:
        return ""
    return f"controlled by {controller.get('kind')} {controller.get('name')}"


def describe_holder(live: Object, owner: Object, component: str) -> str:
    """Describe who holds an object that is not the owner's: its controller, or else its field managers."""
    if controller := describe_foreign_controller(live, owner):
        return controller
    others = (manager for manager in _read_managed_fields(live) if not _is_own_manager(manager, owner, component))
    names = list(dict.fromkeys(manager.name for manager in others))
    return f"managed by {_format_list(names, _MAX_MANAGERS)}" if names else "without a controller and without a manager"


def describe_overruled(before: Object, after: Object, owner: Object, component: str) -> str:
    """List the managers that lost fields by an apply of the component, with these fields; empty if there are none.

    A path ends before an element that would quote a value.
    """
    then = _read_managed_fields(after)
    losers = []
    for manager, owned in _read_managed_fields(before).items():
        if _is_own_manager(manager, owner, component):
            continue
        kept = then.get(manager)
        lost = owned.fields if kept is None else owned.fields - kept.fields
        paths = list(dict.fromkeys(_iter_leaf_paths(lost)))
        if paths:
            losers.append(f"{manager.name} ({_format_list(paths, _MAX_FIELDS)})")
    return _format_list(losers, _MAX_MANAGERS)


def _read_managed_fields(obj: Object) -> ManagerEntries:
    try:
        return decode_managed_fields(obj["metadata"].get("managedFields"))
    except ValueError:  # malformed entries prove no ownership
        return {}


def _iter_leaf_paths(fields: FieldSet, prefix: tuple[str, ...] = ()) -> Iterator[str]:
    for element, below in fields.children.items():
        if element.startswith("v:"):
            yield format_path(prefix)
        elif below.children:
            yield from _iter_leaf_paths(below, (*prefix, element))
        else:
            yield format_path((*prefix, element))


def _format_list(texts: list[str], most: int) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more

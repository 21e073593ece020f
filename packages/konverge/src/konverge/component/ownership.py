"""Whose an object is: the one rule by which a component deletes, and who has what it finds. Pure.

A component's objects are those that its owner controls. Where an object has no controller (it is unowned, or the API
has no such reference), our own apply entry in ``managedFields`` tells: its manager names the owner by UID, so that the
entry of an earlier name of the component is recognized, and that of another life of the owner is not.

A manager that is longer than the server admits is hashed, and a hash tells nothing: of such managers only the
component's present one is known. What an earlier one applied, and no owner controls, is taken for another's and stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from konverge.apply import FieldSet
from konverge.apply.field_set import format_path
from konverge.apply.managed_fields import APPLY, Manager, ManagerEntries, decode_managed_fields
from konverge.kube import Object, find_controller

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
    """``<OwnerKind>/<component>/<ownerUID>``, hashed when longer than the 128 characters that a manager may have.

    The UID keeps two owners that render one object from silently taking each other's fields.
    """
    manager = f"{owner['kind']}/{component}/{owner['metadata']['uid']}"
    return manager if len(manager) <= _MANAGER_LIMIT else hashlib.sha256(manager.encode()).hexdigest()


def is_ours(live: Object, owner: Object, component: str) -> bool:
    """Tell whether the component may delete the object.

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
    """Tell whether the component, under this or an earlier name, has applied the object."""
    return any(_is_own_manager(manager, owner, component) for manager in _read_managed_fields(live))


def _is_own_manager(manager: Manager, owner: Object, component: str) -> bool:
    if manager.operation != APPLY or manager.subresource:
        return False
    begin, end = f"{owner['kind']}/", f"/{owner['metadata']['uid']}"
    is_named = manager.name.startswith(begin) and manager.name.endswith(end)
    return is_named or manager.name == build_field_manager(owner, component)


def describe_foreign_controller(live: Object | None, owner: Object) -> str:
    """``controlled by <Kind> <name>`` when another owner controls the live object, else empty."""
    controller = None if live is None else find_controller(live)
    if controller is None or controller.get("uid") == owner["metadata"]["uid"]:
        return ""
    return f"controlled by {controller.get('kind')} {controller.get('name')}"


def describe_holder(live: Object, owner: Object, component: str) -> str:
    """Who has an object that is not ours: its controller, or else its field managers."""
    if told := describe_foreign_controller(live, owner):
        return told
    others = (manager for manager in _read_managed_fields(live) if not _is_own_manager(manager, owner, component))
    names = list(dict.fromkeys(manager.name for manager in others))
    return f"managed by {_format_list(names, _MAX_MANAGERS)}" if names else "without a controller and without a manager"


def describe_overruled(before: Object, after: Object) -> str:
    """The managers that lost fields by an apply, with these fields; empty when none did.

    Paths end where they would quote a value.
    """
    then = _read_managed_fields(after)
    told = []
    for manager, owned in _read_managed_fields(before).items():
        kept = then.get(manager)
        lost = owned.fields if kept is None else owned.fields - kept.fields
        paths = list(dict.fromkeys(_iter_leaf_paths(lost)))
        if paths:
            told.append(f"{manager.name} ({_format_list(paths, _MAX_FIELDS)})")
    return _format_list(told, _MAX_MANAGERS)


def _read_managed_fields(obj: Object) -> ManagerEntries:
    try:
        return decode_managed_fields(obj["metadata"].get("managedFields"))
    except ValueError:  # nobody's, then: what cannot be read proves nothing
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

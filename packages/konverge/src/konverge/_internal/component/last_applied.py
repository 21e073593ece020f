"""The last applied configuration, read from the live object and the manager's entry in its managedFields. Pure.

It is needed to suspend an object while the data for its mutations is missing. Then the owned part of the live object is
the best approximation of the desired object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge._internal.apply.managed_fields import find_apply_entry
from konverge._internal.kube import Object

__all__ = ["extract_last_applied"]


def extract_last_applied(live: Object, manager: str) -> Object | None:
    """Extract the fields that this manager applied, with kind and name; None without an entry of the manager.

    A new apply of the result by the same manager changes nothing.
    """
    entry = find_apply_entry(live, manager)
    if entry is None:
        return None
    owned: Object = _extract_owned(live, entry["fieldsV1"])
    metadata = {name: live["metadata"][name] for name in ("namespace", "name") if name in live["metadata"]}
    return {
        **owned,
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {**owned.get("metadata", {}), **metadata},
    }


def _extract_owned(value: Any, fields: Mapping[str, Any]) -> Any:
    children = {element: below for element, below in fields.items() if element != "."}
    if isinstance(value, dict) and (children or "." in fields):
        names = ((element.removeprefix("f:"), below) for element, below in children.items())
        return {name: _extract_owned(value[name], below) for name, below in names if name in value}
    if isinstance(value, list) and children:
        return [owned for item in value for owned in _extract_items(item, children)]
    return value  # a scalar, or a list or a mapping that is owned as a whole


def _extract_items(item: Any, children: Mapping[str, Any]) -> list[Any]:
    """Return the owned part of a list item, in a list; an empty list for an item of another manager."""
    for element, below in children.items():
        sort, _, text = element.partition(":")
        key = msgspec.json.decode(text)
        if sort == "v" and key == item:
            return [item]
        if sort == "k" and isinstance(item, dict) and all(item.get(name) == value for name, value in key.items()):
            return [{**key, **_extract_owned(item, below)}]
    return []

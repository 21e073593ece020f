"""What a manager applied last, read back from the live object and the manager's entry in its managedFields. Pure.

For an object that is to be suspended while the data that its mutations need is not there: what it is now, and no more
of it than is ours, is then the best that is known of what it should be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.apply.managed_fields import find_apply_entry
from konverge.kube import Object

__all__ = ["extract_last_applied"]


def extract_last_applied(live: Object, manager: str) -> Object | None:
    """The fields of the live object that this manager applied, with its type and name; None where that is not known.

    Applied again by the same manager it changes nothing.
    """
    entry = find_apply_entry(live, manager)
    if entry is None:
        return None
    found: Object = _extract_owned(live, entry["fieldsV1"])
    metadata = {name: live["metadata"][name] for name in ("namespace", "name") if name in live["metadata"]}
    return {
        **found,
        "apiVersion": live["apiVersion"],
        "kind": live["kind"],
        "metadata": {**found.get("metadata", {}), **metadata},
    }


def _extract_owned(value: Any, fields: Mapping[str, Any]) -> Any:
    children = {element: below for element, below in fields.items() if element != "."}
    if isinstance(value, dict) and (children or "." in fields):
        names = ((element.removeprefix("f:"), below) for element, below in children.items())
        return {name: _extract_owned(value[name], below) for name, below in names if name in value}
    if isinstance(value, list) and children:
        return [found for item in value for found in _extract_items(item, children)]
    return value  # a scalar, or a list or a mapping that is owned as a whole


def _extract_items(item: Any, children: Mapping[str, Any]) -> list[Any]:
    """The owned part of a list's item, in a list; an empty one when it is not ours."""
    for element, below in children.items():
        sort, _, text = element.partition(":")
        key = msgspec.json.decode(text)
        if sort == "v" and key == item:
            return [item]
        if sort == "k" and isinstance(item, dict) and all(item.get(name) == wanted for name, wanted in key.items()):
            return [{**key, **_extract_owned(item, below)}]
    return []

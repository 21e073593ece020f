"""The proof that no write is necessary: a comparison of the desired object, the live one and the manager's fields.

The manager's entry in ``managedFields`` is the server's record of its last apply. The comparison finds three kinds of
difference without a request: a desired field that was never applied, an applied field that is no longer desired, and a
field with another live value. If there is none, an apply would change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.apply.field_set import Path, format_path, key_element, parse_key_element, value_element
from konverge._internal.apply.managed_fields import SERVER_METADATA, find_apply_entry
from konverge._internal.apply.normalization import normalize
from konverge._internal.apply.overrides import is_override
from konverge._internal.apply.schema import ABSENT, Schema
from konverge._internal.apply.typed_values import build_field_set, find_item_element, is_granular, is_same_value
from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["HIDDEN", "Difference", "find_drift"]

HIDDEN = "(hidden)"
"""The text that replaces each value of a Secret."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason to apply.

    Attributes:
        path: The path of the field, in the server's format, for example ``.spec.replicas``.
        kind: ``missing``: desired, but not applied yet. ``extra``: applied, but no longer desired. ``changed``: the
            live value, or the order of a list's items, differs.
        desired: The desired value; `HIDDEN` for a value of a Secret. For ``diff`` and ``explain``, not for logs.
        live: The live value, likewise; None if there is none.
        is_override: True for a ``changed`` field whose live value differs in meaning, not only in form. If an apply
            does not change that, another writer overrides it.
    """

    path: str
    kind: Literal["missing", "extra", "changed"]
    desired: Any = field(default=None, repr=False)
    live: Any = field(default=None, repr=False)
    is_override: bool = field(default=False, repr=False, compare=False)


def find_drift(
    desired: Object, live: Object, field_manager: str, schema: Schema | None = None
) -> tuple[Difference, ...]:
    """Find the differences that require an apply of the desired object; empty if an apply would change nothing.

    Args:
        desired: The desired object. Its ``status`` and the server's part of its metadata are ignored.
        live: The object on the server, with at least the manager's own entry in managedFields.
        field_manager: The manager that applies.
        schema: The schema of the kind; None for that of the built-in kind. Without a schema, a custom resource has
            additional differences: an empty mapping where the live one has fields, and defaults inside a list.
    """
    builtin = find_builtin_schema(GroupVersionKind.of(desired))
    schema = schema or builtin
    entry = find_apply_entry(live, field_manager)
    if entry is not None and entry.get("apiVersion") != desired.get("apiVersion"):
        entry = None  # Its paths are of another version of the kind; an apply in this version replaces them.
    owned: Mapping[str, Any] = entry["fieldsV1"] if entry is not None else {}
    kind = str(desired["kind"]) if builtin is not None else ""

    def find(desired_form: Object, owned: Mapping[str, Any]) -> tuple[Difference, ...]:
        return _DriftWalk(kind).find(desired_form, live, owned, schema)

    if kind == "Secret" and ("stringData" in desired or "f:stringData" in owned):
        return find(normalize(desired, schema), _with_string_data(owned))
    # Most comparisons find no difference in the first step: normalization is only necessary after one.
    return find(normalize(desired, schema), owned) if find(desired, owned) else ()


def _with_string_data(owned: Mapping[str, Any]) -> Mapping[str, Any]:
    """Merge the ownership of ``stringData`` into ``data``: the server stores only the values there."""
    merged = {element: below for element, below in owned.items() if element != "f:stringData"}
    merged["f:data"] = {**_get_branch(owned, "f:data"), **_get_branch(owned, "f:stringData")}
    return merged


def _get_branch(owned: Mapping[str, Any], element: str) -> Mapping[str, Any]:
    below = owned.get(element)
    return below if isinstance(below, dict) else {}


# The fields that the server allocates for a Service.
_ALLOCATED = frozenset({"f:clusterIP", "f:healthCheckNodePort", "f:nodePort"})
# The admission plug-in DefaultTolerationSeconds adds these; it is enabled by default.
_ADDED_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{taint}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for taint in ("not-ready", "unreachable")
]

_ROOT_SERVER_FIELDS = frozenset({"apiVersion", "kind", "metadata", "status"})


class _DriftWalk:
    """One walk through a desired object, its live form and the manager's fields in their stored form (``fieldsV1``).

    Args:
        kind: The kind of a built-in object; empty for a custom resource.
    """

    __slots__ = ("_differences", "_is_typed", "_kind")

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._is_typed = True
        self._differences: list[Difference] = []

    def find(
        self, desired: Object, live: Object, owned: Mapping[str, Any], schema: Schema | None
    ) -> tuple[Difference, ...]:
        metadata = desired.get("metadata") or {}
        own_metadata = {name: value for name, value in metadata.items() if name not in SERVER_METADATA}
        metadata_schema = schema.find_child("metadata") if schema is not None else None
        # The server's own types do not distinguish every zero value from absence. In a custom resource, only metadata
        # has such a type.
        self._is_typed = True
        self._compare_fields(
            own_metadata, live.get("metadata"), _get_branch(owned, "f:metadata"), metadata_schema, ("f:metadata",)
        )
        self._is_typed = bool(self._kind)
        rest = {name: value for name, value in desired.items() if name not in _ROOT_SERVER_FIELDS}
        below = {element: fields for element, fields in owned.items() if element != "f:metadata"}
        self._compare_fields(rest, live, below, schema, ())
        return tuple(self._differences)

    def _report(self, kind: Literal["missing", "extra", "changed"], path: Path, desired: Any, live: Any) -> None:
        overrides = kind == "changed" and is_override(desired, live)
        if self._kind == "Secret" and path[0] in ("f:data", "f:stringData"):
            desired = live = HIDDEN
        live = None if live is ABSENT else live
        self._differences.append(Difference(format_path(path), kind, desired, live, overrides))

    def _compare_fields(
        self, desired: Mapping[str, Any], live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path
    ) -> None:
        """Compare the fields of a mapping that merges field by field."""
        live_fields = live if isinstance(live, dict) else {}
        owned_count = 0
        for name, value in desired.items():
            element = "f:" + name
            below = owned.get(element)
            if isinstance(below, dict):
                owned_count += 1
                if not value and name not in live_fields and self._is_dropped(name, value, schema):
                    continue
                child = schema.find_child(name) if schema is not None else None
                self._compare_value(value, live_fields.get(name, ABSENT), below, child, path, element)
            elif not _owns_nothing(name, value, schema) or (not self._is_typed and name not in live_fields):
                # A custom resource stores even an empty list without an owner.
                self._report("missing", (*path, element), value, live_fields.get(name))
        if len(owned) - ("." in owned) != owned_count:
            for element in owned:
                if element != "." and element[2:] not in desired:
                    self._report("extra", (*path, element), None, live_fields.get(element[2:]))

    def _is_dropped(self, name: str, value: Any, schema: Schema | None) -> bool:
        """Return True if the server omits the empty value from its storage, like the zero values of most fields."""
        if not self._is_typed or schema is None:
            return False
        field = schema.properties.get(name)
        if field is None:
            return False
        return value is None or (name not in schema.keeps_zero and not (isinstance(value, dict) and field.properties))

    def _compare_value(
        self, desired: Any, live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path, element: str
    ) -> None:
        """Compare one owned value, by its type and by the owned fields below it."""
        below = len(owned) - ("." in owned)
        if isinstance(desired, dict):
            if below or (desired and schema is not None and is_granular(schema, desired)):
                self._compare_fields(desired, live, owned, schema, (*path, element))
                return
            if not desired and isinstance(live, dict) and schema is not None and is_granular(schema, live):
                return  # Other managers own its fields.
        elif isinstance(desired, list):
            if below or (desired and schema is not None and is_granular(schema, desired)):
                self._compare_items(desired, live, owned, schema, (*path, element))
                return
        elif desired is None and not below and schema is not None and is_granular(schema, live):
            return  # An apply of null changes nothing here.
        if live is None and self._is_typed and isinstance(desired, dict | list) and not desired:
            return  # The server's storage does not distinguish an empty value from an absent one.
        if not is_same_value(desired, live) and not self._is_added((*path, element), desired, live):
            self._report("changed", (*path, element), desired, live)

    def _is_added(self, path: Path, desired: Any, live: Any) -> bool:
        """Return True if only the server caused the difference, in a field that the manager owns.

        The server allocates a value for a zero in a Service, and admission adds tolerations to every Pod.
        """
        if self._kind == "Service" and path[-1] in _ALLOCATED:
            return not desired
        if self._kind != "Pod" or path != ("f:spec", "f:tolerations") or not isinstance(live, list):
            return False
        applied = [toleration for toleration in live if toleration not in _ADDED_TOLERATIONS or toleration in desired]
        return is_same_value(desired, applied)

    def _compare_items(
        self, desired: Sequence[Any], live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path
    ) -> None:
        """Compare the items of a list that merges by item."""
        live_items = live if isinstance(live, list) else []
        is_keyed = (
            schema.list_type == "map" if schema is not None else any(element.startswith("k:") for element in owned)
        )
        item_schema = schema.items if schema is not None else None
        elements = (
            _list_elements(desired, owned, schema, item_schema)
            if is_keyed
            else [_to_member_element(item) for item in desired]
        )
        positions = _index_elements(live_items, elements, is_keyed=is_keyed)
        owned_count = 0
        last = -1
        is_ordered = True
        for item, element in zip(desired, elements, strict=True):
            below = owned.get(element)
            position = positions.get(element)
            owned_count += below is not None
            if not isinstance(below, dict) or position is None:
                self._report("missing", (*path, element), item, None if position is None else live_items[position])
                continue
            is_ordered = is_ordered and position > last
            last = position
            if below:
                self._compare_fields(item, live_items[position], below, item_schema, (*path, element))
            elif not is_same_value(item, live_items[position]):  # an atomic item, for example an owner reference
                self._report("changed", (*path, element), item, live_items[position])
        if not is_ordered:
            self._report("changed", path, desired, live)
        if len(owned) - ("." in owned) != owned_count:
            for element in sorted(owned.keys() - set(elements) - {"."}):
                position = _index_elements(live_items, [element], is_keyed=is_keyed).get(element)
                self._report("extra", (*path, element), None, None if position is None else live_items[position])


def _owns_nothing(name: str, value: Any, schema: Schema | None) -> bool:
    """Return True if an apply of the value creates no ownership: an empty list that merges by item, or only such."""
    if schema is None or not isinstance(value, dict | list):
        return isinstance(value, list) and not value
    return not build_field_set({name: value}, schema)


def _list_elements(
    desired: Sequence[Any], owned: Mapping[str, Any], schema: Schema | None, item_schema: Schema | None
) -> list[str]:
    """List the path element of each item of a keyed list.

    Without a schema, a key field that the item omits is read from the manager's entry, which contains its default.
    """
    if schema is not None:
        return [find_item_element(schema, item) or "k:{}" for item in desired]
    left = [element for element in owned if element.startswith("k:")]
    names = {name for element in left for name in parse_key_element(element)}
    elements: list[str] = []
    for item in desired:
        keys = {name: item[name] for name in names if isinstance(item, dict) and name in item}
        element = key_element(keys)
        if element not in left:
            element = next((other for other in left if keys.items() <= parse_key_element(other).items()), element)
        if element in left:
            left.remove(element)
        elements.append(element)
    return elements


def _to_key(value: Any) -> Any:
    """Return the value of a key field; a value that cannot be a key becomes `ABSENT`, which matches none."""
    return ABSENT if isinstance(value, dict | list) else value


def _to_member_element(value: Any) -> str:
    """Return the path element of a set member; an invalid member gets an element that no manager owns."""
    return "v:{}" if isinstance(value, dict | list) else value_element(value)


def _index_elements(live_items: Sequence[Any], elements: Sequence[str], *, is_keyed: bool) -> dict[str, int]:
    """Map each element to its position in the live list."""
    if not is_keyed:
        return {_to_member_element(value): position for position, value in enumerate(live_items)}
    by_names: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}
    index = {}
    for element in elements:
        keys = parse_key_element(element)
        names = tuple(keys)
        positions = by_names.get(names)
        if positions is None:
            positions = by_names[names] = {
                tuple(_to_key(item.get(name)) for name in names): position
                for position, item in enumerate(live_items)
                if isinstance(item, dict)
            }
        position = positions.get(tuple(keys.values()))
        if position is not None:
            index[element] = position
    return index

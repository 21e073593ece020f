"""The proof that nothing need be written: a desired object against the live one and what we own of it.

Our own entry in ``managedFields`` is the server's record of what we applied last. Walked together with the desired
object it shows three things without a request: a field that we want and never applied, one that we applied and no
longer want, and one whose live value is not the one we want. None of them means that an apply would change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from konverge.apply.builtin_schemas import find_builtin_schema
from konverge.apply.field_set import Path, format_path, key_element, parse_key_element, value_element
from konverge.apply.managed_fields import SERVER_METADATA, find_apply_entry
from konverge.apply.normalization import normalize
from konverge.apply.overrides import is_override
from konverge.apply.schema import ABSENT, Schema
from konverge.apply.typed_values import build_field_set, find_item_element, is_granular, is_same_value
from konverge.kube import GroupVersionKind, Object

__all__ = ["HIDDEN", "Difference", "find_drift"]

HIDDEN = "(hidden)"
"""Stands for each value of a Secret."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason to apply.

    Attributes:
        path: Where, as the server prints paths, for example ``.spec.replicas``.
        kind: ``missing``: wanted, but we have not applied it. ``extra``: applied by us, but not wanted any more.
            ``changed``: the live value, or the order of a list's items, is another one.
        desired: The wanted value; `HIDDEN` for what a Secret holds. For ``diff`` and ``explain``, not for logs.
        live: The live value, likewise; None when there is none.
        is_override: Tells of one that is ``changed`` whether the live value says something else, not only in another
            form: an apply that leaves it so was overridden.
    """

    path: str
    kind: Literal["missing", "extra", "changed"]
    desired: Any = field(default=None, repr=False)
    live: Any = field(default=None, repr=False)
    is_override: bool = field(default=False, repr=False, compare=False)


def find_drift(
    desired: Object, live: Object, field_manager: str, schema: Schema | None = None
) -> tuple[Difference, ...]:
    """Why the desired object must be applied; empty when that would change nothing.

    Args:
        desired: What the manager wants. Its ``status`` and what belongs to the server in its metadata do not count.
        live: The object as the server has it, with the manager's own entry in managedFields at least.
        field_manager: The manager that applies.
        schema: The kind's schema; None for that of the built-in kind. A custom resource can do without: then an empty
            mapping where the live one has fields counts as a difference, and defaults inside a list do.
    """
    builtin = find_builtin_schema(GroupVersionKind.of(desired))
    schema = schema or builtin
    entry = find_apply_entry(live, field_manager)
    if entry is not None and entry.get("apiVersion") != desired.get("apiVersion"):
        entry = None  # Paths of another version of the kind; an apply in this one renews them.
    owned: Mapping[str, Any] = entry["fieldsV1"] if entry is not None else {}
    kind = str(desired["kind"]) if builtin is not None else ""

    def run_walk(wanted: Object, owned: Mapping[str, Any]) -> tuple[Difference, ...]:
        return _DriftWalk(kind).find(wanted, live, owned, schema)

    if kind == "Secret" and ("stringData" in desired or "f:stringData" in owned):
        return run_walk(normalize(desired, schema), _with_string_data(owned))
    # Nearly every pass ends here: only what differs as it was written is put into the server's form.
    return run_walk(normalize(desired, schema), owned) if run_walk(desired, owned) else ()


def _with_string_data(owned: Mapping[str, Any]) -> Mapping[str, Any]:
    """The server stores ``stringData`` in ``data``, but records that it was ``stringData`` which we applied."""
    merged = {element: below for element, below in owned.items() if element != "f:stringData"}
    merged["f:data"] = {**_get_branch(owned, "f:data"), **_get_branch(owned, "f:stringData")}
    return merged


def _get_branch(owned: Mapping[str, Any], element: str) -> Mapping[str, Any]:
    below = owned.get(element)
    return below if isinstance(below, dict) else {}


# What a Service may leave to the server.
_ALLOCATED = frozenset({"f:clusterIP", "f:healthCheckNodePort", "f:nodePort"})
# The admission plug-in DefaultTolerationSeconds, which is on unless somebody turns it off.
_ADDED_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for why in ("not-ready", "unreachable")
]

_ROOT_SERVER_FIELDS = frozenset({"apiVersion", "kind", "metadata", "status"})


class _DriftWalk:
    """One walk through a desired object, its live form and our fields of it, which are read as they are stored.

    Args:
        kind: The kind of a built-in object, empty for a custom resource.
    """

    __slots__ = ("_found", "_is_typed", "_kind")

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._is_typed = True
        self._found: list[Difference] = []

    def find(
        self, desired: Object, live: Object, owned: Mapping[str, Any], schema: Schema | None
    ) -> tuple[Difference, ...]:
        metadata = desired.get("metadata") or {}
        ours = {name: value for name, value in metadata.items() if name not in SERVER_METADATA}
        of = schema.find_child("metadata") if schema is not None else None
        # The server's own types do not tell every zero value from absence; of a custom resource, metadata is one.
        self._is_typed = True
        self._compare_fields(ours, live.get("metadata"), _get_branch(owned, "f:metadata"), of, ("f:metadata",))
        self._is_typed = bool(self._kind)
        rest = {name: value for name, value in desired.items() if name not in _ROOT_SERVER_FIELDS}
        below = {element: fields for element, fields in owned.items() if element != "f:metadata"}
        self._compare_fields(rest, live, below, schema, ())
        return tuple(self._found)

    def _report(self, kind: Literal["missing", "extra", "changed"], path: Path, desired: Any, live: Any) -> None:
        overrides = kind == "changed" and is_override(desired, live)
        if self._kind == "Secret" and path[0] in ("f:data", "f:stringData"):
            desired = live = HIDDEN
        self._found.append(Difference(format_path(path), kind, desired, None if live is ABSENT else live, overrides))

    def _compare_fields(
        self, desired: Mapping[str, Any], live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path
    ) -> None:
        """The fields of a mapping that merges field by field."""
        held = live if isinstance(live, dict) else {}
        known = 0
        for name, value in desired.items():
            element = "f:" + name
            below = owned.get(element)
            if isinstance(below, dict):
                known += 1
                if not value and name not in held and self._is_dropped(name, value, schema):
                    continue
                child = schema.find_child(name) if schema is not None else None
                self._compare_value(value, held.get(name, ABSENT), below, child, path, element)
            elif not _owns_nothing(name, value, schema) or (not self._is_typed and name not in held):
                # A custom resource gets even an empty list that nobody owns.
                self._report("missing", (*path, element), value, held.get(name))
        if len(owned) - ("." in owned) != known:
            for element in owned:
                if element != "." and element[2:] not in desired:
                    self._report("extra", (*path, element), None, held.get(element[2:]))

    def _is_dropped(self, name: str, value: Any, schema: Schema | None) -> bool:
        """Tell whether the server stores the empty value by storing nothing, as it does with most fields' zeros."""
        if not self._is_typed or schema is None:
            return False
        field = schema.properties.get(name)
        if field is None:
            return False
        return value is None or (name not in schema.keeps_zero and not (isinstance(value, dict) and field.properties))

    def _compare_value(
        self, desired: Any, live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path, element: str
    ) -> None:
        """One value of ours, by what it is and by what we own below it."""
        below = len(owned) - ("." in owned)
        if isinstance(desired, dict):
            if below or (desired and schema is not None and is_granular(schema, desired)):
                self._compare_fields(desired, live, owned, schema, (*path, element))
                return
            if not desired and isinstance(live, dict) and schema is not None and is_granular(schema, live):
                return  # Whatever is in there is others'.
        elif isinstance(desired, list):
            if below or (desired and schema is not None and is_granular(schema, desired)):
                self._compare_items(desired, live, owned, schema, (*path, element))
                return
        elif desired is None and not below and schema is not None and is_granular(schema, live):
            return  # To apply null to it changes nothing.
        if live is None and self._is_typed and isinstance(desired, dict | list) and not desired:
            return  # The server's storage does not tell an empty one from none.
        if not is_same_value(desired, live) and not self._is_added((*path, element), desired, live):
            self._report("changed", (*path, element), desired, live)

    def _is_added(self, path: Path, desired: Any, live: Any) -> bool:
        """Tell whether only the server made the difference, in a field that is ours all the same.

        It allocates what a Service asks for with a zero, and admission adds tolerations to every Pod.
        """
        if self._kind == "Service" and path[-1] in _ALLOCATED:
            return not desired
        if self._kind != "Pod" or path != ("f:spec", "f:tolerations") or not isinstance(live, list):
            return False
        ours = [each for each in live if each not in _ADDED_TOLERATIONS or each in desired]
        return is_same_value(desired, ours)

    def _compare_items(
        self, desired: Sequence[Any], live: Any, owned: Mapping[str, Any], schema: Schema | None, path: Path
    ) -> None:
        """The items of a list that merges by item."""
        held = live if isinstance(live, list) else []
        keyed = schema.list_type == "map" if schema is not None else any(it.startswith("k:") for it in owned)
        of = schema.items if schema is not None else None
        elements = (
            _list_elements(desired, owned, schema, of) if keyed else [_to_member_element(each) for each in desired]
        )
        places = _index_elements(held, elements, keyed=keyed)
        known = 0
        last = -1
        ordered = True
        for item, element in zip(desired, elements, strict=True):
            below = owned.get(element)
            place = places.get(element)
            known += below is not None
            if not isinstance(below, dict) or place is None:
                self._report("missing", (*path, element), item, None if place is None else held[place])
                continue
            ordered = ordered and place > last
            last = place
            if below:
                self._compare_fields(item, held[place], below, of, (*path, element))
            elif not is_same_value(item, held[place]):  # an item that is atomic, as an owner reference is
                self._report("changed", (*path, element), item, held[place])
        if not ordered:
            self._report("changed", path, desired, live)
        if len(owned) - ("." in owned) != known:
            for element in sorted(owned.keys() - set(elements) - {"."}):
                place = _index_elements(held, [element], keyed=keyed).get(element)
                self._report("extra", (*path, element), None, None if place is None else held[place])


def _owns_nothing(name: str, value: Any, schema: Schema | None) -> bool:
    """Tell whether applying the value makes nobody an owner: an empty list that merges by item, or only such inside."""
    if schema is None or not isinstance(value, dict | list):
        return isinstance(value, list) and not value
    return not build_field_set({name: value}, schema)


def _list_elements(
    desired: Sequence[Any], owned: Mapping[str, Any], schema: Schema | None, of: Schema | None
) -> list[str]:
    """The path element of each item of a list with keys.

    Without a schema a key field that the item leaves out is read from our own record, which has its default.
    """
    if schema is not None:
        return [find_item_element(schema, item) or "k:{}" for item in desired]
    left = [element for element in owned if element.startswith("k:")]
    names = {name for element in left for name in parse_key_element(element)}
    found: list[str] = []
    for item in desired:
        keys = {name: item[name] for name in names if isinstance(item, dict) and name in item}
        element = key_element(keys)
        if element not in left:
            element = next((each for each in left if keys.items() <= parse_key_element(each).items()), element)
        if element in left:
            left.remove(element)
        found.append(element)
    return found


def _to_key(value: Any) -> Any:
    """The value of a key field; one that cannot be a key matches none."""
    return ABSENT if isinstance(value, dict | list) else value


def _to_member_element(value: Any) -> str:
    """The path element of a member of a set; one that cannot be a member has one that nobody owns."""
    return "v:{}" if isinstance(value, dict | list) else value_element(value)


def _index_elements(held: Sequence[Any], elements: Sequence[str], *, keyed: bool) -> dict[str, int]:
    """Where in the live list each element is."""
    if not keyed:
        return {_to_member_element(value): place for place, value in enumerate(held)}
    by_names: dict[tuple[str, ...], dict[tuple[Any, ...], int]] = {}
    found = {}
    for element in elements:
        keys = parse_key_element(element)
        names = tuple(keys)
        places = by_names.get(names)
        if places is None:
            places = by_names[names] = {
                tuple(_to_key(item.get(name)) for name in names): place
                for place, item in enumerate(held)
                if isinstance(item, dict)
            }
        place = places.get(tuple(keys.values()))
        if place is not None:
            found[element] = place
    return found

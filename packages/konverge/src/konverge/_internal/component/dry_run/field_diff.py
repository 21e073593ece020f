"""Comparison of two states of an object, field by field: differences, field owners and conflicts of ownership. Pure.

List items are identified by their keys if ``managedFields`` has keys for them, so no schema of the kind is necessary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge._internal.apply import ABSENT, HIDDEN, FieldSet
from konverge._internal.apply.field_set import EMPTY, Path, format_path, key_element, parse_key_element, value_element
from konverge._internal.apply.managed_fields import Manager, ManagerEntries, ManagerEntry, decode_managed_fields
from konverge._internal.apply.typed_values import is_same_value
from konverge._internal.component.dry_run.report import FieldChange, FieldManagerInfo, OwnershipConflict, truncate_value
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.kube.secret_redaction import LAST_APPLIED, SECRET_FIELDS
from konverge._internal.kube.secret_values import SecretValues

__all__ = ["find_field_changes", "find_ownership_conflicts", "has_ownership_change", "list_desired_fields"]

_Difference: TypeAlias = tuple[Path, Any, Any]

# Metadata that a server writes with each change. The status is left out too, because no apply changes it.
_SERVER_WRITTEN = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_SECRET = tuple(f"f:{name}" for name in SECRET_FIELDS)
_LAST_APPLIED = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


def find_field_changes(
    live: Object, after: Object, field_manager: str, secrets: SecretValues
) -> tuple[FieldChange, ...]:
    """Return the changes of a write by that manager: first values, then fields that it claims or gives up.

    Args:
        live: The live object.
        after: The object that the server would store.
        field_manager: The component's field manager.
        secrets: The values that are not shown in any field.
    """
    before, then = _FieldOwnership.of(live, field_manager), _FieldOwnership.of(after, field_manager)
    hides = _ValueHider(live, secrets)
    differing = list(
        _DiffWalk(before.everything | then.everything).find_differences(
            _strip_server_fields(live), _strip_server_fields(after), ()
        )
    )
    changes = []
    for path, was, will_be in differing:
        owners = before.list_owners(path)
        changes.append(
            FieldChange(
                format_path(path),
                "added" if was is ABSENT else "removed" if will_be is ABSENT else "changed",
                hides(path, was),
                hides(path, will_be),
                owners,
                tuple(owner for owner in owners if not owner.is_ours and not then.owns(owner, path)),
            )
        )
    seen = FieldSet.of(path for path, _, _ in differing)
    for path in _iter_leaves((then.ours - before.ours).subtract_trees(seen)):
        if not _covers(seen, path):
            value = hides(path, _read_value(after, path))
            changes.append(FieldChange(format_path(path), "claimed", value, value, before.list_owners(path)))
    for path in _iter_leaves((before.ours - then.ours).subtract_trees(seen)):
        if not _covers(seen, path):
            value = hides(path, _read_value(after, path))
            changes.append(FieldChange(format_path(path), "left", value, value, before.list_owners(path)))
    return tuple(changes)


def list_desired_fields(desired: Object, secrets: SecretValues) -> tuple[FieldChange, ...]:
    """Return the desired fields of an object that does not exist yet."""
    hides = _ValueHider(desired, secrets)
    desired_fields = {
        name: value for name, value in _strip_server_fields(desired).items() if name not in ("apiVersion", "kind")
    }
    desired_fields["metadata"] = {
        name: value for name, value in desired_fields.get("metadata", {}).items() if name not in ("name", "namespace")
    }
    return tuple(
        FieldChange(format_path(path), "added", None, hides(path, value))
        for path, _, value in _DiffWalk(EMPTY).find_differences({}, desired_fields, ())
        if value != {}
    )


def has_ownership_change(live: Object, after: Object, field_manager: str) -> bool:
    """Return True if a write by that manager changes the set of fields that it owns."""
    return _FieldOwnership.of(live, field_manager).ours != _FieldOwnership.of(after, field_manager).ours


def find_ownership_conflicts(
    live: Object, after: Object, field_manager: str, secrets: SecretValues
) -> tuple[OwnershipConflict, ...]:
    """Return the fields that the manager applies and another manager owns in the live object.

    Args:
        live: The live object.
        after: The object after the apply of the manager; the live object if no apply is necessary.
        field_manager: The component's field manager.
        secrets: The values that are not shown in any field.
    """
    ours = _FieldOwnership.of(after, field_manager).ours
    hides = _ValueHider(live, secrets)
    conflicts = []
    for manager, owned in _decode_managed_fields(live).items():
        if manager == Manager.applier(field_manager):
            continue
        for path in _iter_leaves(owned.fields & ours):
            live_value, wanted = _read_value(live, path), _read_value(after, path)
            differs = not is_same_value(live_value, wanted)
            conflicts.append(
                OwnershipConflict(
                    format_path(path),
                    _build_manager_info(manager, owned, is_ours=False),
                    hides(path, live_value),
                    hides(path, wanted),
                    differs,
                )
            )
    return tuple(sorted(conflicts, key=lambda conflict: not conflict.is_fought_over))


def _strip_server_fields(obj: Object) -> Object:
    """Return the object without status and without metadata that the server writes."""
    stripped = {name: value for name, value in obj.items() if name != "status"}
    metadata = obj.get("metadata")
    if isinstance(metadata, Mapping):
        stripped["metadata"] = {name: value for name, value in metadata.items() if name not in _SERVER_WRITTEN}
    return stripped


class _ValueHider:
    """Formatter of the values of an object: shortened, and without values of Secrets in any object."""

    def __init__(self, obj: Object, secrets: SecretValues) -> None:
        self._is_secret = GroupVersionKind.of(obj).is_secret
        self._secrets = secrets

    def __call__(self, path: Path, value: Any) -> Any:
        if value is ABSENT:
            return None
        if self._is_secret and (path[0] in _SECRET or path == _LAST_APPLIED):
            return HIDDEN
        return HIDDEN if self._secrets.is_in(value) else truncate_value(value)


@dataclass(frozen=True, slots=True)
class _FieldOwnership:
    """The owners of the fields of an object, from the view of one manager."""

    managed: ManagerEntries
    manager: Manager

    @staticmethod
    def of(obj: Object, field_manager: str) -> _FieldOwnership:
        return _FieldOwnership(_decode_managed_fields(obj), Manager.applier(field_manager))

    @property
    def ours(self) -> FieldSet:
        owned = self.managed.get(self.manager)
        return EMPTY if owned is None else owned.fields

    @property
    def everything(self) -> FieldSet:
        fields = EMPTY
        for owned in self.managed.values():
            fields |= owned.fields
        return fields

    def list_owners(self, path: Path) -> tuple[FieldManagerInfo, ...]:
        return tuple(
            _build_manager_info(manager, owned, is_ours=manager == self.manager)
            for manager, owned in self.managed.items()
            if _covers(owned.fields, path)
        )

    def owns(self, writer: FieldManagerInfo, path: Path) -> bool:
        return any(
            (owner.manager, owner.operation, owner.subresource)
            == (writer.manager, writer.operation, writer.subresource)
            for owner in self.list_owners(path)
        )


def _decode_managed_fields(obj: Object) -> ManagerEntries:
    return decode_managed_fields(obj["metadata"].get("managedFields"))


def _build_manager_info(manager: Manager, owned: ManagerEntry, *, is_ours: bool) -> FieldManagerInfo:
    return FieldManagerInfo(manager.name, manager.operation, manager.subresource, owned.time, is_ours)


def _covers(fields: FieldSet, path: Path) -> bool:
    """Return True if a manager with these fields owns the path, a field below it, or a whole value around it."""
    node = fields
    for element in path:
        if node.owned and not node.children:
            return True
        below = node.children.get(element)
        if below is None:
            return False
        node = below
    return True


def _iter_leaves(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    for element, below in fields.children.items():
        if below.children:
            yield from _iter_leaves(below, (*prefix, element))
        elif below.owned:
            yield (*prefix, element)


def _read_value(obj: Object, path: Path) -> Any:
    value: Any = obj
    for element in path:
        if isinstance(value, dict) and element.startswith("f:"):
            value = value.get(element[2:], ABSENT)
        elif isinstance(value, list) and element.startswith("k:"):
            keys = parse_key_element(element)
            items = (item for item in value if isinstance(item, dict) and keys.items() <= item.items())
            value = next(items, ABSENT)
        elif isinstance(value, list) and element.startswith("v:"):
            value = next((item for item in value if _build_member_element(item) == element), ABSENT)
        else:
            return ABSENT
    return value


def _build_member_element(item: Any) -> str:
    return "" if isinstance(item, dict | list) else value_element(item)


class _DiffWalk:
    """A walk through two values in parallel.

    Args:
        known: The paths whose elements identify the items of lists.
    """

    def __init__(self, known: FieldSet) -> None:
        self._known = known

    def find_differences(
        self, one: Any, other: Any, path: Path, known: FieldSet | None = None
    ) -> Iterator[_Difference]:
        """Yield the differences: single values, and lists that are one value."""
        known = self._known if known is None else known
        if is_same_value(one, other):
            return
        parts = self._match_parts(one, other, known)
        if parts is None:
            yield path, one, other
            return
        for element, (was, will_be) in parts.items():
            yield from self.find_differences(was, will_be, (*path, element), known.children.get(element, EMPTY))

    def _match_parts(self, one: Any, other: Any, known: FieldSet) -> dict[str, tuple[Any, Any]] | None:
        """Pair the children of both values by path element; None if the values are compared as a whole."""
        shapes = {type(value) for value in (one, other) if value is not ABSENT}
        if shapes == {dict}:
            one, other = _index_fields(one), _index_fields(other)
        elif shapes == {list}:
            one, other = _index_items(one, known), _index_items(other, known)
        else:
            return None
        if one is None or other is None or not (one or other) or list(one) == list(other) == []:
            return None
        names = dict.fromkeys((*one, *other))
        parts = {name: (one.get(name, ABSENT), other.get(name, ABSENT)) for name in names}
        if all(is_same_value(was, will_be) for was, will_be in parts.values()):
            return None  # the same items in another order, or an empty value instead of none
        return parts


def _index_fields(value: Any) -> dict[str, Any]:
    return {} if value is ABSENT else {f"f:{name}": child for name, child in value.items()}


def _index_items(value: Any, known: FieldSet) -> dict[str, Any] | None:
    """Return the items by path element; None for a list that is one value, or whose items have no keys."""
    if value is ABSENT:
        return {}
    elements = list(known.children)
    if any(element.startswith("k:") for element in elements):
        names = {name for element in elements for name in parse_key_element(element)}
        indexed = {}
        for item in value:
            keys = {name: item[name] for name in names if name in item} if isinstance(item, dict) else {}
            if not keys or any(isinstance(key, dict | list) for key in keys.values()):
                return None
            indexed[key_element(keys)] = item
        return indexed if len(indexed) == len(value) else None
    if any(element.startswith("v:") for element in elements):
        return {_build_member_element(item): item for item in value} if all(map(_build_member_element, value)) else None
    return None

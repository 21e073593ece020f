"""Two states of one object, field by field: what differs, who owns it, and who else writes what we apply. Pure.

Items of a list are told by their keys where ``managedFields`` knows them by keys; nobody needs the kind's schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from konverge.apply import ABSENT, HIDDEN, FieldSet
from konverge.apply.fields import EMPTY, Path, format_path, key_element, key_fields, value_element
from konverge.apply.managers import Managed, Manager, Owned, decode
from konverge.apply.structure import same_value
from konverge.component.rehearsal.values import Contest, FieldChange, Writer, shortened
from konverge.kube import GroupVersionKind, Object
from konverge.kube.secret_values import SecretValues
from konverge.kube.secrets import LAST_APPLIED, SECRET_FIELDS

__all__ = ["contests", "field_changes", "ownership_changed", "wanted_fields"]

_Difference: TypeAlias = tuple[Path, Any, Any]

# What a server writes with each change, and what is not the author's: no apply changes a status.
_SERVER_WRITTEN = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")
_SECRET = tuple(f"f:{name}" for name in SECRET_FIELDS)
_LAST_APPLIED = ("f:metadata", "f:annotations", f"f:{LAST_APPLIED}")


def field_changes(live: Object, after: Object, field_manager: str, secrets: SecretValues) -> tuple[FieldChange, ...]:
    """What a write by that manager changes: first values, then fields whose owner it becomes or ceases to be.

    Args:
        live: The object as it is.
        after: As the server would store it.
        field_manager: The component's.
        secrets: What is not shown, wherever it is.
    """
    before, then = _Ownership.of(live, field_manager), _Ownership.of(after, field_manager)
    hides = _hiding(live, secrets)
    differing = list(_Walk(before.everything | then.everything).differences(_told(live), _told(after), ()))
    found = []
    for path, was, will_be in differing:
        owners = before.owners(path)
        found.append(
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
    for path in _leaves((then.ours - before.ours).without_trees(seen)):
        if not _covers(seen, path):
            value = hides(path, _value_at(after, path))
            found.append(FieldChange(format_path(path), "claimed", value, value, before.owners(path)))
    for path in _leaves((before.ours - then.ours).without_trees(seen)):
        if not _covers(seen, path):
            value = hides(path, _value_at(after, path))
            found.append(FieldChange(format_path(path), "left", value, value, before.owners(path)))
    return tuple(found)


def wanted_fields(desired: Object, secrets: SecretValues) -> tuple[FieldChange, ...]:
    """The fields of an object that does not exist yet, as a component wants them."""
    hides = _hiding(desired, secrets)
    wanted = {name: value for name, value in _told(desired).items() if name not in ("apiVersion", "kind")}
    wanted["metadata"] = {
        name: value for name, value in wanted.get("metadata", {}).items() if name not in ("name", "namespace")
    }
    return tuple(
        FieldChange(format_path(path), "added", None, hides(path, value))
        for path, _, value in _Walk(EMPTY).differences({}, wanted, ())
        if value != {}
    )


def ownership_changed(live: Object, after: Object, field_manager: str) -> bool:
    """Tell whether a write by that manager changes which fields are its own."""
    return _Ownership.of(live, field_manager).ours != _Ownership.of(after, field_manager).ours


def contests(live: Object, after: Object, field_manager: str, secrets: SecretValues) -> tuple[Contest, ...]:
    """Who else owns, in the live object, a field that the manager applies.

    Args:
        live: The object as it is.
        after: As it would be once the manager has applied; the same one where nothing need be applied.
        field_manager: The component's.
        secrets: What is not shown, wherever it is.
    """
    ours = _Ownership.of(after, field_manager).ours
    hides = _hiding(live, secrets)
    found = []
    for manager, owned in _decoded(live).items():
        if manager == Manager.applier(field_manager):
            continue
        for path in _leaves(owned.fields & ours):
            is_value, wanted = _value_at(live, path), _value_at(after, path)
            differs = not same_value(is_value, wanted)
            found.append(
                Contest(
                    format_path(path),
                    _writer(manager, owned, is_ours=False),
                    hides(path, is_value),
                    hides(path, wanted),
                    differs,
                )
            )
    return tuple(sorted(found, key=lambda contest: not contest.is_fought_over))


def _told(obj: Object) -> Object:
    """The object without what the server writes."""
    found = {name: value for name, value in obj.items() if name != "status"}
    metadata = obj.get("metadata")
    if isinstance(metadata, Mapping):
        found["metadata"] = {name: value for name, value in metadata.items() if name not in _SERVER_WRITTEN}
    return found


class _hiding:
    """Tells a value of an object, short, and of a Secret none, whatever object it was copied to."""

    def __init__(self, obj: Object, secrets: SecretValues) -> None:
        self._is_secret = GroupVersionKind.of(obj).is_secret
        self._secrets = secrets

    def __call__(self, path: Path, value: Any) -> Any:
        if value is ABSENT:
            return None
        if self._is_secret and (path[0] in _SECRET or path == _LAST_APPLIED):
            return HIDDEN
        return HIDDEN if self._secrets.are_in(value) else shortened(value)


@dataclass(frozen=True, slots=True)
class _Ownership:
    """Who owns what of an object, seen by one manager."""

    managed: Managed
    manager: Manager

    @staticmethod
    def of(obj: Object, field_manager: str) -> _Ownership:
        return _Ownership(_decoded(obj), Manager.applier(field_manager))

    @property
    def ours(self) -> FieldSet:
        owned = self.managed.get(self.manager)
        return EMPTY if owned is None else owned.fields

    @property
    def everything(self) -> FieldSet:
        found = EMPTY
        for owned in self.managed.values():
            found |= owned.fields
        return found

    def owners(self, path: Path) -> tuple[Writer, ...]:
        return tuple(
            _writer(manager, owned, is_ours=manager == self.manager)
            for manager, owned in self.managed.items()
            if _covers(owned.fields, path)
        )

    def owns(self, writer: Writer, path: Path) -> bool:
        return any(
            (found.manager, found.operation, found.subresource)
            == (writer.manager, writer.operation, writer.subresource)
            for found in self.owners(path)
        )


def _decoded(obj: Object) -> Managed:
    return decode(obj["metadata"].get("managedFields"))


def _writer(manager: Manager, owned: Owned, *, is_ours: bool) -> Writer:
    return Writer(manager.name, manager.operation, manager.subresource, owned.time, is_ours)


def _covers(fields: FieldSet, path: Path) -> bool:
    """Tell whether somebody with these fields owns the path: itself, something below it, or the whole it is in."""
    node = fields
    for element in path:
        if node.owned and not node.children:
            return True
        below = node.children.get(element)
        if below is None:
            return False
        node = below
    return True


def _leaves(fields: FieldSet, prefix: Path = ()) -> Iterator[Path]:
    for element, below in fields.children.items():
        if below.children:
            yield from _leaves(below, (*prefix, element))
        elif below.owned:
            yield (*prefix, element)


def _value_at(obj: Object, path: Path) -> Any:
    found: Any = obj
    for element in path:
        if isinstance(found, dict) and element.startswith("f:"):
            found = found.get(element[2:], ABSENT)
        elif isinstance(found, list) and element.startswith("k:"):
            keys = key_fields(element)
            items = (item for item in found if isinstance(item, dict) and keys.items() <= item.items())
            found = next(items, ABSENT)
        elif isinstance(found, list) and element.startswith("v:"):
            found = next((item for item in found if _member(item) == element), ABSENT)
        else:
            return ABSENT
    return found


def _member(item: Any) -> str:
    return "" if isinstance(item, dict | list) else value_element(item)


class _Walk:
    """Walks through two values at once.

    Args:
        known: Paths whose elements tell how items of lists are named.
    """

    def __init__(self, known: FieldSet) -> None:
        self._known = known

    def differences(self, one: Any, other: Any, path: Path, known: FieldSet | None = None) -> Iterator[_Difference]:
        """Where they differ, and how: single values, and lists that are one value."""
        known = self._known if known is None else known
        if same_value(one, other):
            return
        parts = self._parts(one, other, known)
        if parts is None:
            yield path, one, other
            return
        for element, (was, will_be) in parts.items():
            yield from self.differences(was, will_be, (*path, element), known.children.get(element, EMPTY))

    def _parts(self, one: Any, other: Any, known: FieldSet) -> dict[str, tuple[Any, Any]] | None:
        """What the two have in them, by path element; None where they are to be told whole."""
        shapes = {type(value) for value in (one, other) if value is not ABSENT}
        if shapes == {dict}:
            one, other = _fields(one), _fields(other)
        elif shapes == {list}:
            one, other = _items(one, known), _items(other, known)
        else:
            return None
        if one is None or other is None or not (one or other) or list(one) == list(other) == []:
            return None
        names = dict.fromkeys((*one, *other))
        parts = {name: (one.get(name, ABSENT), other.get(name, ABSENT)) for name in names}
        if all(same_value(was, will_be) for was, will_be in parts.values()):
            return None  # the same items in another order, or an empty one where there was none
        return parts


def _fields(value: Any) -> dict[str, Any]:
    return {} if value is ABSENT else {f"f:{name}": each for name, each in value.items()}


def _items(value: Any, known: FieldSet) -> dict[str, Any] | None:
    """The items by path element; None for a list that is one value, or whose items have no keys."""
    if value is ABSENT:
        return {}
    elements = list(known.children)
    if any(element.startswith("k:") for element in elements):
        names = {name for element in elements for name in key_fields(element)}
        found = {}
        for item in value:
            keys = {name: item[name] for name in names if name in item} if isinstance(item, dict) else {}
            if not keys or any(isinstance(each, dict | list) for each in keys.values()):
                return None
            found[key_element(keys)] = item
        return found if len(found) == len(value) else None
    if any(element.startswith("v:") for element in elements):
        return {_member(item): item for item in value} if all(map(_member, value)) else None
    return None

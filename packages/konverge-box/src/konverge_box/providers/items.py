"""The items that a custom resource declares of one provider, and which of them are wanted now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge_box.expressions import Absent, Template, compile_expression, compile_structure, is_expression
from konverge_box.expressions.conditions import compile_field
from konverge_box.expressions.values import describe_value_type, format_hint
from konverge_box.file import ForEach, ProviderItem
from konverge_box.providers.item_records import ItemRecord
from konverge_box.providers.plugin import ItemKind, OnDelete, Provider
from konverge_box.providers.secret_refs import extract_secret_references
from konverge_box.providers.spec_conversion import check_fields, convert_spec, extract_identity
from konverge_box.steps import ObjectReader, Scope, StepError, compile_entry_conditions

__all__ = ["MAX_ITEMS", "DeclaredItem", "PlannedItem", "PreparedItem"]

MAX_ITEMS = 200
"""Of one owner, those of all providers together."""

_COMMON_FIELDS = ("name", "onDelete")
_MAX_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item of this pass.

    Args:
        declared: What it was made from.
        where: Its path in the file.
        item: What expressions call it.
        kind: One of the provider's kinds.
        is_desired: Whether its conditions hold.
        scope: What its expressions know.
        spec: Its spec without the values of Secrets; empty if it is not wanted.
    """

    declared: DeclaredItem
    where: str
    item: str
    kind: str
    is_desired: bool
    scope: Scope
    spec: Mapping[str, Any]

    async def prepare_item(self, namespace: str, reader: ObjectReader) -> PreparedItem:
        """With all values, checked against the provider's class.

        Args:
            namespace: The owner's.
            reader: Reads Secrets.

        Raises:
            konverge_box.providers.secret_refs.MissingSecretError: A Secret is not there yet.
            StepError: The values do not fit.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        spec = dict(self.spec)
        for place in self.declared.secrets:
            await place.resolve_into(spec, self.scope, namespace, reader)
        return self.declared.prepare_item(self, spec)

    def render_on_delete(self) -> OnDelete:
        """What is to happen to it when it is not wanted any more."""
        policy = self.spec.get("onDelete", self.declared.kind.on_delete)
        if policy not in ("retain", "delete"):
            raise StepError(f"{self.where}.spec.onDelete", "expected retain or delete")
        found: OnDelete = policy
        return found


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """An item that can be asked for: what is recorded of it, and its spec in the provider's class."""

    planned: PlannedItem
    record: ItemRecord
    spec: Any


class DeclaredItem:
    """One entry of the file's list, compiled.

    Args:
        declared: The entry.
        provider: Whose it is.
        where: Its path in the file.

    Raises:
        StepError: The provider has no such kind, or a kind no such field.
        konverge_box.expressions.ExpressionSyntaxError: What loading would have refused.
    """

    def __init__(self, declared: ProviderItem, provider: Provider, where: str) -> None:
        kind = provider.kinds.get(declared.kind)
        if kind is None:
            raise StepError(
                f"{where}.kind",
                f"{provider.name} has no kind {declared.kind}{format_hint(declared.kind, provider.kinds)}",
            )
        check_fields(declared.spec, kind.spec, f"{where}.spec", also=_COMMON_FIELDS if kind.is_named else ("onDelete",))
        rest, self.secrets = extract_secret_references(declared.spec, f"{where}.spec")
        if not self.secrets and not any(_iter_expressions(rest)):
            convert_spec({k: v for k, v in rest.items() if k not in _COMMON_FIELDS}, kind.spec, f"{where}.spec")
        self.kind: ItemKind = kind
        self.conditions = compile_entry_conditions(declared, where)
        self.provider = provider.name
        self.kind_name = declared.kind
        self._where = where
        self._for_each = declared.for_each
        self._field: Template | None = None
        if declared.for_each is not None:
            self._field = compile_field(declared.for_each.field, where=f"{where}.forEach.field")
        self._name = compile_expression(declared.name, where=f"{where}.name")
        self._spec = compile_structure(rest, where=f"{where}.spec")

    def plan_items(self, scope: Scope) -> Iterator[PlannedItem]:
        """The items that it comes to.

        Raises:
            KonvergeError: It cannot be said which.
        """
        for place, inner in self._iter_scopes(scope):
            where = self._where if place is None else f"{self._where}[{place}]"
            is_wanted = inner.holds(self.conditions)
            # A name may need what is not there when the conditions do not hold.
            name = inner.render(self._name) if is_wanted else inner.find(self._name)
            if not is_wanted and type(name) is not str:
                continue
            spec = inner.render(self._spec) if is_wanted else {}
            yield PlannedItem(self, where, _to_name(name, f"{where}.name"), self.kind_name, is_wanted, inner, spec)

    def prepare_item(self, planned: PlannedItem, spec: Mapping[str, Any]) -> PreparedItem:
        """An item of it with this spec, checked."""
        where = f"{planned.where}.spec"
        fitting = convert_spec({k: v for k, v in spec.items() if k not in _COMMON_FIELDS}, self.kind.spec, where)
        record = ItemRecord(
            provider=self.provider,
            kind=self.kind_name,
            name=_to_name(spec.get("name", planned.item), f"{where}.name") if self.kind.is_named else "",
            item=planned.item,
            identity=extract_identity(fitting, self.kind.identity, where),
            on_delete=planned.render_on_delete(),
        )
        return PreparedItem(planned, record, fitting)

    def find_next_change(self, now: datetime) -> datetime | None:
        """When its conditions may be otherwise although nothing else is."""
        return self.conditions.find_next_change(now)

    def _iter_scopes(self, scope: Scope) -> Iterator[tuple[int | None, Scope]]:
        if self._for_each is None or self._field is None:
            yield None, scope
            return
        for index, names in enumerate(_iter_elements(scope.find(self._field), self._for_each, self._where)):
            yield index, scope.with_names(index=index, **names)


def _iter_elements(found: Any, for_each: ForEach, where: str) -> Iterable[dict[str, Any]]:
    if isinstance(found, Absent) or found is None:
        return []
    if not isinstance(found, list | Mapping):
        raise StepError(
            f"{where}.forEach", f"{for_each.field}: expected a list or a mapping, found {describe_value_type(found)}"
        )
    if len(found) > MAX_ITEMS:
        raise StepError(f"{where}.forEach", f"{for_each.field} has {len(found)} elements; expected at most {MAX_ITEMS}")
    if isinstance(found, Mapping):
        return [{"item": key, "value": found[key], for_each.as_: key} for key in sorted(found)]
    return [{"item": element, for_each.as_: element} for element in found]


def _to_name(value: Any, where: str) -> str:
    if type(value) is not str or not 0 < len(value) <= _MAX_NAME_LENGTH:
        raise StepError(
            where, f"expected a text of 1 to {_MAX_NAME_LENGTH} letters, found {describe_value_type(value)}"
        )
    return value


def _iter_expressions(value: Any) -> Iterator[str]:
    """The texts in a value that have expressions."""
    if isinstance(value, str):
        if is_expression(value):
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _iter_expressions(key)
            yield from _iter_expressions(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _iter_expressions(item)

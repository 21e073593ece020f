"""The declared items of one provider, and the selection of those whose conditions hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from konverge_box._internal.expressions import compile_expression, compile_structure, is_expression
from konverge_box._internal.expressions.values import describe_value_type, format_hint
from konverge_box._internal.file import ProviderItem
from konverge_box._internal.providers.item_records import ItemRecord
from konverge_box._internal.providers.plugin import ItemKind, OnDelete, Provider
from konverge_box._internal.providers.secret_refs import extract_secret_references
from konverge_box._internal.providers.spec_conversion import check_fields, convert_spec, extract_identity
from konverge_box._internal.steps import ObjectReader, Scope, StepError, compile_entry_conditions
from konverge_box._internal.steps.for_each import Repetition

__all__ = ["MAX_ITEMS", "DeclaredItem", "PlannedItem", "PreparedItem"]

MAX_ITEMS = 200
"""Maximum number of items of one owner, for all providers together."""

_COMMON_FIELDS = ("name", "onDelete")
_MAX_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item in this reconcile.

    Args:
        declared: The entry that declares it.
        where: Its path in the file.
        item: Its name in expressions.
        kind: One of the provider's kinds.
        is_desired: Tells whether its conditions hold.
        scope: The scope of its expressions.
        spec: Its spec without the values of Secrets; empty if its conditions do not hold.
    """

    declared: DeclaredItem
    where: str
    item: str
    kind: str
    is_desired: bool
    scope: Scope
    spec: Mapping[str, Any]

    async def prepare_item(self, namespace: str, reader: ObjectReader) -> PreparedItem:
        """Add the values of Secrets, and check the spec against the provider's class.

        Args:
            namespace: The owner's.
            reader: Reads Secrets.

        Raises:
            providers.secret_refs.MissingSecretError: A Secret does not exist yet.
            StepError: The values do not fit the class.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        spec = dict(self.spec)
        for place in self.declared.secrets:
            await place.resolve_into(spec, self.scope, namespace, reader)
        return self.declared.prepare_item(self, spec)

    def render_on_delete(self) -> OnDelete:
        """Return the action on the item when it is no longer declared."""
        policy = self.spec.get("onDelete", self.declared.kind.on_delete)
        if policy not in ("retain", "delete"):
            raise StepError(
                f"{self.where}.spec.onDelete", f"expected retain or delete, found {describe_value_type(policy)}"
            )
        on_delete: OnDelete = policy
        return on_delete


@dataclass(frozen=True, slots=True)
class PreparedItem:
    """An item that is ready for a call: its record, and its spec as an instance of the provider's class."""

    planned: PlannedItem
    record: ItemRecord
    spec: Any


class DeclaredItem:
    """One compiled entry of the file's list.

    Args:
        declared: The entry.
        provider: The provider of the item.
        where: Its path in the file.

    Raises:
        StepError: The provider does not have the kind, or the kind does not have a field.
        konverge_box.expressions.ExpressionSyntaxError: An expression is invalid. Loading the file reports that earlier.
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
        self._repetition = Repetition(declared.for_each, where, MAX_ITEMS)
        self._name = compile_expression(declared.name, where=f"{where}.name")
        self._spec = compile_structure(rest, where=f"{where}.spec")

    def plan_items(self, scope: Scope) -> Iterator[PlannedItem]:
        """Yield the items of the entry.

        Raises:
            KonvergeError: The items cannot be determined.
        """
        for inner in self._repetition.list_scopes(scope):
            where = f"{self._where}[{inner.names['index']}]" if self._repetition.is_loop else self._where
            is_wanted = inner.holds(self.conditions)
            # A name can read values that are absent when the conditions do not hold.
            name = inner.render(self._name) if is_wanted else inner.find(self._name)
            if not is_wanted and type(name) is not str:
                continue
            spec = inner.render(self._spec) if is_wanted else {}
            yield PlannedItem(self, where, _to_name(name, f"{where}.name"), self.kind_name, is_wanted, inner, spec)

    def prepare_item(self, planned: PlannedItem, spec: Mapping[str, Any]) -> PreparedItem:
        """Check the spec of an item, and build its record."""
        where = f"{planned.where}.spec"
        converted = convert_spec({k: v for k, v in spec.items() if k not in _COMMON_FIELDS}, self.kind.spec, where)
        record = ItemRecord(
            provider=self.provider,
            kind=self.kind_name,
            name=_to_name(spec.get("name", planned.item), f"{where}.name") if self.kind.is_named else "",
            item=planned.item,
            identity=extract_identity(converted, self.kind.identity, where),
            on_delete=planned.render_on_delete(),
        )
        return PreparedItem(planned, record, converted)

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which its conditions can change by themselves; None without one."""
        return self.conditions.find_next_change(now)


def _to_name(value: Any, where: str) -> str:
    if type(value) is not str or not 0 < len(value) <= _MAX_NAME_LENGTH:
        raise StepError(
            where, f"expected text of 1 to {_MAX_NAME_LENGTH} characters, found {describe_value_type(value)}"
        )
    return value


def _iter_expressions(value: Any) -> Iterator[str]:
    """Yield the texts in a value that contain expressions."""
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

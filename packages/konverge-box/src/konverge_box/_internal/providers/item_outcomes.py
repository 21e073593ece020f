"""The outcomes of items in a reconcile: results for expressions, conditions, the list in the status."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from konverge._internal.kube import Condition, Object
from konverge._internal.message_text import shorten
from konverge_box._internal.expressions import Sensitive, reveal_sensitive
from konverge_box._internal.providers.plugin import ItemResult, PendingDeletion, ProviderError

__all__ = [
    "PROVIDER_REASONS",
    "ItemOutcome",
    "State",
    "build_conditions",
    "build_results",
    "build_status",
    "check_deletion",
    "check_result",
    "find_secrets",
    "redact_secrets",
]

State: TypeAlias = Literal["Failed", "Blocked", "Pending", "Skipped", "Ready"]

# The reason of the condition is the first of these states that an item has.
_OPEN: tuple[State, ...] = ("Failed", "Blocked", "Pending")
PROVIDER_REASONS: tuple[State, ...] = (*_OPEN, "Ready")
"""The reasons of a provider's condition."""

_MAX_MESSAGE_LENGTH = 256
_MAX_CONDITION_LENGTH = 1024
_MAX_OUTPUTS_SIZE = 16 * 1024
_MAX_HANDLE_LENGTH = 512
_MIN_REDACTED_LENGTH = 4


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """The outcome of one item in this reconcile.

    Args:
        provider: The name of its provider.
        kind: One of the provider's kinds.
        item: Its name in the file.
        state: ``Ready``; ``Pending``: not ready yet; ``Blocked``: waits for a Secret; ``Failed``; ``Skipped``: its
            conditions do not hold, or its optional provider is not installed.
        message: The message for users.
        outputs: The outputs for expressions.
    """

    provider: str
    kind: str
    item: str
    state: State
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)


def build_results(outcomes: Iterable[ItemOutcome]) -> dict[str, dict[str, Any]]:
    """Return the value of ``providers`` in expressions."""
    results: dict[str, dict[str, Any]] = {}
    for each in outcomes:
        results.setdefault(each.provider, {})[each.item] = {
            "kind": each.kind,
            "state": each.state,
            "message": each.message,
            "outputs": each.outputs,
        }
    return results


def build_status(outcomes: Iterable[ItemOutcome]) -> list[Object]:
    """Return the value of the list ``status.providers``."""
    return [
        {"provider": each.provider, "kind": each.kind, "name": each.item, "state": each.state, "message": each.message}
        for each in outcomes
    ]


def build_conditions(providers: Sequence[str], outcomes: Iterable[ItemOutcome]) -> tuple[Condition, ...]:
    """Return one condition for each provider, for example ``PostgresReady``."""
    by_provider: dict[str, list[ItemOutcome]] = {name: [] for name in providers}
    for each in outcomes:
        by_provider.setdefault(each.provider, []).append(each)
    return tuple(_build_condition(name, items) for name, items in by_provider.items())


def check_result(result: object) -> ItemResult:
    """Check the result of a plug-in, and return it.

    Raises:
        ProviderError: The result is invalid.
    """
    if not isinstance(result, ItemResult):
        raise ProviderError(f"the provider's result: expected an ItemResult, found {type(result).__name__}")
    try:
        size = len(msgspec.json.encode(reveal_sensitive(result.outputs)))
    except (TypeError, ValueError) as error:
        raise ProviderError(
            f"the provider's outputs: expected JSON values, found others ({type(error).__name__})"
        ) from None
    if size > _MAX_OUTPUTS_SIZE or len(result.handle) > _MAX_HANDLE_LENGTH:
        raise ProviderError(f"the provider's outputs: expected at most {_MAX_OUTPUTS_SIZE} bytes, found {size}")
    return result


def check_deletion(result: object) -> PendingDeletion | None:
    """Check what a plug-in returned for a deletion, and return it.

    Raises:
        ProviderError: It is neither None nor a `PendingDeletion`: whether the item is gone is unknown.
    """
    if result is None or isinstance(result, PendingDeletion):
        return result
    raise ProviderError(f"the provider's result: expected None or a PendingDeletion, found {type(result).__name__}")


def find_secrets(value: Any) -> set[str]:
    """Return the texts of all sensitive values inside a value."""
    if isinstance(value, Sensitive):
        real = value.reveal()
        return {real} if isinstance(real, str) else set()
    if isinstance(value, msgspec.Struct):
        return set().union(*(find_secrets(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, Mapping):
        return set().union(*(find_secrets(item) for item in value.values()))
    return set().union(*(find_secrets(item) for item in value)) if isinstance(value, list | tuple) else set()


def redact_secrets(message: str, secrets: Collection[str]) -> str:
    """Redact secret values in a message, since drivers quote them; return one line of limited length.

    Values shorter than four characters stay: they occur in any text, and redacting them would reveal them.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _MIN_REDACTED_LENGTH:
            message = message.replace(secret, "***")
    return shorten(" ".join(message.split()), _MAX_MESSAGE_LENGTH)


def _build_condition(provider: str, outcomes: list[ItemOutcome]) -> Condition:
    name = f"{provider[0].upper()}{provider[1:]}Ready"
    for state in _OPEN:
        if any(each.state == state for each in outcomes):
            open_items = [each for each in outcomes if each.state not in ("Ready", "Skipped")]
            message = "; ".join(f"{each.kind} {each.item}: {each.state}, {each.message}" for each in open_items)
            return Condition(name, "False", state, shorten(message, _MAX_CONDITION_LENGTH))
    ready = sum(each.state == "Ready" for each in outcomes)
    return Condition(name, "True", "Ready", f"{ready} item{'s' if ready != 1 else ''}")

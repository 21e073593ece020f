"""What a pass says of items: results for expressions, conditions, the list in the status."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from konverge.kube import Condition, Object
from konverge.message_text import shorten
from konverge_box.expressions import Sensitive, reveal_sensitive
from konverge_box.providers.plugin import ItemResult, ProviderError

__all__ = [
    "PROVIDER_REASONS",
    "ItemOutcome",
    "State",
    "build_conditions",
    "build_results",
    "build_status",
    "check_result",
    "find_secrets",
    "redact_secrets",
]

State: TypeAlias = Literal["Failed", "Blocked", "Pending", "Skipped", "Ready"]

# What the condition says: the first of these that some item is.
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
    """What became of one item in this pass.

    Args:
        provider: Who keeps it.
        kind: One of the provider's kinds.
        item: What the file calls it.
        state: ``Ready``; ``Pending``: not yet; ``Blocked``: waits for a Secret; ``Failed``; ``Skipped``: its conditions
            do not hold, or its provider is not installed and need not be.
        message: For people.
        outputs: For expressions.
    """

    provider: str
    kind: str
    item: str
    state: State
    message: str = ""
    outputs: Mapping[str, Any] = field(default_factory=dict)


def build_results(outcomes: Iterable[ItemOutcome]) -> dict[str, dict[str, Any]]:
    """What expressions know as ``providers``."""
    found: dict[str, dict[str, Any]] = {}
    for each in outcomes:
        found.setdefault(each.provider, {})[each.item] = {
            "kind": each.kind,
            "state": each.state,
            "message": each.message,
            "outputs": each.outputs,
        }
    return found


def build_status(outcomes: Iterable[ItemOutcome]) -> list[Object]:
    """The list ``status.providers``."""
    return [
        {"provider": each.provider, "kind": each.kind, "name": each.item, "state": each.state, "message": each.message}
        for each in outcomes
    ]


def build_conditions(providers: Sequence[str], outcomes: Iterable[ItemOutcome]) -> tuple[Condition, ...]:
    """One condition for each provider, for example ``PostgresReady``."""
    by_provider: dict[str, list[ItemOutcome]] = {name: [] for name in providers}
    for each in outcomes:
        by_provider.setdefault(each.provider, []).append(each)
    return tuple(_build_condition(name, found) for name, found in by_provider.items())


def check_result(result: object) -> ItemResult:
    """What a plug-in has answered, if it is what it may answer.

    Raises:
        ProviderError: It is not.
    """
    if not isinstance(result, ItemResult):
        raise ProviderError(f"the provider answered {type(result).__name__}; expected an ItemResult")
    try:
        size = len(msgspec.json.encode(reveal_sensitive(result.outputs)))
    except (TypeError, ValueError) as error:
        raise ProviderError(f"the provider's outputs are no JSON ({type(error).__name__})") from None
    if size > _MAX_OUTPUTS_SIZE or len(result.handle) > _MAX_HANDLE_LENGTH:
        raise ProviderError(f"the provider answered outputs of {size} bytes; expected at most {_MAX_OUTPUTS_SIZE}")
    return result


def find_secrets(value: Any) -> set[str]:
    """The texts of all values of Secrets in it."""
    if isinstance(value, Sensitive):
        real = value.reveal()
        return {real} if isinstance(real, str) else set()
    if isinstance(value, msgspec.Struct):
        return set().union(*(find_secrets(getattr(value, name)) for name in value.__struct_fields__))
    if isinstance(value, Mapping):
        return set().union(*(find_secrets(item) for item in value.values()))
    return set().union(*(find_secrets(item) for item in value)) if isinstance(value, list | tuple) else set()


def redact_secrets(message: str, secrets: Collection[str]) -> str:
    """The message without these values, which drivers like to quote; in one line, and not too long.

    Values shorter than four letters stay: they stand in any text, and what stood for them would tell where.
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
            told = "; ".join(f"{each.kind} {each.item}: {each.state}, {each.message}" for each in open_items)
            return Condition(name, "False", state, shorten(told, _MAX_CONDITION_LENGTH))
    ready = sum(each.state == "Ready" for each in outcomes)
    return Condition(name, "True", "Ready", f"{ready} item{'s' if ready != 1 else ''}")

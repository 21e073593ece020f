"""What a pass reports of a custom resource besides its groups: the conditions, and which of them are stale. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from konverge.box.providers import PROVIDER_REASONS
from konverge.box.steps.validation import Violations, summary
from konverge.component import Status, summed_up
from konverge.component.condition import generation_of
from konverge.kube import Condition, Object

__all__ = [
    "LONGEST_MESSAGE",
    "READY",
    "VALIDATION_FAILED",
    "VALIDATION_WARNING",
    "denied",
    "dependency_not_ready",
    "failed",
    "is_stale_field",
    "ready",
    "stale_types",
    "suspected_types",
    "validated",
]

READY = "Ready"
VALIDATION_FAILED = "ValidationFailed"
VALIDATION_WARNING = "ValidationWarning"

LONGEST_MESSAGE = 1024
"""Letters of the message of Ready: an error may quote what somebody else has written at any length."""

_REASONS = frozenset(Status) | {"Reconciled", *PROVIDER_REASONS}


def ready(owner: Object, parts: Sequence[tuple[str, Condition]], notes: Sequence[str] = ()) -> Condition:
    """The summary of a pass that came to its end.

    Args:
        owner: The custom resource.
        parts: What each group and provider is called, and its condition.
        notes: What went wrong that stops nothing.
    """
    if parts:
        found = summed_up(READY, parts, generation_of(owner), noun="part")
    else:
        found = Condition(READY, "True", "Reconciled", "", generation_of(owner))
    told = "; ".join(text for text in (found.message, *notes) if text)
    return Condition(READY, found.status, found.reason, _shortened(told), found.observed_generation)


def failed(owner: Object, problem: str) -> Condition:
    """A step has failed."""
    return Condition(READY, "False", Status.ERROR, _shortened(problem), generation_of(owner))


def denied(owner: Object, violations: Violations) -> Condition:
    """The custom resource breaks rules."""
    told = _shortened(summary(violations.denied))
    return Condition(READY, "False", VALIDATION_FAILED, told, generation_of(owner))


def dependency_not_ready(owner: Object, problem: str) -> Condition:
    """Another custom resource of the box is not there yet."""
    return Condition(READY, "False", "DependencyNotReady", _shortened(problem), generation_of(owner))


def validated(owner: Object, violations: Violations, *, can_deny: bool, can_warn: bool) -> list[Condition]:
    """What validation has found; of a kind of rule that the box does not have, nothing."""
    generation = generation_of(owner)
    rows = (
        (can_deny, VALIDATION_FAILED, violations.denied, "DenyRuleViolation", "ValidationPassed"),
        (can_warn, VALIDATION_WARNING, violations.warned, "WarnRuleViolation", "NoWarnings"),
    )
    return [
        Condition(kind, str(bool(found)), broken if found else kept, _shortened(summary(found)), generation)
        for is_asked, kind, found, broken, kept in rows
        if is_asked
    ]


def suspected_types(owner: Object, declared: Collection[str]) -> list[str]:
    """The types of conditions of groups and providers that the file may have had once, by their names and reasons."""
    found: list[str] = []
    for condition in _conditions(owner):
        kind, reason = condition.get("type"), condition.get("reason")
        if isinstance(kind, str) and kind.endswith("Ready") and kind not in declared and reason in _REASONS:
            found.append(kind)
    return found


def stale_types(live: Object, suspected: Iterable[str]) -> list[str]:
    """Those of the suspected that only we have written, by the record of the API server.

    Args:
        live: The custom resource with its managed fields. Whoever wrote Ready is us.
        suspected: Types of conditions.
    """
    writers = _writers(live, "f:conditions")
    own = writers.get(_key(READY), set())
    return [kind for kind in suspected if own and writers.get(_key(kind), set()) and writers[_key(kind)] <= own]


def is_stale_field(live: Object, name: str) -> bool:
    """Tell whether only we have written this field of the status.

    Args:
        live: The custom resource with its managed fields.
        name: The field.
    """
    own = _writers(live, "f:conditions").get(_key(READY), set())
    found = _writers(live).get(f"f:{name}", set())
    return bool(own) and bool(found) and found <= own


def _writers(live: Object, *path: str) -> dict[str, set[str]]:
    """Who has written what is below a path of the status, by key."""
    writers: dict[str, set[str]] = {}
    for entry in _mappings(live["metadata"].get("managedFields")):
        for key in _below(entry.get("fieldsV1"), "f:status", *path):
            writers.setdefault(key, set()).add(str(entry.get("manager")))
    return writers


def _key(condition_type: str) -> str:
    return f'k:{{"type":"{condition_type}"}}'


def _below(fields: Any, *path: str) -> Mapping[str, Any]:
    for step in path:
        fields = fields.get(step) if isinstance(fields, Mapping) else None
    return fields if isinstance(fields, Mapping) else {}


def _conditions(owner: Object) -> list[Mapping[str, Any]]:
    status = owner.get("status")
    return _mappings(status.get("conditions") if isinstance(status, Mapping) else None)


def _mappings(listed: Any) -> list[Mapping[str, Any]]:
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_MESSAGE else f"{text[: LONGEST_MESSAGE - 1]}…"

"""What a pass reports of a custom resource besides its groups: the conditions, and which of them are stale. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from konverge.component import ConditionReason, summarize_conditions
from konverge.component.condition_rules import read_generation
from konverge.kube import Condition, Object
from konverge_box.providers import PROVIDER_REASONS
from konverge_box.steps.validation import RuleViolations, summarize_violations

__all__ = [
    "MAX_MESSAGE_LENGTH",
    "READY",
    "VALIDATION_FAILED",
    "VALIDATION_WARNING",
    "build_denied_condition",
    "build_dependency_condition",
    "build_failed_condition",
    "build_ready_condition",
    "build_validation_conditions",
    "find_stale_types",
    "find_suspect_types",
    "is_stale_field",
]

READY = "Ready"
VALIDATION_FAILED = "ValidationFailed"
VALIDATION_WARNING = "ValidationWarning"

MAX_MESSAGE_LENGTH = 1024
"""Letters of the message of Ready: an error may quote what somebody else has written at any length."""

_REASONS = frozenset(ConditionReason) | {"Reconciled", *PROVIDER_REASONS}


def build_ready_condition(
    owner: Object, parts: Sequence[tuple[str, Condition]], notes: Sequence[str] = ()
) -> Condition:
    """The summary of a pass that came to its end.

    Args:
        owner: The custom resource.
        parts: What each group and provider is called, and its condition.
        notes: What went wrong that stops nothing.
    """
    if parts:
        found = summarize_conditions(READY, parts, read_generation(owner), noun="part")
    else:
        found = Condition(READY, "True", "Reconciled", "", read_generation(owner))
    told = "; ".join(text for text in (found.message, *notes) if text)
    return Condition(READY, found.status, found.reason, _shorten_text(told), found.observed_generation)


def build_failed_condition(owner: Object, problem: str) -> Condition:
    """A step has failed."""
    return Condition(READY, "False", ConditionReason.ERROR, _shorten_text(problem), read_generation(owner))


def build_denied_condition(owner: Object, violations: RuleViolations) -> Condition:
    """The custom resource breaks rules."""
    told = _shorten_text(summarize_violations(violations.denied))
    return Condition(READY, "False", VALIDATION_FAILED, told, read_generation(owner))


def build_dependency_condition(owner: Object, problem: str) -> Condition:
    """Another custom resource of the box is not there yet."""
    return Condition(READY, "False", "DependencyNotReady", _shorten_text(problem), read_generation(owner))


def build_validation_conditions(
    owner: Object, violations: RuleViolations, *, can_deny: bool, can_warn: bool
) -> list[Condition]:
    """What validation has found; of a kind of rule that the box does not have, nothing."""
    generation = read_generation(owner)
    rows = (
        (can_deny, VALIDATION_FAILED, violations.denied, "DenyRuleViolation", "ValidationPassed"),
        (can_warn, VALIDATION_WARNING, violations.warned, "WarnRuleViolation", "NoWarnings"),
    )
    return [
        Condition(
            kind, str(bool(found)), broken if found else kept, _shorten_text(summarize_violations(found)), generation
        )
        for is_asked, kind, found, broken, kept in rows
        if is_asked
    ]


def find_suspect_types(owner: Object, declared: Collection[str]) -> list[str]:
    """The types of conditions of groups and providers that the file may have had once, by their names and reasons."""
    found: list[str] = []
    for condition in _list_conditions(owner):
        kind, reason = condition.get("type"), condition.get("reason")
        if isinstance(kind, str) and kind.endswith("Ready") and kind not in declared and reason in _REASONS:
            found.append(kind)
    return found


def find_stale_types(live: Object, suspected: Iterable[str]) -> list[str]:
    """Those of the suspected that only we have written, by the record of the API server.

    Args:
        live: The custom resource with its managed fields. Whoever wrote Ready is us.
        suspected: Types of conditions.
    """
    writers = _find_writers(live, "f:conditions")
    own = writers.get(_format_condition_key(READY), set())
    return [
        kind
        for kind in suspected
        if own and writers.get(_format_condition_key(kind), set()) and writers[_format_condition_key(kind)] <= own
    ]


def is_stale_field(live: Object, name: str) -> bool:
    """Tell whether only we have written this field of the status.

    Args:
        live: The custom resource with its managed fields.
        name: The field.
    """
    own = _find_writers(live, "f:conditions").get(_format_condition_key(READY), set())
    found = _find_writers(live).get(f"f:{name}", set())
    return bool(own) and bool(found) and found <= own


def _find_writers(live: Object, *path: str) -> dict[str, set[str]]:
    """Who has written what is below a path of the status, by key."""
    writers: dict[str, set[str]] = {}
    for entry in _list_mappings(live["metadata"].get("managedFields")):
        for key in _get_child_fields(entry.get("fieldsV1"), "f:status", *path):
            writers.setdefault(key, set()).add(str(entry.get("manager")))
    return writers


def _format_condition_key(condition_type: str) -> str:
    return f'k:{{"type":"{condition_type}"}}'


def _get_child_fields(fields: Any, *path: str) -> Mapping[str, Any]:
    for step in path:
        fields = fields.get(step) if isinstance(fields, Mapping) else None
    return fields if isinstance(fields, Mapping) else {}


def _list_conditions(owner: Object) -> list[Mapping[str, Any]]:
    status = owner.get("status")
    return _list_mappings(status.get("conditions") if isinstance(status, Mapping) else None)


def _list_mappings(listed: Any) -> list[Mapping[str, Any]]:
    return [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []


def _shorten_text(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_LENGTH else f"{text[: MAX_MESSAGE_LENGTH - 1]}…"

"""The conditions that a reconcile reports besides those of groups, and the search for stale conditions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from konverge._internal.component import ConditionReason, summarize_conditions
from konverge._internal.component.condition_rules import read_generation
from konverge._internal.kube import Condition, Object
from konverge._internal.message_text import shorten
from konverge_box._internal.providers import PROVIDER_REASONS
from konverge_box._internal.steps.validation import RuleViolations, summarize_violations

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
"""Maximum number of characters in the message of Ready: an error can quote text of any length."""

_REASONS = frozenset(ConditionReason) | {"Reconciled", *PROVIDER_REASONS}


def build_ready_condition(
    owner: Object, parts: Sequence[tuple[str, Condition]], notes: Sequence[str] = ()
) -> Condition:
    """Return the Ready condition of a reconcile whose steps all succeeded.

    Args:
        owner: The custom resource.
        parts: The name and the condition of each group and provider.
        notes: Problems that stop nothing.
    """
    if parts:
        summary = summarize_conditions(READY, parts, read_generation(owner), noun="part")
    else:
        summary = Condition(READY, "True", "Reconciled", "", read_generation(owner))
    text = "; ".join(text for text in (summary.message, *notes) if text)
    message = shorten(text, MAX_MESSAGE_LENGTH)
    waiting = [name for name, condition in parts if condition.status != "True"]
    if not all(name in message for name in waiting):  # too many, or with long reasons: the names are first
        message = shorten(f"Not ready: {', '.join(waiting)}. {text}", MAX_MESSAGE_LENGTH)
    return Condition(READY, summary.status, summary.reason, message, summary.observed_generation)


def build_failed_condition(owner: Object, problem: str, parts: Sequence[tuple[str, Condition]] = ()) -> Condition:
    """Return the Ready condition of a reconcile in which a step failed.

    Args:
        owner: The custom resource.
        problem: The error.
        parts: The name and the condition of each group and provider so far. If there are several, the message names
            each one that is not ready.
    """
    waiting = [f"{name} ({condition.reason})" for name, condition in parts if condition.status != "True"]
    names = f"; not ready: {', '.join(waiting)}" if len(parts) > 1 and waiting else ""
    names = shorten(names, MAX_MESSAGE_LENGTH // 2)
    message = f"{shorten(problem, MAX_MESSAGE_LENGTH - len(names))}{names}"
    return Condition(READY, "False", ConditionReason.ERROR, message, read_generation(owner))


def build_denied_condition(owner: Object, violations: RuleViolations) -> Condition:
    """Return the Ready condition of a custom resource that breaks deny rules."""
    message = shorten(violations.summarize_denial(), MAX_MESSAGE_LENGTH)
    return Condition(READY, "False", VALIDATION_FAILED, message, read_generation(owner))


def build_dependency_condition(owner: Object, problem: str) -> Condition:
    """Return the Ready condition of a custom resource that waits for another one of the box."""
    return Condition(READY, "False", "DependencyNotReady", shorten(problem, MAX_MESSAGE_LENGTH), read_generation(owner))


def build_validation_conditions(
    owner: Object, violations: RuleViolations, *, can_deny: bool, can_warn: bool
) -> list[Condition]:
    """Return one condition for deny rules and one for warn rules, each only if the box has such rules."""
    generation = read_generation(owner)
    rows = (
        (can_deny, VALIDATION_FAILED, violations.denied, "DenyRuleViolation", "ValidationPassed"),
        (can_warn, VALIDATION_WARNING, violations.warned, "WarnRuleViolation", "NoWarnings"),
    )
    return [
        Condition(
            kind,
            str(bool(broken)),
            reason if broken else otherwise,
            shorten(summarize_violations(broken), MAX_MESSAGE_LENGTH),
            generation,
        )
        for has_rules, kind, broken, reason, otherwise in rows
        if has_rules
    ]


def find_suspect_types(owner: Object, declared: Collection[str]) -> list[str]:
    """Find condition types that an earlier file may have declared for groups or providers, by name and reason."""
    suspects: list[str] = []
    for condition in _list_conditions(owner):
        kind, reason = condition.get("type"), condition.get("reason")
        if isinstance(kind, str) and kind.endswith("Ready") and kind not in declared and reason in _REASONS:
            suspects.append(kind)
    return suspects


def find_stale_types(live: Object, suspected: Iterable[str]) -> list[str]:
    """Return the suspected types that only the operator has written, according to the managed fields.

    Args:
        live: The custom resource with its managed fields. The field managers of Ready are the operator's.
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
    """Tell whether only the operator has written this field of the status.

    Args:
        live: The custom resource with its managed fields.
        name: The field.
    """
    own = _find_writers(live, "f:conditions").get(_format_condition_key(READY), set())
    writers = _find_writers(live).get(f"f:{name}", set())
    return bool(own) and bool(writers) and writers <= own


def _find_writers(live: Object, *path: str) -> dict[str, set[str]]:
    """Return the field managers of each key below a path of the status."""
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


def _list_mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []

"""Validation rules in CEL (``x-kubernetes-validations``) of custom resource definitions.

The rules are evaluated if a CEL package is installed (``pip install 'konverge[cel]'``). Without it, or if a rule needs
an unsupported feature, the rule is not checked, and a warning in the response reports it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from konverge._internal.apply import ABSENT, Schema
from konverge._internal.apply.schema import UNTYPED
from konverge._internal.kube import parse_time
from konverge._internal.kube.durations import parse_duration
from konverge_cluster._internal.embedded.validation.cel_expressions import (
    CelExpression,
    CelExpressionError,
    UnsupportedCelError,
    build_optional,
    can_evaluate,
)
from konverge_cluster._internal.embedded.validation.field_errors import FieldError, format_value, quote
from konverge_cluster._internal.embedded.validation.ratcheting import find_old_field, index_old_items, is_unchanged

__all__ = [
    "BLOCKING",
    "NO_PACKAGE",
    "UNCHECKED",
    "format_skipped_rule",
    "has_cel_rules",
    "validate_default_rules",
    "validate_rules",
]

NO_PACKAGE = "no CEL package is installed; run pip install 'konverge[cel]'"
"""The reason why no rule is checked."""


BLOCKING = frozenset({"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany"})
"""The reasons of errors that prevent the evaluation of rules: the object does not have the expected form."""
UNCHECKED = FieldError(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
"""The error that is reported instead."""

_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", float: "number"}
_ROOT_METADATA = ("name", "generateName")
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


@dataclass(frozen=True, slots=True)
class _CelRule:
    expression: CelExpression
    message: str
    message_expression: CelExpression | None
    reason: str
    field_path: str
    is_optional: bool

    @property
    def compares(self) -> bool:
        """True if the rule compares with the previous value."""
        return "oldSelf" in self.expression.variables

    @property
    def is_transition(self) -> bool:
        """True if the previous value, with which the rule compares, must exist."""
        return self.compares and not self.is_optional


class _SkippedRule(NamedTuple):
    """A rule that cannot be evaluated, and why."""

    text: str
    why: str


@lru_cache(maxsize=4096)
def has_cel_rules(schema: Schema) -> bool:
    """Return True if the schema, or a part of it, contains a rule."""
    return _source_has_rules(schema.source)


def _source_has_rules(source: Any) -> bool:
    if not isinstance(source, Mapping):
        return False
    if source.get("x-kubernetes-validations"):
        return True
    below = source.get("properties")
    parts = [*(below.values() if isinstance(below, Mapping) else ()), source.get("items")]
    return any(map(_source_has_rules, (*parts, source.get("additionalProperties"))))


@lru_cache(maxsize=4096)
def _compile_rules(schema: Schema) -> tuple[_CelRule | _SkippedRule, ...]:
    rules: list[_CelRule | _SkippedRule] = []
    for validation in schema.validations:
        text = str(validation.get("rule") or "")
        try:
            message_expression = validation.get("messageExpression")
            rules.append(
                _CelRule(
                    expression=CelExpression(text),
                    message=str(validation.get("message") or ""),
                    message_expression=CelExpression(message_expression) if message_expression else None,
                    reason=str(validation.get("reason") or "FieldValueInvalid"),
                    field_path=str(validation.get("fieldPath") or ""),
                    is_optional=bool(validation.get("optionalOldSelf")),
                )
            )
        except UnsupportedCelError as error:
            rules.append(_SkippedRule(text, str(error)))
    return tuple(rules)


class _Ratchet(NamedTuple):
    """The part of an updated object that decides whether an error counts: the rule's own, or the nearest one above.

    It has a stored counterpart. Errors of an unchanged part become warnings; the whole object counts as changed.
    """

    warnings: list[str]
    is_enabled: bool = True
    new: Any = None
    old: Any = ABSENT
    schema: Schema = UNTYPED

    def is_unchanged(self) -> bool:
        return self.is_enabled and is_unchanged(self.new, self.old, self.schema)

    def descend(self, new: Any, old: Any, schema: Schema) -> _Ratchet:
        """Return the ratchet of a part."""
        return self if old is ABSENT else _Ratchet(self.warnings, self.is_enabled, new, old, schema)

    def warn_of_skipped(self, rule: str, path: str, why: str) -> None:
        """Add a warning about a rule that is not checked here."""
        text = format_skipped_rule(rule, path or "the object", why)
        if text not in self.warnings:
            self.warnings.append(text)


def format_skipped_rule(rule: str, path: str, why: str) -> str:
    """Return the warning about a rule that the embedded cluster does not check.

    Args:
        rule: The rule.
        path: The path of the value or of the schema.
        why: The reason.
    """
    return f"konverge: {path}: the embedded cluster does not check the rule {quote(rule)}: {why}"


def validate_rules(obj: Any, old: Any, schema: Schema, warnings: list[str]) -> Iterator[FieldError]:
    """Yield the errors of the rules that an object violates; those of unchanged parts become warnings.

    Args:
        obj: The custom resource.
        old: The previous custom resource; `ABSENT` if it is new.
        schema: The schema of the custom resource.
        warnings: Receives the warnings.
    """
    if not has_cel_rules(schema):
        return
    if not can_evaluate():
        _Ratchet(warnings).warn_of_skipped("x-kubernetes-validations", "", NO_PACKAGE)
        return
    yield from _validate_value(_build_root(obj), _build_root(old), schema, "", _Ratchet(warnings))


def validate_default_rules(default: Any, schema: Schema) -> Iterator[FieldError]:
    """Yield the errors of the rules that a field's default violates, as if it were already stored.

    Args:
        default: The default value.
        schema: The schema of the field.
    """
    if has_cel_rules(schema) and can_evaluate():
        yield from _validate_value(default, default, schema, "", _Ratchet([], is_enabled=False))


def _build_root(obj: Any) -> Any:
    if obj is ABSENT:
        return obj
    return obj | {"metadata": {name: obj["metadata"][name] for name in _ROOT_METADATA if name in obj["metadata"]}}


def _validate_value(value: Any, old: Any, schema: Schema, path: str, ratchet: _Ratchet) -> Iterator[FieldError]:
    if value is None or not has_cel_rules(schema):
        return
    rules = _compile_rules(schema)
    if rules:
        own = _to_cel_value(value, schema)
        before = ABSENT if old is ABSENT or old is None else _to_cel_value(old, schema)
        for rule in rules:
            if isinstance(rule, _SkippedRule):
                ratchet.warn_of_skipped(rule.text, path, rule.why)
                continue
            yield from _evaluate_rule(rule, own, before, value, path, ratchet)
    for item, was, child, below in _iter_children(value, old, schema, path):
        yield from _validate_value(item, was, child, below, ratchet.descend(item, was, child))


def _iter_children(value: Any, old: Any, schema: Schema, path: str) -> Iterator[tuple[Any, Any, Schema, str]]:
    """Yield each part of a value with its stored counterpart (`ABSENT` for none), its schema and its path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            child = schema.find_child(name)
            if child is not None:
                yield item, find_old_field(old, name), child, _join_path(path, name, schema)
    elif isinstance(value, list) and schema.items is not None:
        find_old = index_old_items(old, schema)
        for index, item in enumerate(value):
            yield item, find_old(item), schema.items, f"{path}[{index}]"


def _join_path(path: str, name: str, schema: Schema) -> str:
    if name not in schema.properties:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _evaluate_rule(
    rule: _CelRule, own: Any, before: Any, value: Any, path: str, ratchet: _Ratchet
) -> Iterator[FieldError]:
    if rule.is_transition and before is ABSENT:
        return
    variables = {"self": own}
    if rule.is_optional:
        variables["oldSelf"] = build_optional(before, is_there=before is not ABSENT)
    elif before is not ABSENT:
        variables["oldSelf"] = before
    field = f"{path}{rule.field_path}".removeprefix(".") or "<nil>"
    try:
        if rule.expression.evaluate(variables) is True:
            return
        message = rule.message.strip() or f"failed rule: {rule.expression.text.strip()}"
        if rule.message_expression is not None:
            message = _evaluate_message(rule.message_expression, variables) or message
    except CelExpressionError as error:
        detail = f"{error} evaluating rule: {rule.message or rule.expression.text}"
        kind = _JSON_TYPES.get(type(value), "integer")
        yield FieldError(path or "<nil>", "FieldValueInvalid", f"Invalid value: {quote(kind)}: {detail}")
        return
    except UnsupportedCelError as error:
        ratchet.warn_of_skipped(rule.expression.text, path, str(error))
        return
    failure = FieldError(field, rule.reason, _format_message(rule.reason, value, message))
    if not rule.compares and ratchet.is_unchanged():
        ratchet.warnings.append(str(failure))
    else:
        yield failure


def _evaluate_message(expression: CelExpression, variables: Mapping[str, Any]) -> str:
    try:
        result = expression.evaluate(variables)
    except (CelExpressionError, UnsupportedCelError):
        return ""
    return result.strip() if isinstance(result, str) and "\n" not in result.strip() else ""


def _format_message(reason: str, value: Any, message: str) -> str:
    match reason:
        case "FieldValueForbidden":
            return f"Forbidden: {message}"
        case "FieldValueRequired":
            return f"Required value: {message}"
        case "FieldValueDuplicate":
            return f"Duplicate value: {format_value(value)}"
        case _ if isinstance(value, dict | list):
            return f"Invalid value: {message}"
        case _:
            return f"Invalid value: {format_value(value)}: {message}"


def _to_cel_value(value: Any, schema: Schema) -> Any:
    """Convert a value to the dialect: its numbers, its times and its field names."""
    match value:
        case bool() | None:
            return value
        case int() if schema.type == "number":
            return float(value)
        case str() if schema.format in ("date-time", "date"):
            return _to_cel_time(value)
        case str() if schema.format == "duration":
            return parse_duration(value)
        case dict():
            typed = {}
            for name, item in value.items():
                child = schema.find_child(name)
                key = _escape_name(name) if name in schema.properties else name
                typed[key] = item if child is None else _to_cel_value(item, child)
            return typed
        case list() if schema.items is not None:
            items = schema.items
            return [_to_cel_value(item, items) for item in value]
        case _:
            return value


def _to_cel_time(value: str) -> Any:
    try:
        return parse_time(value if "T" in value else f"{value}T00:00:00Z")
    except ValueError:
        return value


def _escape_name(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found.group()], name)

"""The rules that a definition states in CEL (``x-kubernetes-validations``), for custom resources.

Evaluated where a package for CEL is installed (``pip install 'konverge[cel]'``); else, and where a rule needs what the
package does not have, it is not enforced, and the log says so once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import msgspec

from konverge.apply import ABSENT, Schema
from konverge.kube import parse_time
from konverge.localcluster.validation.expressions import (
    Expression,
    ExpressionError,
    UnsupportedExpressionError,
    can_evaluate,
    optional,
)
from konverge.localcluster.validation.mistakes import Mistake, quoted, shown

__all__ = ["BLOCKING", "UNCHECKED", "default_rule_mistakes", "rule_mistakes", "states_rules"]

_log = logging.getLogger(__name__)

BLOCKING = frozenset({"FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany"})
"""The reasons of mistakes beside which no rule is evaluated: the object is not what the rule speaks of."""
UNCHECKED = Mistake(
    "<nil>",
    "FieldValueInvalid",
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation",
)
"""What is said of them then."""

_JSON_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", float: "number"}
_ROOT_METADATA = ("name", "generateName")
_RESERVED = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_DURATION = re.compile(r"([0-9.]+)(h|ms|m|s)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: Expression
    message: str
    message_expression: Expression | None
    reason: str
    field_path: str
    is_optional: bool

    @property
    def is_transition(self) -> bool:
        """Whether it compares with what was before, so that there must be something."""
        return "oldSelf" in self.expression.variables and not self.is_optional


@lru_cache(maxsize=4096)
def states_rules(schema: Schema) -> bool:
    """Tell whether the schema, or a part of it, states a rule."""
    return _has_rules(schema.source)


def _has_rules(source: Any) -> bool:
    if not isinstance(source, Mapping):
        return False
    if source.get("x-kubernetes-validations"):
        return True
    below = source.get("properties")
    parts = [*(below.values() if isinstance(below, Mapping) else ()), source.get("items")]
    return any(map(_has_rules, (*parts, source.get("additionalProperties"))))


@lru_cache(maxsize=4096)
def _rules(schema: Schema) -> tuple[_Rule, ...]:
    found = []
    for each in schema.validations:
        text = str(each.get("rule") or "")
        try:
            told = each.get("messageExpression")
            found.append(
                _Rule(
                    expression=Expression(text),
                    message=str(each.get("message") or ""),
                    message_expression=Expression(told) if told else None,
                    reason=str(each.get("reason") or "FieldValueInvalid"),
                    field_path=str(each.get("fieldPath") or ""),
                    is_optional=bool(each.get("optionalOldSelf")),
                )
            )
        except UnsupportedExpressionError as error:
            _tell_once(text, str(error))
    return tuple(found)


@lru_cache(maxsize=1024)
def _tell_once(rule: str, why: str) -> None:
    _log.warning("the rule %s is not enforced: %s", shown(rule), why)


def rule_mistakes(obj: Any, old: Any, schema: Schema) -> Iterator[Mistake]:
    """Which rules an object breaks.

    Args:
        obj: The custom resource.
        old: What it was; `ABSENT` when it is new.
        schema: Its schema.
    """
    if _is_checked(schema):
        yield from _mistakes(_root(obj), _root(old), schema, "")


def default_rule_mistakes(default: Any, schema: Schema) -> Iterator[Mistake]:
    """Which rules the default of a field breaks: each is asked as if the default were stored already.

    Args:
        default: The default.
        schema: The schema of the field.
    """
    if _is_checked(schema):
        yield from _mistakes(default, default, schema, "")


def _is_checked(schema: Schema) -> bool:
    if not states_rules(schema):
        return False
    if not can_evaluate():
        _tell_once("x-kubernetes-validations", "nothing here evaluates CEL (pip install 'konverge[cel]')")
        return False
    return True


def _root(obj: Any) -> Any:
    if obj is ABSENT:
        return obj
    return obj | {"metadata": {name: obj["metadata"][name] for name in _ROOT_METADATA if name in obj["metadata"]}}


def _mistakes(value: Any, old: Any, schema: Schema, path: str) -> Iterator[Mistake]:
    if value is None or not states_rules(schema):
        return
    rules = _rules(schema)
    if rules:
        own = _typed(value, schema)
        before = ABSENT if old is ABSENT or old is None else _typed(old, schema)
        for rule in rules:
            yield from _broken(rule, own, before, value, path)
    if isinstance(value, Mapping):
        for name, item in value.items():
            child = schema.child(name)
            if child is not None:
                was = old.get(name, ABSENT) if isinstance(old, Mapping) and not schema.map_atomic else ABSENT
                yield from _mistakes(item, was, child, _below(path, name, schema))
    elif isinstance(value, list) and schema.items is not None:
        earlier = _by_key(old, schema)
        for index, item in enumerate(value):
            was = earlier.get(_key(item, schema), ABSENT) if earlier else ABSENT
            yield from _mistakes(item, was, schema.items, f"{path}[{index}]")


def _below(path: str, name: str, schema: Schema) -> str:
    if name not in schema.properties:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def _by_key(old: Any, schema: Schema) -> dict[bytes, Any]:
    """The items that were there, as far as they can be told from each other."""
    if not isinstance(old, list) or schema.list_type != "map":
        return {}
    return {_key(item, schema): item for item in old}


def _key(item: Any, schema: Schema) -> bytes:
    keys = schema.list_map_keys if isinstance(item, Mapping) else ()
    return msgspec.json.encode([item.get(key) for key in keys])


def _broken(rule: _Rule, own: Any, before: Any, value: Any, path: str) -> Iterator[Mistake]:
    if rule.is_transition and before is ABSENT:
        return
    variables = {"self": own}
    if rule.is_optional:
        variables["oldSelf"] = optional(before, is_there=before is not ABSENT)
    elif before is not ABSENT:
        variables["oldSelf"] = before
    field = f"{path}{rule.field_path}".removeprefix(".") or "<nil>"
    try:
        if rule.expression.evaluate(variables) is True:
            return
        told = rule.message.strip() or f"failed rule: {rule.expression.text.strip()}"
        if rule.message_expression is not None:
            told = _told(rule.message_expression, variables) or told
    except ExpressionError as error:
        detail = f"{error} evaluating rule: {rule.message or rule.expression.text}"
        kind = _JSON_TYPES.get(type(value), "integer")
        yield Mistake(path or "<nil>", "FieldValueInvalid", f"Invalid value: {quoted(kind)}: {detail}")
        return
    except UnsupportedExpressionError as error:
        _tell_once(rule.expression.text, str(error))
        return
    yield Mistake(field, rule.reason, _message(rule.reason, value, told))


def _told(expression: Expression, variables: Mapping[str, Any]) -> str:
    try:
        found = expression.evaluate(variables)
    except (ExpressionError, UnsupportedExpressionError):
        return ""
    return found.strip() if isinstance(found, str) and "\n" not in found.strip() else ""


def _message(reason: str, value: Any, told: str) -> str:
    match reason:
        case "FieldValueForbidden":
            return f"Forbidden: {told}"
        case "FieldValueRequired":
            return f"Required value: {told}"
        case "FieldValueDuplicate":
            return f"Duplicate value: {shown(value)}"
        case _ if isinstance(value, dict | list):
            return f"Invalid value: {told}"
        case _:
            return f"Invalid value: {shown(value)}: {told}"


def _typed(value: Any, schema: Schema) -> Any:
    """The value as expressions see it: numbers, times and names of fields as the dialect has them."""
    match value:
        case bool() | None:
            return value
        case int() if schema.type == "number":
            return float(value)
        case str() if schema.format in ("date-time", "date"):
            return _time(value)
        case str() if schema.format == "duration":
            seconds = sum(float(count) * _UNITS[unit] for count, unit in _DURATION.findall(value))
            return timedelta(seconds=seconds)
        case dict():
            typed = {}
            for name, item in value.items():
                child = schema.child(name)
                key = _escaped(name) if name in schema.properties else name
                typed[key] = item if child is None else _typed(item, child)
            return typed
        case list() if schema.items is not None:
            items = schema.items
            return [_typed(item, items) for item in value]
        case _:
            return value


def _time(value: str) -> Any:
    try:
        return parse_time(value if "T" in value else f"{value}T00:00:00Z")
    except ValueError:
        return value


def _escaped(name: str) -> str:
    if name in _RESERVED:
        return f"__{name}__"
    return re.sub(r"__|[./-]", lambda found: _ESCAPES[found.group()], name)

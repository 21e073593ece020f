"""Conversion of conditions, and of the operators of validation rules.

An entry whose conditions cannot be converted is not converted either: without them it would always apply.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from konverge_box._internal.katalog.expression_translator import (
    TemplateUse,
    translate_field_path,
    translate_template,
)
from konverge_box._internal.katalog.findings import FindingReason, KatalogFields
from konverge_box._internal.katalog.go_template import TemplateProblemError, has_template
from konverge_box._internal.katalog.known_fields import KnownFields

__all__ = ["NotConvertedError", "convert_conditions", "convert_each", "convert_field", "convert_operator", "take_fires"]

T = TypeVar("T")

# The operators of a Katalog, in order of precedence, and their names in a box.
_OPERATORS = {
    "exists": "exists",
    "notExists": "notExists",
    "equals": "equals",
    "notEquals": "notEquals",
    "contains": "contains",
    "notContains": "notContains",
    "prefix": "prefix",
    "notPrefix": "notPrefix",
    "suffix": "suffix",
    "notSuffix": "notSuffix",
    "regex": "regex",
    "gt": "greaterThan",
    "greaterThan": "greaterThan",
    "lt": "lessThan",
    "lessThan": "lessThan",
    "gte": "min",
    "min": "min",
    "greaterThanOrEqual": "min",
    "lte": "max",
    "max": "max",
    "lessThanOrEqual": "max",
    "between": "between",
    "notBetween": "notBetween",
    "in": "in",
    "notIn": "notIn",
    "unique": "unique",
    "typeOf": "typeOf",
}
_TYPES = {
    "typeMap": "map",
    "typeList": "list",
    "typeString": "string",
    "typeNumber": "number",
    "typeBool": "bool",
    "typeNull": "null",
}
_NUMBERS = ("greaterThan", "lessThan", "min", "max")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NOTIFY = FindingReason("a notification", "conditions of a box send nothing", "alert on the metric or the event")
_ADMISSION = FindingReason(
    "a rule only for admission", "a box checks rules in reconciles", "use a ValidatingAdmissionPolicy"
)
_ALONE = "it belongs to conditions, so their entry is not converted either"


class NotConvertedError(Exception):
    """An entry cannot be converted; its finding exists already or is given here.

    Args:
        why: The reason if no finding exists yet.
    """

    def __init__(self, why: FindingReason | None = None) -> None:
        super().__init__(why.why if why is not None else "")
        self.why = why


def convert_each(
    items: Iterable[KatalogFields], make: Callable[[KatalogFields], T], otherwise: FindingReason
) -> Iterator[tuple[KatalogFields, T]]:
    """Yield the conversion of each item; add a finding, specific or this default, for items without one."""
    for each in items:
        try:
            converted = make(each)
        except NotConvertedError as error:
            each.notes.add_finding(each.path, error.why or otherwise)
        else:
            yield each, converted


def convert_conditions(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert ``when`` and ``or`` of an entry; empty if it has none.

    Raises:
        NotConvertedError: A condition has no counterpart; its finding exists.
    """
    found: dict[str, Any] = {}
    failed = False
    alternatives = [key for key in ("or", "anyOf") if key in fields]
    if len(alternatives) > 1:
        fields.reject_field("anyOf", "a second list of alternatives", "or and anyOf are the same list", "merge them")
        failed = True
    for key in ("when", *alternatives[:1]):
        made: list[dict[str, Any]] = []
        if fields.is_list(key):
            for each in fields.take_items(key):
                try:
                    made.append(_convert_condition(each, known))
                except NotConvertedError:
                    failed = True
        else:
            fields.take(key)
            fields.reject_field(
                key, "conditions of an unexpected type", "expected a list", "write a list of conditions"
            )
            failed = True
        if made:
            found["when" if key == "when" else "or"] = made
    if failed:
        raise NotConvertedError
    return found


def _convert_condition(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    before = len(fields.notes.findings)
    notify = "notify" in fields
    if fields.take("notify") is not None or notify:
        fields.notes.add_finding(fields.build_path("notify"), _NOTIFY)
        before += 1
    if "source" in fields:
        fields.take("source")
        fields.reject_field("source", "a value of another process", _ALONE, "read it with external")
    if "field" in fields:
        found["field"] = convert_field(fields, known)
        found |= convert_operator(fields, known)
    else:
        operator_of_nothing = [key for key in (*_OPERATORS, *_TYPES, "operator", "value") if key in fields]
        for key in operator_of_nothing:
            fields.take(key)
            fields.reject_field(key, "an operator without a field", _ALONE, "add its field")
    if (negate := fields.take_typed("negate", bool)) is not None and negate:
        found["negate"] = True
    found |= _convert_times(fields)
    fields.report_remaining()
    if len(fields.notes.findings) > before or not found:
        if not found:
            fields.notes.add_finding(fields.path, FindingReason("an empty condition", _ALONE, "remove it"))
        raise NotConvertedError
    return found


def convert_field(fields: KatalogFields, known: KnownFields) -> str:
    """Convert ``field`` of a condition or a rule: a path or an expression.

    Raises:
        NotConvertedError: It has no counterpart; its finding exists.
    """
    text = fields.take_text("field", may_be_template=True) or ""
    try:
        if has_template(text):
            return translate_template(text, TemplateUse.FIELD, known)
        return translate_field_path(text, known)
    except TemplateProblemError as error:
        fields.reject_field("field", "the field of a condition", error.why, error.instead)
        raise NotConvertedError from None


def convert_operator(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert the operator of a condition or rule with its operand.

    Raises:
        NotConvertedError: It has no counterpart; its finding exists.
    """
    given: list[tuple[str, str, Any]] = []
    for key in (*_OPERATORS, *_TYPES):
        if key in fields:
            value = fields.take(key)
            if value == "" or value is None:
                fields.add_note(key, "a Katalog ignores an operator with an empty string; a box would compare with it")
                continue
            if value is False and key in ("exists", "notExists", "unique", *_TYPES):
                why = "a Katalog ignores false, and a box negates the operator"
                fields.reject_field(key, "a disabled operator", why, "write exists or notExists with true")
                raise NotConvertedError
            given.append((key, key, value))
    if "operator" in fields:
        name, value = fields.take_text("operator") or "", fields.take("value")
        given.append(("operator", name, value))
    elif "value" in fields:
        given.append(("value", "equals", fields.take("value")))
    for key, _, _ in given[1:]:
        why = f"a Katalog uses only the first operator, {given[0][1]}"
        fields.reject_field(key, "a second operator", why, "write one condition for each")
    if not given:
        return {}
    key, name, value = given[0]
    if name in _TYPES:
        return {"typeOf": _TYPES[name]}
    here = _OPERATORS.get(name)
    if here is None:
        fields.reject_field(
            key, "an unknown operator", f"no operator has the name {name[:40]!r}", "use an operator of a box"
        )
        raise NotConvertedError
    if here in ("exists", "notExists", "unique"):
        return {here: True}
    try:
        return {here: _convert_operand(here, value, known)}
    except (TemplateProblemError, ValueError) as error:
        why = error.why if isinstance(error, TemplateProblemError) else str(error)
        fields.reject_field(key, "the operand of an operator", why, "write the value by hand")
        raise NotConvertedError from None


def take_fires(rule: KatalogFields) -> None:
    """Take ``fires``; a box checks rules in each reconcile.

    Raises:
        NotConvertedError: The rule applies only at admission.
    """
    block = rule.take_mapping("fires")
    at_reconcile = block.take_typed("reconcile", bool)
    block.report_remaining()
    if at_reconcile is False:
        raise NotConvertedError(_ADMISSION)
    if at_reconcile:
        rule.add_note("fires", "a box checks rules in each reconcile")


def _convert_operand(operator: str, value: Any, known: KnownFields) -> Any:
    if isinstance(value, list) and operator in ("in", "notIn", "between", "notBetween"):
        if operator in ("between", "notBetween"):
            return [_parse_number(each) for each in value]
        return [_translate_item(each, known) for each in value]
    if isinstance(value, list | dict):
        raise ValueError("expected a string, a number or a boolean")
    if isinstance(value, str) and has_template(value):
        made = translate_template(value, TemplateUse.PLAIN, known)
        if operator in ("between", "notBetween"):
            raise ValueError("expected a constant range, found a template")
        return made
    if operator in ("between", "notBetween"):
        return [_parse_number(part) for part in str(value).split(",")]
    if operator in ("in", "notIn"):
        return [part.strip() for part in str(value).split(",")]
    if operator == "typeOf":
        return {"slice": "list"}.get(str(value), value)
    if operator in _NUMBERS:
        return _parse_number(value)
    if operator in ("equals", "notEquals"):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _translate_item(value: Any, known: KnownFields) -> Any:
    if isinstance(value, str) and has_template(value):
        return translate_template(value, TemplateUse.PLAIN, known)
    return value


def _parse_number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return value


def _convert_times(fields: KatalogFields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "time" in fields:
        window = fields.take_mapping("time")
        found["time"] = {key: text for key in ("after", "before") if (text := window.take_text(key)) is not None}
        window.report_remaining()
        fields.add_note("time", "times are in UTC, and a window may span midnight")
    if "dayOfWeek" in fields:
        found |= _convert_days(fields)
    if "cron" in fields:
        found["cron"] = fields.take_text("cron") or ""
        if "duration" in fields:
            found["duration"] = fields.take_text("duration") or ""
        else:
            fields.add_note("cron", "without a duration, the condition holds for one minute after each time")
    return found


def _convert_days(fields: KatalogFields) -> dict[str, Any]:
    value = fields.take("dayOfWeek")
    if isinstance(value, str | list):
        value = {value: True} if value in ("weekday", "weekend") else {"in": value}
    days = KatalogFields(fields.notes, value, fields.build_path("dayOfWeek"))
    for word in ("weekday", "weekend"):
        if days.take_typed(word, bool):
            days.report_remaining()
            return {"dayOfWeek": word}
    for word in ("in", "notIn"):
        if word in days:
            names = days.take(word)
            listed = names.split(",") if isinstance(names, str) else names if isinstance(names, list) else []
            short = [str(name).strip()[:3].lower() for name in listed]
            days.report_remaining()
            if not short or any(name not in _DAYS for name in short):
                days.reject_field(
                    word, "days of the week", "one of them is not a day", "write mon, tue, wed, thu, fri, sat, sun"
                )
                return {}
            chosen = [day for day in _DAYS if (day in short) is (word == "in")]
            return {"dayOfWeek": chosen}
    days.report_remaining()
    fields.reject_field("dayOfWeek", "days of the week", _ALONE, "write weekday, weekend or a list of days")
    return {}

"""Conditions, and the operators of validation rules.

A thing whose conditions cannot be carried over is not carried over itself: without them it would be there always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from konverge_box.katalog.expression_translator import (
    TemplateUse,
    has_template,
    translate_field_path,
    translate_template,
)
from konverge_box.katalog.findings import FindingReason, KatalogFields
from konverge_box.katalog.go_template import TemplateProblemError
from konverge_box.katalog.known_fields import KnownFields

__all__ = ["NotConvertedError", "convert_conditions", "convert_each", "convert_field", "convert_operator", "take_fires"]

T = TypeVar("T")

# As they are called there, in the order in which the first one counts, and as they are called here.
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
_NOTIFY = FindingReason("a message to people", "conditions here send nothing", "alert on the metric or the event")
_ADMISSION = FindingReason(
    "a rule for admission alone", "a box has rules for its passes", "use an admission policy of the cluster"
)
_ALONE = "it is one of the conditions of something that is therefore not carried over"


class NotConvertedError(Exception):
    """What it belongs to cannot be carried over; why is listed already, or is told here.

    Args:
        why: The reason, when it is not listed.
    """

    def __init__(self, why: FindingReason | None = None) -> None:
        super().__init__(why.why if why is not None else "")
        self.why = why


def convert_each(
    items: Iterable[KatalogFields], make: Callable[[KatalogFields], T], otherwise: FindingReason
) -> Iterator[tuple[KatalogFields, T]]:
    """What is made of each; what cannot be carried over is listed, for its own reason or else for this one."""
    for each in items:
        try:
            made = make(each)
        except NotConvertedError as missing:
            each.notes.add_finding(each.path, missing.why or otherwise)
        else:
            yield each, made


def convert_conditions(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """``when`` and ``or`` of something, as it has them here; nothing for none.

    Raises:
        NotConvertedError: One of them has no counterpart; it is listed.
    """
    found: dict[str, Any] = {}
    failed = False
    alternatives = [key for key in ("or", "anyOf") if key in fields]
    if len(alternatives) > 1:
        fields.reject_field(
            "anyOf", "a second list of alternatives", "or and anyOf are two names for one", "put them together"
        )
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
            fields.reject_field(key, "conditions of another form", "expected a list", "write a list of conditions")
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
        fields.reject_field("source", "a value of another process", _ALONE, "ask for it with external")
    if "field" in fields:
        found["field"] = convert_field(fields, known)
        found |= convert_operator(fields, known)
    else:
        operator_of_nothing = [key for key in (*_OPERATORS, *_TYPES, "operator", "value") if key in fields]
        for key in operator_of_nothing:
            fields.take(key)
            fields.reject_field(key, "an operator without a field", _ALONE, "say which field it is about")
    if (negate := fields.take_typed("negate", bool)) is not None and negate:
        found["negate"] = True
    found |= _convert_times(fields)
    fields.report_remaining()
    if len(fields.notes.findings) > before or not found:
        if not found:
            fields.notes.add_finding(fields.path, FindingReason("a condition that says nothing", _ALONE, "remove it"))
        raise NotConvertedError
    return found


def convert_field(fields: KatalogFields, known: KnownFields) -> str:
    """``field`` of a condition or a rule: a path or an expression.

    Raises:
        NotConvertedError: It has no counterpart; it is listed.
    """
    text = fields.take_text("field") or ""
    try:
        if has_template(text):
            return translate_template(text, TemplateUse.FIELD, known)
        return translate_field_path(text, known)
    except TemplateProblemError as problem:
        fields.reject_field("field", "what a condition looks at", problem.why, problem.instead)
        raise NotConvertedError from None


def convert_operator(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """The operator of a condition or rule and what it compares with.

    Raises:
        NotConvertedError: It has no counterpart; it is listed.
    """
    given: list[tuple[str, str, Any]] = []
    for key in (*_OPERATORS, *_TYPES):
        if key in fields:
            value = fields.take(key)
            if value == "" or value is None:
                fields.add_note(key, "empty text does not count as an operator; equals: '' would here")
                continue
            if value is False and key in ("exists", "notExists", "unique", *_TYPES):
                why = "false counts as not said there, and as the opposite here"
                fields.reject_field(key, "an operator that is off", why, "write exists or notExists with true")
                raise NotConvertedError
            given.append((key, key, value))
    if "operator" in fields:
        name, value = fields.take_text("operator") or "", fields.take("value")
        given.append(("operator", name, value))
    elif "value" in fields:
        given.append(("value", "equals", fields.take("value")))
    for key, _, _ in given[1:]:
        why = f"only the first operator counts there, which is {given[0][1]}"
        fields.reject_field(key, "a second operator", why, "write a condition for each")
    if not given:
        return {}
    key, name, value = given[0]
    if name in _TYPES:
        return {"typeOf": _TYPES[name]}
    here = _OPERATORS.get(name)
    if here is None:
        fields.reject_field(key, "an unknown operator", f"nothing is called {name[:40]!r}", "choose one of the list")
        raise NotConvertedError
    if here in ("exists", "notExists", "unique"):
        return {here: True}
    try:
        return {here: _convert_operand(here, value, known)}
    except (TemplateProblemError, ValueError) as problem:
        why = problem.why if isinstance(problem, TemplateProblemError) else str(problem)
        fields.reject_field(key, "what an operator compares with", why, "write the value by hand")
        raise NotConvertedError from None


def take_fires(rule: KatalogFields) -> None:
    """Take ``fires``: rules are asked in passes here.

    Raises:
        NotConvertedError: This one is asked at admission alone.
    """
    block = rule.take_mapping("fires")
    at_reconcile = block.take_typed("reconcile", bool)
    block.report_remaining()
    if at_reconcile is False:
        raise NotConvertedError(_ADMISSION)
    if at_reconcile:
        rule.add_note("fires", "rules are asked in each pass")


def _convert_operand(operator: str, value: Any, known: KnownFields) -> Any:
    if isinstance(value, list) and operator in ("in", "notIn", "between", "notBetween"):
        return [_parse_number(each) if operator in ("between", "notBetween") else each for each in value]
    if isinstance(value, list | dict):
        raise ValueError("expected text, a number or a boolean")
    if isinstance(value, str) and has_template(value):
        made = translate_template(value, TemplateUse.PLAIN, known)
        if operator in ("between", "notBetween"):
            raise ValueError("a range that is computed")
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
        fields.add_note("time", "hours are UTC, and a window may go over midnight")
    if "dayOfWeek" in fields:
        found |= _convert_days(fields)
    if "cron" in fields:
        found["cron"] = fields.take_text("cron") or ""
        if "duration" in fields:
            found["duration"] = fields.take_text("duration") or ""
        else:
            fields.add_note("cron", "without a duration it holds for a minute after each time")
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
                    word, "days of the week", "one of them is no day", "write mon, tue, wed, thu, fri, sat, sun"
                )
                return {}
            chosen = [day for day in _DAYS if (day in short) is (word == "in")]
            return {"dayOfWeek": chosen}
    days.report_remaining()
    fields.reject_field("dayOfWeek", "days of the week", _ALONE, "write weekday, weekend or a list of days")
    return {}

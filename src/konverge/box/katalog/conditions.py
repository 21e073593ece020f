"""Conditions, and the operators of validation rules.

A thing whose conditions cannot be carried over is not carried over itself: without them it would be there always.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from konverge.box.katalog.expressions import Use, has_template, path_of, translated
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.go_template import TemplateProblemError
from konverge.box.katalog.known_fields import Known

__all__ = ["NotCarriedError", "carried", "conditions", "field_of", "fires", "operator_of"]

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
_NOTIFY = Why("a message to people", "conditions here send nothing", "alert on the metric or the event")
_ADMISSION = Why(
    "a rule for admission alone", "a box has rules for its passes", "use an admission policy of the cluster"
)
_ALONE = "it is one of the conditions of something that is therefore not carried over"


class NotCarriedError(Exception):
    """What it belongs to cannot be carried over; why is listed already, or is told here.

    Args:
        why: The reason, when it is not listed.
    """

    def __init__(self, why: Why | None = None) -> None:
        super().__init__(why.why if why is not None else "")
        self.why = why


def carried(items: Iterable[Fields], make: Callable[[Fields], T], otherwise: Why) -> Iterator[tuple[Fields, T]]:
    """What is made of each; what cannot be carried over is listed, for its own reason or else for this one."""
    for each in items:
        try:
            made = make(each)
        except NotCarriedError as missing:
            each.notes.list(each.path, missing.why or otherwise)
        else:
            yield each, made


def conditions(fields: Fields, known: Known) -> dict[str, Any]:
    """``when`` and ``or`` of something, as it has them here; nothing for none.

    Raises:
        NotCarriedError: One of them has no counterpart; it is listed.
    """
    found: dict[str, Any] = {}
    failed = False
    alternatives = [key for key in ("or", "anyOf") if key in fields]
    if len(alternatives) > 1:
        fields.refuse(
            "anyOf", "a second list of alternatives", "or and anyOf are two names for one", "put them together"
        )
        failed = True
    for key in ("when", *alternatives[:1]):
        made: list[dict[str, Any]] = []
        if fields.is_list(key):
            for each in fields.items(key):
                try:
                    made.append(_condition(each, known))
                except NotCarriedError:
                    failed = True
        else:
            fields.take(key)
            fields.refuse(key, "conditions of another form", "expected a list", "write a list of conditions")
            failed = True
        if made:
            found["when" if key == "when" else "or"] = made
    if failed:
        raise NotCarriedError
    return found


def _condition(fields: Fields, known: Known) -> dict[str, Any]:
    found: dict[str, Any] = {}
    before = len(fields.notes.findings)
    notify = "notify" in fields
    if fields.take("notify") is not None or notify:
        fields.notes.list(fields.at("notify"), _NOTIFY)
        before += 1
    if "source" in fields:
        fields.take("source")
        fields.refuse("source", "a value of another process", _ALONE, "ask for it with external")
    if "field" in fields:
        found["field"] = field_of(fields, known)
        found |= operator_of(fields, known)
    else:
        operator_of_nothing = [key for key in (*_OPERATORS, *_TYPES, "operator", "value") if key in fields]
        for key in operator_of_nothing:
            fields.take(key)
            fields.refuse(key, "an operator without a field", _ALONE, "say which field it is about")
    if (negate := fields.typed("negate", bool)) is not None and negate:
        found["negate"] = True
    found |= _times(fields)
    fields.close()
    if len(fields.notes.findings) > before or not found:
        if not found:
            fields.notes.list(fields.path, Why("a condition that says nothing", _ALONE, "remove it"))
        raise NotCarriedError
    return found


def field_of(fields: Fields, known: Known) -> str:
    """``field`` of a condition or a rule: a path or an expression.

    Raises:
        NotCarriedError: It has no counterpart; it is listed.
    """
    text = fields.text("field") or ""
    try:
        if has_template(text):
            return translated(text, Use.FIELD, known)
        return path_of(text, known)
    except TemplateProblemError as problem:
        fields.refuse("field", "what a condition looks at", problem.why, problem.instead)
        raise NotCarriedError from None


def operator_of(fields: Fields, known: Known) -> dict[str, Any]:
    """The operator of a condition or rule and what it compares with.

    Raises:
        NotCarriedError: It has no counterpart; it is listed.
    """
    given: list[tuple[str, str, Any]] = []
    for key in (*_OPERATORS, *_TYPES):
        if key in fields:
            value = fields.take(key)
            if value == "" or value is None:
                fields.decide(key, "empty text does not count as an operator; equals: '' would here")
                continue
            if value is False and key in ("exists", "notExists", "unique", *_TYPES):
                why = "false counts as not said there, and as the opposite here"
                fields.refuse(key, "an operator that is off", why, "write exists or notExists with true")
                raise NotCarriedError
            given.append((key, key, value))
    if "operator" in fields:
        name, value = fields.text("operator") or "", fields.take("value")
        given.append(("operator", name, value))
    elif "value" in fields:
        given.append(("value", "equals", fields.take("value")))
    for key, _, _ in given[1:]:
        why = f"only the first operator counts there, which is {given[0][1]}"
        fields.refuse(key, "a second operator", why, "write a condition for each")
    if not given:
        return {}
    key, name, value = given[0]
    if name in _TYPES:
        return {"typeOf": _TYPES[name]}
    here = _OPERATORS.get(name)
    if here is None:
        fields.refuse(key, "an unknown operator", f"nothing is called {name[:40]!r}", "choose one of the list")
        raise NotCarriedError
    if here in ("exists", "notExists", "unique"):
        return {here: True}
    try:
        return {here: _compared(here, value, known)}
    except (TemplateProblemError, ValueError) as problem:
        why = problem.why if isinstance(problem, TemplateProblemError) else str(problem)
        fields.refuse(key, "what an operator compares with", why, "write the value by hand")
        raise NotCarriedError from None


def fires(rule: Fields) -> None:
    """Take ``fires``: rules are asked in passes here.

    Raises:
        NotCarriedError: This one is asked at admission alone.
    """
    block = rule.below("fires")
    at_reconcile = block.typed("reconcile", bool)
    block.close()
    if at_reconcile is False:
        raise NotCarriedError(_ADMISSION)
    if at_reconcile:
        rule.decide("fires", "rules are asked in each pass")


def _compared(operator: str, value: Any, known: Known) -> Any:
    if isinstance(value, list) and operator in ("in", "notIn", "between", "notBetween"):
        return [_number(each) if operator in ("between", "notBetween") else each for each in value]
    if isinstance(value, list | dict):
        raise ValueError("expected text, a number or a boolean")
    if isinstance(value, str) and has_template(value):
        made = translated(value, Use.PLAIN, known)
        if operator in ("between", "notBetween"):
            raise ValueError("a range that is computed")
        return made
    if operator in ("between", "notBetween"):
        return [_number(part) for part in str(value).split(",")]
    if operator in ("in", "notIn"):
        return [part.strip() for part in str(value).split(",")]
    if operator == "typeOf":
        return {"slice": "list"}.get(str(value), value)
    if operator in _NUMBERS:
        return _number(value)
    if operator in ("equals", "notEquals"):
        return value
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    return value


def _times(fields: Fields) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if "time" in fields:
        window = fields.below("time")
        found["time"] = {key: text for key in ("after", "before") if (text := window.text(key)) is not None}
        window.close()
        fields.decide("time", "hours are UTC, and a window may go over midnight")
    if "dayOfWeek" in fields:
        found |= _days(fields)
    if "cron" in fields:
        found["cron"] = fields.text("cron") or ""
        if "duration" in fields:
            found["duration"] = fields.text("duration") or ""
        else:
            fields.decide("cron", "without a duration it holds for a minute after each time")
    return found


def _days(fields: Fields) -> dict[str, Any]:
    value = fields.take("dayOfWeek")
    if isinstance(value, str | list):
        value = {value: True} if value in ("weekday", "weekend") else {"in": value}
    days = Fields(fields.notes, value, fields.at("dayOfWeek"))
    for word in ("weekday", "weekend"):
        if days.typed(word, bool):
            days.close()
            return {"dayOfWeek": word}
    for word in ("in", "notIn"):
        if word in days:
            names = days.take(word)
            listed = names.split(",") if isinstance(names, str) else names if isinstance(names, list) else []
            short = [str(name).strip()[:3].lower() for name in listed]
            days.close()
            if not short or any(name not in _DAYS for name in short):
                days.refuse(
                    word, "days of the week", "one of them is no day", "write mon, tue, wed, thu, fri, sat, sun"
                )
                return {}
            chosen = [day for day in _DAYS if (day in short) is (word == "in")]
            return {"dayOfWeek": chosen}
    days.close()
    fields.refuse("dayOfWeek", "days of the week", _ALONE, "write weekday, weekend or a list of days")
    return {}

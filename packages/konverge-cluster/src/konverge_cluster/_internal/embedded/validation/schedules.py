"""Validation of cron schedules, with the messages of the API server's parser (robfig/cron)."""

from __future__ import annotations

import re

from konverge_cluster._internal.embedded.validation.field_errors import quote

__all__ = ["find_schedule_error"]

_DESCRIPTORS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
}
_DAYS = {name: number for number, name in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])}
_FIELDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _DAYS),
)
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+")


def find_schedule_error(schedule: str) -> str:
    """Return the reason why a text is not a schedule; empty if it is one."""
    if schedule.startswith("@"):
        if schedule in _DESCRIPTORS:
            return ""
        if schedule.startswith("@every "):
            duration = schedule.removeprefix("@every ")
            is_valid = _DURATION.fullmatch(duration)
            return "" if is_valid else f"failed to parse duration {schedule}: time: invalid duration {quote(duration)}"
        return f"unrecognized descriptor: {schedule}"
    fields = schedule.split()
    if len(fields) != 5:
        return f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
    for text, (low, high, names) in zip(fields, _FIELDS, strict=True):
        for expression in text.split(","):
            error = _find_range_error(expression, low, high, names)
            if error:
                return error
    return ""


def _find_range_error(expression: str, low: int, high: int, names: dict[str, int]) -> str:
    bounds, *steps = expression.split("/")
    first, *last = bounds.split("-")
    start, end = low, high
    if first not in ("*", "?"):
        numbers: list[int] = []
        for text in (first, *last[:1]):
            number, error = _read_number(text, names)
            if error:
                return error
            numbers.append(number)
        start, end = numbers[0], numbers[-1]
        if len(last) > 1:
            return f"too many hyphens: {expression}"
    if steps:
        step, error = _read_number(steps[0], {})
        if error:
            return error
        if len(steps) > 1:
            return f"too many slashes: {expression}"
        if step == 0:
            return f"step of range should be a positive number: {expression}"
        end = high if not last and first not in ("*", "?") else end
    if start < low:
        return f"beginning of range ({start}) below minimum ({low}): {expression}"
    if end > high:
        return f"end of range ({end}) above maximum ({high}): {expression}"
    if start > end:
        return f"beginning of range ({start}) beyond end of range ({end}): {expression}"
    return ""


def _read_number(text: str, names: dict[str, int]) -> tuple[int, str]:
    if text.lower() in names:
        return names[text.lower()], ""
    if re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        number = int(text)
        return number, f"negative number ({number}) not allowed: {text}" if number < 0 else ""
    return 0, f"failed to parse int from {text}: strconv.Atoi: parsing {quote(text)}: invalid syntax"

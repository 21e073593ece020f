"""Functions for times and cron schedules. All times are in UTC."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from konverge._internal.kube.timestamps import format_time, parse_time
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.schedules import (
    CRON_FIELDS,
    DAYS,
    find_time_of_day,
    format_period,
    is_in_time_window,
    iter_cron_times,
    parse_cron,
    parse_period,
    parse_time_of_day,
)
from konverge_box._internal.expressions.values import describe_value_type, format_hint, format_scalar

__all__ = ["CRON", "TIMES"]

_LAYOUT = re.compile(r"(?:[^%]|%[YmdHMSjaAbB%])*")
_MAX_LAYOUT_LENGTH = 100
_MIDNIGHT = parse_time_of_day("00:00")
_UNITS = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def _now(now: datetime) -> str:
    """Return the time of the reconcile: `2026-01-31T08:00:00Z`."""
    return format_time(now)


def time_ago(now: datetime, time: str) -> str:
    """Return the time since then in the largest unit, as kubectl prints it: `5m`, `3d`."""
    seconds = max(0, int((now - _parse_time(time)).total_seconds()))
    length, unit = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return f"{seconds // length}{unit}"


def time_since(now: datetime, time: str) -> str:
    """Return the time since then: `1d2h`, `5m10s`; `0s` for a time in the future."""
    return format_period(now - _parse_time(time))


def time_until(now: datetime, time: str) -> str:
    """Return the time until then: `1d2h`; `0s` for a time in the past."""
    return format_period(_parse_time(time) - now)


def time_format(time: str, layout: str) -> str:
    """Format a time: `timeFormat(metadata.creationTimestamp, "%Y-%m-%d")`.

    Supported directives: `%Y %m %d %H %M %S %j %a %A %b %B`.
    """
    if len(layout) > _MAX_LAYOUT_LENGTH or not _LAYOUT.fullmatch(layout):
        raise ValueError("expected a layout with only %Y %m %d %H %M %S %j %a %A %b %B and plain text")
    return _parse_time(time).strftime(layout)


def is_expired(now: datetime, time: str, duration: str = "0") -> bool:
    """Tell whether the time, plus the duration, has passed: `isExpired(metadata.creationTimestamp, "90d")`."""
    return _add_duration(_parse_time(time), duration) <= now


def duration_seconds(duration: str) -> float:
    """Convert to seconds: `durationSeconds("1h30m")` is 5400. Units: ms, s, m, h, d, w, mo (30 days), y (365 days)."""
    seconds = parse_period(duration).total_seconds()
    return int(seconds) if seconds.is_integer() else seconds


def duration_add(time: str, duration: str) -> str:
    """Add a duration to a time: `durationAdd(status.startedAt, "15m")`."""
    return format_time(_add_duration(_parse_time(time), duration))


def duration_valid(duration: str) -> bool:
    """Tell whether it is a valid duration."""
    try:
        parse_period(duration)
    except ValueError:
        return False
    return True


def weekday(now: datetime, time: str = "") -> str:
    """Return the day of the week of a time (default: the time of the reconcile): `Monday`."""
    return DAYS[(_parse_time(time) if time else now.astimezone(UTC)).weekday()]


def time_in_window(now: datetime, after: str, before: str) -> bool:
    """Tell whether the time of day is in the window, also across midnight: `timeInWindow("22:00", "06:00")`."""
    return is_in_time_window(now, parse_time_of_day(after), parse_time_of_day(before))


def _parse_time(text: str) -> datetime:
    try:
        return parse_time(text) if len(text) <= _MAX_LAYOUT_LENGTH else parse_time("")
    except ValueError:
        raise ValueError(f"expected a time such as 2026-01-31T08:00:00Z, found {text[:40]!r}") from None


def _add_duration(time: datetime, duration: str) -> datetime:
    try:
        return time + parse_period(duration)
    except OverflowError:
        raise ValueError("the resulting time is out of range") from None


def cron_valid(schedule: str) -> bool:
    """Tell whether it is a cron schedule of five fields, or a name such as `@daily`, that occurs at least once."""
    try:
        parse_cron(schedule)
    except ValueError:
        return False
    return True


def cron_normalize(schedule: str) -> str:
    """Convert to the simplest notation: `cronNormalize("@weekly")` is `0 0 * * 0`."""
    return " ".join(parse_cron(schedule))


def cron_to_map(schedule: str) -> Mapping[str, Any]:
    """Return the fields by name: minute, hour, dayOfMonth, month, dayOfWeek."""
    return dict(zip(CRON_FIELDS, parse_cron(schedule), strict=True))


def cron_from_map(fields: Mapping[str, Any]) -> str:
    """Build a schedule from fields; missing ones are `*`: `cronFromMap({"hour": 3, "minute": 0})` is `0 3 * * *`."""
    unknown = sorted(set(fields) - set(CRON_FIELDS))
    if unknown:
        raise ValueError(f"unknown field {unknown[0][:20]}{format_hint(unknown[0], CRON_FIELDS)}")
    return cron_normalize(" ".join(format_scalar(fields.get(name, "*")) for name in CRON_FIELDS))


def cron_from_any(value: Any) -> str:
    """Build a schedule from a string, from fields by name, or from a list of five fields."""
    if isinstance(value, str):
        return cron_normalize(value)
    if isinstance(value, Mapping):
        return cron_from_map(value)
    if isinstance(value, list):
        return cron_normalize(" ".join(format_scalar(item) for item in value))
    raise ValueError(f"expected a string, a mapping or a list, found {describe_value_type(value)}")


def cron_field(schedule: str, field: str) -> str:
    """Return one field by name: `cronField("0 3 * * 1-5", "dayOfWeek")` is `1-5`."""
    found = cron_to_map(schedule).get(field)
    if found is None:
        raise ValueError(f"unknown field {field[:20]}{format_hint(field, CRON_FIELDS)}")
    return str(found)


def cron_minute(schedule: str) -> str:
    """Return the field for the minute."""
    return parse_cron(schedule)[0]


def cron_hour(schedule: str) -> str:
    """Return the field for the hour."""
    return parse_cron(schedule)[1]


def cron_dom(schedule: str) -> str:
    """Return the field for the day of the month."""
    return parse_cron(schedule)[2]


def cron_month(schedule: str) -> str:
    """Return the field for the month."""
    return parse_cron(schedule)[3]


def cron_dow(schedule: str) -> str:
    """Return the field for the day of the week; 0 is Sunday."""
    return parse_cron(schedule)[4]


def cron_expr(minute: Any, hour: Any, day_of_month: Any, month: Any, day_of_week: Any) -> str:
    """Build a schedule from five fields: `cronExpr(0, 3, "*", "*", "1-5")` is `0 3 * * 1-5`."""
    return cron_from_any([minute, hour, day_of_month, month, day_of_week])


def cron_describe(schedule: str) -> str:
    """Describe a schedule by field: `cronDescribe("0 3 * * 1-5")` is `minute 0, hour 3, day of week 1-5`."""
    words = ("minute", "hour", "day of month", "month", "day of week")
    parts = [f"{word} {field}" for word, field in zip(words, parse_cron(schedule), strict=True) if field != "*"]
    return ", ".join(parts) or "every minute"


def cron_next(now: datetime, schedule: str, count: int = 1) -> Any:
    """Return the next time of the schedule after the reconcile; with a count of 2 to 20, a list of times."""
    if not 1 <= count <= 20:
        raise ValueError(f"expected a count of 1 to 20, found {count}")
    moments = [format_time(moment) for moment in islice(iter_cron_times(schedule, now), count)]
    return moments[0] if count == 1 else moments


def cron_previous(now: datetime, schedule: str) -> str:
    """Return the last time of the schedule at or before the reconcile."""
    return format_time(next(iter_cron_times(schedule, now, backwards=True)))


def cron_active(now: datetime, schedule: str, duration: str = "60s") -> bool:
    """Tell whether the last time is within the duration (default: 60s): `cronActive("0 22 * * *", "8h")`."""
    return now - next(iter_cron_times(schedule, now, backwards=True)) < max(parse_period(duration), timedelta(0))


# When the result of a function of time changes. All are called with arguments that the function has accepted.


def _change_of_now(now: datetime) -> datetime:
    return now.replace(microsecond=0) + timedelta(seconds=1)


def _change_of_time_ago(now: datetime, time: str) -> datetime:
    start = _parse_time(time)
    seconds = max(0, int((now - start).total_seconds()))
    length, _ = next((each for each in _UNITS if seconds >= each[0]), _UNITS[-1])
    return start + timedelta(seconds=(seconds // length + 1) * length)


def _change_of_time_since(now: datetime, time: str) -> datetime:
    start = _parse_time(time)
    return start + timedelta(seconds=max(0, int((now - start).total_seconds())) + 1)


def _change_of_time_until(now: datetime, time: str) -> datetime | None:
    left = int((_parse_time(time) - now).total_seconds())
    # The number of whole seconds decreases just after a whole second.
    return _parse_time(time) - timedelta(seconds=left) + timedelta.resolution if left > 0 else None


def _change_of_expiry(now: datetime, time: str, duration: str = "0") -> datetime | None:
    end = _add_duration(_parse_time(time), duration)
    return end if end > now else None


def _change_of_weekday(now: datetime, time: str = "") -> datetime | None:
    return None if time else find_time_of_day(now, _MIDNIGHT)


def _change_of_window(now: datetime, after: str, before: str) -> datetime:
    return min(find_time_of_day(now, parse_time_of_day(each)) for each in (after, before))


def _change_of_schedule(now: datetime, schedule: str, count: int = 1) -> datetime:
    return next(iter_cron_times(schedule, now))


def _change_of_activity(now: datetime, schedule: str, duration: str = "60s") -> datetime:
    begin = next(iter_cron_times(schedule, now))
    end = next(iter_cron_times(schedule, now, backwards=True)) + max(parse_period(duration), timedelta(0))
    return min(begin, end) if end > now else begin


TIMES = build_group(
    "Time",
    "Times are in UTC, as in Kubernetes: `2026-01-31T08:00:00Z`. All expressions of a reconcile get the same time.",
    _now,
    time_ago,
    time_since,
    time_until,
    time_format,
    is_expired,
    duration_seconds,
    duration_add,
    duration_valid,
    weekday,
    time_in_window,
    changes={
        _now: _change_of_now,
        time_ago: _change_of_time_ago,
        time_since: _change_of_time_since,
        time_until: _change_of_time_until,
        is_expired: _change_of_expiry,
        weekday: _change_of_weekday,
        time_in_window: _change_of_window,
    },
)
CRON = build_group(
    "Cron schedules",
    "Schedules have five fields as in a CronJob, in UTC, or are `@yearly`, `@monthly`, `@weekly`, `@daily`, `@hourly`.",
    cron_valid,
    cron_normalize,
    cron_to_map,
    cron_from_map,
    cron_from_any,
    cron_field,
    cron_minute,
    cron_hour,
    cron_dom,
    cron_month,
    cron_dow,
    cron_expr,
    cron_describe,
    cron_next,
    cron_previous,
    cron_active,
    changes={cron_next: _change_of_schedule, cron_previous: _change_of_schedule, cron_active: _change_of_activity},
)

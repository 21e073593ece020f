"""Times of day, days of the week, cron schedules and durations, all in UTC.

A cron schedule has the five fields of a CronJob, or is one of its names (``@hourly``); ``?`` is ``*``, and both 0 and 7
are Sunday. The package ``cronsim`` computes the times of a schedule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, time, timedelta
from functools import lru_cache
from typing import Any

from konverge._internal.kube.durations import CALENDAR_UNITS, parse_duration
from konverge.errors import ConfigurationError

__all__ = [
    "CRON_FIELDS",
    "DAYS",
    "find_time_of_day",
    "format_period",
    "is_in_time_window",
    "iter_cron_times",
    "parse_cron",
    "parse_day_of_week",
    "parse_period",
    "parse_time_of_day",
]

CRON_FIELDS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_MAX_SCHEDULE_LENGTH = 200
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_POINT = r"(?:[0-9]{1,2}|[A-Za-z]{3})"
_TERM = rf"(?:\*|{_POINT}(?:-{_POINT})?)(?:/[0-9]{{1,3}})?"
_FIELD = re.compile(f"{_TERM}(?:,{_TERM})*")
_WORD = re.compile("[A-Z]{3}")
_MONTH_NAMES = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAY_NAMES = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_TIME_OF_DAY = re.compile(r"([01][0-9]|2[0-3]):([0-5][0-9])")
_MAX_PERIOD = timedelta(days=100 * 365)


def parse_period(text: str) -> timedelta:
    """Parse a duration: ``0``, or numbers with the units ms, s, m, h, d, w, mo (30 days), y (365 days).

    Raises:
        ValueError: It is not a duration, or is longer than a hundred years.
    """
    period = parse_duration(text, CALENDAR_UNITS)
    if period > _MAX_PERIOD:
        raise ValueError(f"expected a duration of at most a hundred years, found {text!r}")
    return period


def format_period(period: timedelta) -> str:
    """Format a duration without empty parts and never negative: ``1d2h``, ``5m``, ``0s``."""
    seconds = max(0, int(period.total_seconds()))
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        count, seconds = divmod(seconds, length)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def parse_time_of_day(text: object) -> time:
    """Parse a time of day such as ``22:00``.

    Raises:
        ValueError: It is not a time of day.
    """
    found = _TIME_OF_DAY.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"expected a time of day such as 22:00, found {str(text)[:40]!r}")
    return time(int(found[1]), int(found[2]))


def is_in_time_window(now: datetime, after: time, before: time) -> bool:
    """Tell whether a time of day is from `after` until `before`; the window spans midnight if `before` is earlier."""
    at = now.astimezone(UTC).time()
    return after <= at < before if after < before else at >= after or at < before


def find_time_of_day(now: datetime, at: time) -> datetime:
    """Return the next moment after this one at which it is this time of day."""
    moment = datetime.combine(now.astimezone(UTC).date(), at, tzinfo=UTC)
    return moment if moment > now else moment + timedelta(days=1)


def parse_day_of_week(text: object) -> int:
    """Return the number of a day of the week, 0 for Monday, from ``Monday``, ``monday`` or ``Mon``.

    Raises:
        ValueError: It is not a day of the week.
    """
    word = text.strip().lower() if isinstance(text, str) else ""
    for number, day in enumerate(DAYS):
        if word in (day.lower(), day[:3].lower()):
            return number
    raise ValueError(f"expected a day of the week such as Monday or Mon, found {str(text)[:40]!r}")


@lru_cache(maxsize=1024)
def parse_cron(text: str) -> tuple[str, str, str, str, str]:
    """Return the five fields of a schedule in their simplest notation: numbers for names, 0 for Sunday.

    Raises:
        ValueError: It is not a schedule, or never occurs.
    """
    written = _NAMED.get(text.strip().lower(), text) if len(text) <= _MAX_SCHEDULE_LENGTH else ""
    fields = written.upper().replace("?", "*").split()
    if len(fields) != len(CRON_FIELDS) or not all(_FIELD.fullmatch(field) for field in fields):
        raise _build_schedule_error(text)
    fields[3] = _replace_names(fields[3], _MONTH_NAMES, 1)
    fields[4] = re.sub(r"(?<![0-9/-])7(?![0-9-])", "0", _replace_names(fields[4], _DAY_NAMES, 0))
    minute, hour, day, month, week_day = fields
    try:
        next(_iter_times(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC), backwards=False))
    except StopIteration:
        raise ValueError(f"the schedule {text[:40]!r} never occurs") from None
    except _load_cronsim_error() as error:
        raise _build_schedule_error(text, str(error)) from None
    return minute, hour, day, month, week_day


def iter_cron_times(text: str, moment: datetime, *, backwards: bool = False) -> Iterator[datetime]:
    """Yield the times of a schedule after a moment, earliest first; or backwards from and including the moment.

    Raises:
        ValueError: It is not a schedule.
    """
    fields = " ".join(parse_cron(text))
    at = moment.astimezone(UTC)
    if backwards:
        # cronsim starts strictly before the moment.
        at = at.replace(microsecond=0) + timedelta(seconds=1)
    return _iter_times(fields, at, backwards=backwards)


def _build_schedule_error(text: str, more: str = "") -> ValueError:
    reason = f" ({more})" if more else ""
    return ValueError(f"expected a cron schedule of five fields such as '0 3 * * 1-5', found {text[:40]!r}{reason}")


def _replace_names(field: str, names: tuple[str, ...], first: int) -> str:
    def replace_name(found: re.Match[str]) -> str:
        return str(names.index(found[0]) + first) if found[0] in names else found[0]

    return _WORD.sub(replace_name, field)


def _iter_times(fields: str, moment: datetime, *, backwards: bool) -> Iterator[datetime]:
    moments: Iterator[datetime] = _load_cronsim().CronSim(fields, moment, reverse=backwards)
    return moments


def _load_cronsim_error() -> type[Exception]:
    error: type[Exception] = _load_cronsim().CronSimError
    return error


def _load_cronsim() -> Any:
    try:
        import cronsim
    except ImportError as error:
        raise ConfigurationError(
            "cron schedules need cronsim, which is not installed: pip install 'konverge[box]'"
        ) from error
    return cronsim

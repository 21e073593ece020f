"""A resolver's configuration: the data of a ConfigMap, checked as a whole before any of it counts.

A key may have the name of a set before it (``internal.server-url``), which a reference chooses with the parameter
``configKey``. A set has what it says, and the settings without a set for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from konverge.kube.durations import format_duration, parse_duration
from konverge.suggestions import did_you_mean
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.resolver import Setting

__all__ = ["CONFIG_KEY", "FETCH_SETTINGS", "ResolverSettings", "as_boolean", "as_duration", "as_list", "parse_settings"]

CONFIG_KEY = "configKey"
"""The parameter that chooses a set."""

FETCH_SETTINGS: dict[str, Setting] = {
    "fetch-timeout": Setting("How long one resolution may take", "duration", "1m"),
    "default-cache-mode": Setting("`auto`, `always` or `never`, for references that do not say it", default="auto"),
}
"""What the engine itself looks at. A resolver that declares them among its settings lets operators set them."""

_MAX_ENTRIES = 500
_LONGEST = timedelta(days=3650)


def as_duration(text: str) -> timedelta:
    """A duration such as ``30s`` or ``1m30s``, longer than nothing, and so long that a date can have it added.

    Raises:
        ValueError: It is none.
    """
    found = parse_duration(text)
    if found <= timedelta(0):
        raise ValueError(f"expected a duration longer than zero, found {text[:40]!r}")
    if found > _LONGEST:
        raise ValueError(f"expected a duration of at most {format_duration(_LONGEST)}, found {text[:40]!r}")
    return found


def as_boolean(text: str) -> bool:
    """``true`` or ``false``; also ``1``, ``yes``, ``on`` and ``0``, ``no``, ``off``.

    Raises:
        ValueError: It is none of these. What is misspelt must not switch a defence off.
    """
    match text.strip().lower():
        case "true" | "1" | "yes" | "on":
            return True
        case "false" | "0" | "no" | "off":
            return False
    raise ValueError(f"expected true or false, found {text[:40]!r}")


def as_list(text: str) -> tuple[str, ...]:
    """Texts between commas or in lines of their own; blanks around them do not count."""
    return tuple(each.strip() for line in text.splitlines() for each in line.split(",") if each.strip())


def _parse_integer(text: str) -> int:
    number = int(text) if text.strip().isascii() and text.strip().isdecimal() and len(text) < 20 else -1
    if number < 0:
        raise ValueError(f"expected a whole number from 0 on, found {text[:40]!r}")
    return number


_CHECKS: dict[str, Callable[[str], object]] = {
    "text": str,
    "duration": as_duration,
    "integer": _parse_integer,
    "boolean": as_boolean,
    "list": as_list,
}


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """The settings of one resolver; made by `parse_settings`.

    Args:
        plain: What holds without a set.
        sets: What each set says itself.
    """

    plain: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def select(self, config_key: str = "") -> Mapping[str, str]:
        """The settings of a set; without a name, those of ``default`` if there is one.

        Raises:
            ResolutionError: There is no set of that name.
        """
        name = config_key or "default"
        if name in self.sets:
            return {**self.plain, **self.sets[name]}
        if config_key:
            known = ", ".join(sorted(self.sets)) or "none"
            raise ResolutionError(
                Reason.INVALID_PARAMETERS, f"parameter {CONFIG_KEY!r}: no such configuration; there are: {known}"
            )
        return self.plain


def parse_settings(
    data: Mapping[str, str], declared: Mapping[str, Setting]
) -> tuple[ResolverSettings, tuple[str, ...]]:
    """Read a configuration.

    Args:
        data: As the ConfigMap has it; keys that begin with an underscore are examples and do not count.
        declared: The resolver's settings.

    Returns:
        The settings, and every mistake; with a mistake the settings are not to be used.
    """
    mistakes: list[str] = []
    plain = {key: setting.default for key, setting in declared.items()}
    sets: dict[str, dict[str, str]] = {}
    if len(data) > _MAX_ENTRIES:
        return ResolverSettings(plain), (f"expected at most {_MAX_ENTRIES} settings, found {len(data)}",)
    for key, value in sorted(data.items()):
        if key.startswith("_"):
            continue
        name, dot, setting_key = key.rpartition(".")
        setting = declared.get(setting_key)
        if setting is None or (dot and (not name or "." in name)):
            mistakes.append(f"{key[:80]}: no such setting{did_you_mean(setting_key, declared)}")
            continue
        try:
            _CHECKS[setting.type](value)
        except ValueError as error:
            mistakes.append(f"{key}: {error}")
            continue
        (sets.setdefault(name, {}) if dot else plain)[setting_key] = value
    return ResolverSettings(plain, sets), tuple(mistakes)

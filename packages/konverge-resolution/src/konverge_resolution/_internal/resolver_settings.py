"""Configuration of a resolver: the data of a ConfigMap, validated as a whole before it applies.

A key may have the name of a set as prefix (``internal.server-url``); a reference selects the set with the parameter
``configKey``. Settings that a set lacks come from the keys without a prefix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from konverge._internal.kube.durations import format_duration, parse_duration
from konverge._internal.suggestions import did_you_mean
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolver import Setting

__all__ = [
    "CA_CERTIFICATES",
    "CONFIG_KEY",
    "FETCH_SETTINGS",
    "ResolverSettings",
    "as_boolean",
    "as_duration",
    "as_list",
    "merge_settings",
    "parse_settings",
]

CONFIG_KEY = "configKey"
"""Parameter that selects a set of settings."""

CA_CERTIFICATES = "ca-certificates"
"""Setting with trusted certificates besides those of the system."""

FETCH_SETTINGS: dict[str, Setting] = {
    "fetch-timeout": Setting("Time limit of one resolution", "duration", "1m"),
    "default-cache-mode": Setting("`auto`, `always` or `never`, for references without a mode", default="auto"),
}
"""Settings that the engine uses. A resolver that declares them lets operators set them."""

_MAX_ENTRIES = 500
_LONGEST = timedelta(days=3650)


def as_duration(text: str) -> timedelta:
    """Parse a duration such as ``30s`` or ``1m30s``, longer than zero and small enough to add to a date.

    Raises:
        ValueError: The text is not such a duration.
    """
    duration = parse_duration(text)
    if duration <= timedelta(0):
        raise ValueError(f"expected a duration longer than zero, found {text[:40]!r}")
    if duration > _LONGEST:
        raise ValueError(f"expected a duration of at most {format_duration(_LONGEST)}, found {text[:40]!r}")
    return duration


def as_boolean(text: str) -> bool:
    """Parse ``true`` or ``false``; also ``1``, ``yes``, ``on`` and ``0``, ``no``, ``off``.

    Raises:
        ValueError: The text is not one of these. A spelling error must not disable a protection.
    """
    match text.strip().lower():
        case "true" | "1" | "yes" | "on":
            return True
        case "false" | "0" | "no" | "off":
            return False
    raise ValueError(f"expected true or false, found {text[:40]!r}")


def as_list(text: str) -> tuple[str, ...]:
    """Split text at commas and newlines, and strip the parts."""
    return tuple(part.strip() for line in text.splitlines() for part in line.split(",") if part.strip())


def _parse_integer(text: str) -> int:
    number = int(text) if text.strip().isascii() and text.strip().isdecimal() and len(text) < 20 else -1
    if number < 0:
        raise ValueError(f"expected a whole number of at least 0, found {text[:40]!r}")
    return number


_CHECKS: dict[str, Callable[[str], object]] = {
    "text": str,
    "duration": as_duration,
    "integer": _parse_integer,
    "boolean": as_boolean,
    "list": as_list,
}


def merge_settings(*scopes: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of several scopes; a later scope is narrower, and its values replace earlier ones.

    Certificates add up instead: trust in the authority of a whole network must not end where one resolver needs a
    second authority.
    """
    merged = {key: value for scope in scopes for key, value in scope.items()}
    certificates = dict.fromkeys(scope.get(CA_CERTIFICATES, "").strip() for scope in scopes)
    if found := "\n".join(filter(None, certificates)):
        merged[CA_CERTIFICATES] = found
    return merged


@dataclass(frozen=True, slots=True)
class ResolverSettings:
    """Settings of one resolver; made by `parse_settings`.

    Args:
        plain: The settings without a set.
        sets: The settings of each set.
    """

    plain: Mapping[str, str] = field(default_factory=dict)
    sets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def select(self, config_key: str = "") -> Mapping[str, str]:
        """Return the settings of a set; without a name, those of ``default`` if it exists.

        Raises:
            ResolutionError: ``InvalidParams``: there is no set of that name.
        """
        name = config_key or "default"
        if name in self.sets:
            return merge_settings(self.plain, self.sets[name])
        if config_key:
            known = ", ".join(sorted(self.sets)) or "none"
            raise ResolutionError(
                Reason.INVALID_PARAMETERS, f"parameter {CONFIG_KEY!r}: no such configuration; available: {known}"
            )
        return self.plain


def parse_settings(
    data: Mapping[str, str], declared: Mapping[str, Setting]
) -> tuple[ResolverSettings, tuple[str, ...]]:
    """Parse the configuration of a resolver.

    Args:
        data: The data of the ConfigMap; keys that begin with an underscore are examples and are ignored.
        declared: The settings of the resolver.

    Returns:
        The settings and all errors; with an error the settings must not be used.
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

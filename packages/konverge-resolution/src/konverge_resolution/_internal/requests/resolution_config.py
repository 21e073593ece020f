"""Configuration of resolution in a cluster: one general ConfigMap and one for each resolver, applied without a restart.

``konverge-resolution`` has the general settings, ``konverge-resolver-<name>`` those of one resolver. Each applies as a
whole or not at all: with an error in it, only the requests that it affects fail, with the name of the key. Pure;
`requests.namespace_watcher` watches the ConfigMaps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from konverge_resolution._internal.content_cache import CacheLimits, CacheMode
from konverge_resolution._internal.content_validation import AllowedKinds
from konverge_resolution._internal.engine import EngineOptions
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import CONNECTION_SETTINGS
from konverge_resolution._internal.network import Proxy, TrustStore
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.requests.tekton_settings import SettingsTranslation, translate_settings
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES
from konverge_resolution._internal.resolver import Resolver, Setting
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import as_duration, as_list, merge_settings, parse_settings
from konverge_resolution._internal.source_map import SourceMap

__all__ = [
    "DEFAULT_RESOLVER",
    "GENERAL",
    "GENERAL_SETTINGS",
    "ResolutionConfig",
    "build_config_name",
    "parse_config",
]

T = TypeVar("T")

GENERAL = "konverge-resolution"
"""Name of the ConfigMap with the settings for all resolvers."""

DEFAULT_RESOLVER = "default-resolver"
"""Key of `GENERAL` with the resolver of requests that name none."""

_RESOLVER = "konverge-resolver-"

NEVER = "never"

GENERAL_SETTINGS: Mapping[str, Setting] = {
    "timeout": Setting("Time limit of a request from its creation", "duration", "1m"),
    "attempts": Setting("Maximum number of calls of a remote, including retries", "integer", "3"),
    DEFAULT_RESOLVER: Setting("Resolver of requests that name none"),
    "disabled-resolvers": Setting("Resolvers that are disabled", "list"),
    "allowed-kinds": Setting(
        "Allowed kinds, as Kind.group or *.group; all except Secrets and lists when empty", "list"
    ),
    "source-map": Setting("Replacements of addresses, one per line: from => to"),
    **CONNECTION_SETTINGS,
    "cache-mode": Setting("auto, always or never for all references; empty lets each reference decide"),
    "cache-max-entries": Setting("Maximum number of cached definitions", "integer", "1000"),
    "cache-max-bytes": Setting("Maximum size of the cache in bytes", "integer", str(64 << 20)),
    "cache-ttl": Setting("Lifetime of cached definitions", "duration", "5m"),
    "cache-failure-ttl": Setting("Lifetime of cached failures", "duration", "15s"),
    "finished-ttl": Setting("Lifetime of finished requests that are not deleted, or never", "text", "1h"),
    "inline-max-bytes": Setting(
        "Larger content goes into a ConfigMap, which every reader of ConfigMaps can read",
        "integer",
        str(MAX_CONTENT_BYTES),
    ),
}
"""Settings of `GENERAL` by key."""


def build_config_name(resolver: str) -> str:
    """Return the name of a resolver's ConfigMap."""
    return f"{_RESOLVER}{resolver}"


@dataclass(frozen=True, slots=True)
class ResolutionConfig:
    """Configuration of resolution at one moment; made by `parse_config`.

    Args:
        registry: The resolvers of this process with their settings.
        options: The options for all resolvers.
        source_map: Replacements of addresses.
        cache_limits: The limits of the cache.
        default_resolver: The resolver of requests that name none; empty for none.
        finished_lifetime: Lifetime of finished requests; None for no removal.
        inline_bytes: Larger content is stored in a ConfigMap.
        errors: The errors by ConfigMap.
        ignored: The keys without effect and the explanations, by ConfigMap of Tekton.
    """

    registry: ResolverRegistry
    options: EngineOptions = field(default_factory=EngineOptions)
    source_map: SourceMap = field(default_factory=SourceMap)
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    default_resolver: str = ""
    finished_lifetime: timedelta | None = timedelta(hours=1)
    inline_bytes: int = MAX_CONTENT_BYTES
    errors: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def check(self) -> None:
        """Refuse every request while the general settings are invalid.

        Raises:
            ResolutionError: ``InvalidConfiguration``: the ConfigMap has errors.
        """
        if GENERAL in self.errors:
            message = f"ConfigMap {GENERAL}: invalid configuration: {'; '.join(self.errors[GENERAL][:3])}"
            raise ResolutionError(Reason.INVALID_CONFIGURATION, message)


def parse_config(
    resolvers: Iterable[Resolver], data: Mapping[str, Mapping[str, str]], *, uses_tekton_config: bool = False
) -> ResolutionConfig:
    """Parse the ConfigMaps of resolution.

    Args:
        resolvers: The resolvers of this process.
        data: The data by name of the ConfigMap; the defaults apply without one.
        uses_tekton_config: Whether Tekton's own ConfigMaps apply, with lower precedence.
    """
    listed = list(resolvers)
    known = {resolver.name: frozenset(resolver.settings) for resolver in listed}
    tektons = translate_settings(data, known) if uses_tekton_config else SettingsTranslation()
    mistakes: dict[str, tuple[str, ...]] = {}
    general, wrong = parse_settings({**tektons.general, **data.get(GENERAL, {})}, GENERAL_SETTINGS)
    reading = _SettingParser(general.plain, list(wrong) + _list_sets(general.sets))
    # Connection settings for all are the defaults of every resolver that opens connections.
    connections = {key: general.plain[key] for key in CONNECTION_SETTINGS if general.plain[key]}
    configurations = {
        resolver.name: merge_settings(
            {key: value for key, value in connections.items() if key in resolver.settings},
            tektons.settings.get(resolver.name, {}),
            data.get(build_config_name(resolver.name), {}),
        )
        for resolver in listed
    }
    disabled = (*as_list(general.plain["disabled-resolvers"]), *tektons.disabled)
    registry = ResolverRegistry(
        replace(installed, errors=(*installed.errors, *tektons.refused.get(installed.resolver.name, ())))
        for installed in ResolverRegistry.of(listed, configurations, disabled=disabled)
    )
    for installed in registry:
        if installed.errors:
            mistakes[build_config_name(installed.resolver.name)] = installed.errors
    reading.parse_value("proxy", lambda text: Proxy.parse(text) if text.strip() else None)
    reading.parse_value("ca-certificates", TrustStore)
    config = ResolutionConfig(
        registry=registry,
        options=EngineOptions(
            kinds=reading.parse_value("allowed-kinds", lambda text: AllowedKinds.parse(as_list(text))),
            cache_mode=reading.parse_value("cache-mode", lambda text: CacheMode(text) if text else None),
            attempts=reading.parse_value("attempts", _parse_positive),
            timeout=reading.parse_value("timeout", as_duration),
        ),
        source_map=reading.parse_value("source-map", _parse_source_map),
        cache_limits=CacheLimits(
            entries=reading.parse_value("cache-max-entries", int),
            size_bytes=reading.parse_value("cache-max-bytes", int),
            lifetime=reading.parse_value("cache-ttl", as_duration),
            failure_lifetime=reading.parse_value("cache-failure-ttl", as_duration),
        ),
        default_resolver=general.plain[DEFAULT_RESOLVER].strip(),
        finished_lifetime=reading.parse_value(
            "finished-ttl", lambda text: None if text.strip() == NEVER else as_duration(text)
        ),
        inline_bytes=reading.parse_value("inline-max-bytes", lambda text: min(int(text), MAX_CONTENT_BYTES)),
        errors=mistakes,
        ignored=tektons.ignored,
    )
    if reading.mistakes:
        mistakes[GENERAL] = tuple(dict.fromkeys(reading.mistakes))
    return config


class _SettingParser:
    """Parser of settings that collects all errors."""

    def __init__(self, settings: Mapping[str, str], mistakes: list[str]) -> None:
        self._settings = settings
        self.mistakes = mistakes

    def parse_value(self, key: str, read: Callable[[str], T]) -> T:
        """Parse a setting; use the default after an error, which makes all requests fail anyway."""
        try:
            return read(self._settings[key])
        except ValueError as error:
            self.mistakes.append(f"{key}: {error}")
            return read(GENERAL_SETTINGS[key].default)


def _list_sets(sets: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        f"{name}.{key}: expected a key without a set" for name, settings in sorted(sets.items()) for key in settings
    ]


def _parse_positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(f"expected a whole number of at least 1, found {text[:40]!r}")
    return number


def _parse_source_map(text: str) -> SourceMap:
    rules = []
    for line in text.splitlines():
        if not line.strip():
            continue
        before, arrow, after = (part.strip() for part in line.partition("=>"))
        if not (before and arrow and after):
            raise ValueError(f"expected from => to in each line, found {line.strip()[:120]!r}")
        rules.append((before, after))
    return SourceMap.parse(rules)

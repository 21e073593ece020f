"""How resolution is set up in a cluster: a ConfigMap for the whole and one for each resolver, read without a restart.

``konverge-resolution`` has what holds for all, ``konverge-resolver-<name>`` the settings of one. Each is taken as a
whole or not at all: with a mistake in it, the requests that it is about fail and name the key, and nothing else does.
Pure; who watches the ConfigMaps is `konverge_resolution.requests.namespace_watcher`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TypeVar

from konverge_resolution.content_cache import CacheLimits, CacheMode
from konverge_resolution.content_validation import AllowedKinds
from konverge_resolution.engine import EngineOptions
from konverge_resolution.errors import ResolutionError
from konverge_resolution.http_failures import CONNECTION_SETTINGS
from konverge_resolution.network import Proxy, TrustStore
from konverge_resolution.reasons import Reason
from konverge_resolution.requests.tekton_settings import SettingsTranslation, translate_settings
from konverge_resolution.resolved_content import MAX_CONTENT_BYTES
from konverge_resolution.resolver import Resolver, Setting
from konverge_resolution.resolver_registry import ResolverRegistry
from konverge_resolution.resolver_settings import as_duration, as_list, parse_settings
from konverge_resolution.source_map import SourceMap

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
"""The ConfigMap with what holds for all resolvers."""

DEFAULT_RESOLVER = "default-resolver"
"""The key of `GENERAL` that names the resolver of requests that name none."""

_RESOLVER = "konverge-resolver-"

NEVER = "never"

GENERAL_SETTINGS: Mapping[str, Setting] = {
    "timeout": Setting("How long a request may take from its creation", "duration", "1m"),
    "attempts": Setting("How often a remote is asked in all, when it may answer later", "integer", "3"),
    DEFAULT_RESOLVER: Setting("Who is asked when a request names nobody"),
    "disabled-resolvers": Setting("Resolvers that may not be used", "list"),
    "allowed-kinds": Setting(
        "Kinds that may be fetched, as Kind.group or *.group; all but Secrets and lists when empty", "list"
    ),
    "source-map": Setting("Addresses that stand for others, a line each: from => to"),
    **CONNECTION_SETTINGS,
    "cache-mode": Setting("auto, always or never for everybody; empty leaves it to who asks"),
    "cache-max-entries": Setting("How many answers are kept", "integer", "1000"),
    "cache-max-bytes": Setting("How many bytes of answers are kept", "integer", str(64 << 20)),
    "cache-ttl": Setting("How long answers are kept", "duration", "5m"),
    "cache-failure-ttl": Setting("How long failures are kept", "duration", "15s"),
    "finished-ttl": Setting("How long a finished request stays when nobody deletes it, or never", "text", "1h"),
    "inline-max-bytes": Setting(
        "Content larger than this goes into a ConfigMap, which whoever may read ConfigMaps can read",
        "integer",
        str(MAX_CONTENT_BYTES),
    ),
}
"""The settings of `GENERAL`, by key."""


def build_config_name(resolver: str) -> str:
    """The ConfigMap of a resolver."""
    return f"{_RESOLVER}{resolver}"


@dataclass(frozen=True, slots=True)
class ResolutionConfig:
    """How resolution is set up at a moment; made by `parse_config`.

    Args:
        registry: The resolvers of this process, as they are set up.
        options: What holds for all.
        source_map: Which addresses stand for others.
        cache_limits: How much is kept.
        default_resolver: Who is asked when a request names nobody; empty for nobody.
        finished_lifetime: How long a finished request stays; None for ever.
        inline_bytes: Content larger than this is kept apart from its request.
        errors: By ConfigMap, everything that is wrong with it.
        ignored: By ConfigMap of Tekton's, the keys that change nothing, and why.
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
        """Refuse every request while what holds for all cannot be read.

        Raises:
            ResolutionError: ``InvalidConfiguration``.
        """
        if GENERAL in self.errors:
            message = f"resolution is not set up correctly: ConfigMap {GENERAL}: {'; '.join(self.errors[GENERAL][:3])}"
            raise ResolutionError(Reason.INVALID_CONFIGURATION, message)


def parse_config(
    resolvers: Iterable[Resolver], data: Mapping[str, Mapping[str, str]], *, uses_tekton_config: bool = False
) -> ResolutionConfig:
    """Read the ConfigMaps.

    Args:
        resolvers: Those of this process.
        data: By name of the ConfigMap, its data; what is not there has the defaults.
        uses_tekton_config: Whether Tekton's own ConfigMaps count, below these.
    """
    listed = list(resolvers)
    known = {each.name: frozenset(each.settings) for each in listed}
    tektons = translate_settings(data, known) if uses_tekton_config else SettingsTranslation()
    mistakes: dict[str, tuple[str, ...]] = {}
    general, wrong = parse_settings({**tektons.general, **data.get(GENERAL, {})}, GENERAL_SETTINGS)
    reading = _SettingParser(general.plain, list(wrong) + _list_sets(general.sets))
    # What holds for the connections of all is a default of every resolver that makes some.
    connections = {key: general.plain[key] for key in CONNECTION_SETTINGS if general.plain[key]}
    configurations = {
        each.name: {
            **{key: value for key, value in connections.items() if key in each.settings},
            **tektons.settings.get(each.name, {}),
            **data.get(build_config_name(each.name), {}),
        }
        for each in listed
    }
    disabled = (*as_list(general.plain["disabled-resolvers"]), *tektons.disabled)
    registry = ResolverRegistry(
        replace(each, errors=(*each.errors, *tektons.refused.get(each.resolver.name, ())))
        for each in ResolverRegistry.of(listed, configurations, disabled=disabled)
    )
    for installed in registry:
        if installed.errors:
            mistakes[build_config_name(installed.resolver.name)] = installed.errors
    reading.parse_value("proxy", lambda text: Proxy.parse(text) if text.strip() else None)
    reading.parse_value("ca-certificates", TrustStore)
    found = ResolutionConfig(
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
    return found


class _SettingParser:
    """Reads settings and collects what is wrong with them."""

    def __init__(self, settings: Mapping[str, str], mistakes: list[str]) -> None:
        self._settings = settings
        self.mistakes = mistakes

    def parse_value(self, key: str, read: Callable[[str], T]) -> T:
        """What a setting says; where that cannot be read, its default: no request gets as far as that matters."""
        try:
            return read(self._settings[key])
        except ValueError as error:
            self.mistakes.append(f"{key}: {error}")
            return read(GENERAL_SETTINGS[key].default)


def _list_sets(sets: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [f"{name}.{key}: expected no set here" for name, settings in sorted(sets.items()) for key in settings]


def _parse_positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(f"expected a whole number from 1 on, found {text[:40]!r}")
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

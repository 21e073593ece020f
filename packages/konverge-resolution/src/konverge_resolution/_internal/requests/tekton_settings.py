"""Translation of Tekton's own ConfigMaps, so that a Tekton installation keeps its settings with konverge's resolvers.

They apply where Tekton's requests are served, with lower precedence than konverge's own ConfigMaps. Each key is kept,
renamed, ignored with a report, or refused. A key is refused where a request would otherwise fail, or succeed, for a
reason that no user sees. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from konverge._internal.kube.yaml_loader import load_yaml
from konverge_resolution._internal.resolver_settings import as_boolean

__all__ = ["CONFIG_MAPS", "IGNORED", "TEKTON_CONFIG_MAPS", "SettingsTranslation", "translate_settings"]

CONFIG_MAPS: Mapping[str, str] = {
    "bundles": "bundleresolver-config",
    "cluster": "cluster-resolver-config",
    "git": "git-resolver-config",
    "http": "http-resolver-config",
    "hub": "hubresolver-config",
}
"""Tekton's ConfigMaps by resolver."""

_FLAGS = "resolvers-feature-flags"
_CACHE = "resolver-cache-config"

TEKTON_CONFIG_MAPS = frozenset({*CONFIG_MAPS.values(), _FLAGS, _CACHE})
"""All of Tekton's ConfigMaps that are read."""

_ATTEMPTS = "retries depend on the failure; attempts of konverge-resolution limits their number"
_ENTRY = "one lifetime applies to all cached definitions: cache-ttl of konverge-resolution"
_UNCACHED = "objects of the cluster are never cached"
_WITH_NAME = "it belongs to api-token-secret-name"

IGNORED: Mapping[str, Mapping[str, str]] = {
    "bundles": {"backoff-*": _ATTEMPTS, "ttl": _ENTRY},
    "cluster": {"default-cache-mode": _UNCACHED, "ttl": _UNCACHED},
    "git": {
        "api-token-secret-key": _WITH_NAME,
        "api-token-secret-namespace": _WITH_NAME,
        "backoff-*": _ATTEMPTS,
        "ttl": _ENTRY,
    },
    "http": {},
    "hub": {"ttl": _ENTRY},
}
"""Keys without effect by resolver, with the explanations."""

_TOKEN = "api-token-secret-name: the operator reads its token from a file: mount the Secret, and set "
_TOKEN += "api-token-file in ConfigMap konverge-resolver-git to its path"
_PRIVATE = (
    "block-private-ips: a ResolutionPolicy (spec.privateNetworks) permits private networks, for the namespaces that it "
)
_PRIVATE += "names"
_LISTS = frozenset({"artifact-hub-urls", "tekton-hub-urls"})
_OF_CACHE = {"max-size": "cache-max-entries", "ttl": "cache-ttl"}


@dataclass(slots=True)
class SettingsTranslation:
    """Settings that were translated from Tekton's ConfigMaps.

    Args:
        settings: Settings by resolver, with konverge's keys.
        general: Settings for all resolvers.
        disabled: The disabled resolvers.
        refused: By resolver, the settings that must be changed before its use.
        ignored: By ConfigMap, keys without effect, with the explanations.
    """

    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    general: dict[str, str] = field(default_factory=dict)
    disabled: list[str] = field(default_factory=list)
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: dict[str, tuple[str, ...]] = field(default_factory=dict)


def translate_settings(
    data: Mapping[str, Mapping[str, str]], known: Mapping[str, frozenset[str]]
) -> SettingsTranslation:
    """Translate Tekton's ConfigMaps.

    Args:
        data: The data by name of the ConfigMap.
        known: The keys of settings by resolver.
    """
    translation = SettingsTranslation()
    for resolver, keys in known.items():
        name = CONFIG_MAPS.get(resolver, "")
        own = data.get(f"konverge-resolver-{resolver}", {})
        settings: dict[str, str] = {}
        refused: list[str] = []
        ignored: list[str] = []
        for key, value in sorted(data.get(name, {}).items()):
            plain = key.rpartition(".")[2]
            if key.startswith("_") or not (value.strip() or plain in keys):
                continue
            if plain in keys:
                settings[key] = _split_list(value) if plain in _LISTS else value
            elif plain == "api-token-secret-name" and "api-token-file" not in own:
                refused.append(_TOKEN)
            elif plain == "block-private-ips":
                refused += [] if _is_on(value) else [_PRIVATE]
            else:
                ignored.append(f"{key[:80]}: {_explain_ignored(resolver, plain)}")
        translation.settings[resolver] = settings
        if refused:
            translation.refused[resolver] = tuple(dict.fromkeys(refused))
        if ignored:
            translation.ignored[name] = tuple(ignored)
    for key, value in data.get(_CACHE, {}).items():
        if key in _OF_CACHE and value.strip():
            translation.general[_OF_CACHE[key]] = value
    flags = data.get(_FLAGS, {})
    translation.disabled = [name for name in CONFIG_MAPS if not _is_on(flags.get(f"enable-{name}-resolver", "true"))]
    return translation


def _explain_ignored(resolver: str, key: str) -> str:
    reasons = IGNORED.get(resolver, {})
    pattern = "backoff-*" if key.startswith("backoff-") else key
    return reasons.get(pattern, "api-token-file is used" if key == "api-token-secret-name" else "no such setting")


def _split_list(value: str) -> str:
    """Convert a YAML list to one item per line; return any other text unchanged."""
    try:
        listed = load_yaml(value)
    except yaml.YAMLError:
        return value
    is_list = isinstance(listed, list) and all(isinstance(item, str) for item in listed)
    return "\n".join(listed) if is_list else value


def _is_on(value: str) -> bool:
    """Parse a flag like Tekton: any text that is not a word for off is on."""
    try:
        return as_boolean(value)
    except ValueError:
        return True

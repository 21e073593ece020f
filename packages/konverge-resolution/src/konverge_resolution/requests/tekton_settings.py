"""Tekton's own ConfigMaps as settings of ours, so that a Tekton installation keeps them when its resolvers change.

They count where Tekton's requests are served, below what konverge's own ConfigMaps say. Each key is taken over, put in
our words, passed over and told of, or refused: the last where a request would otherwise fail, or succeed, for a
reason that nobody sees. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from konverge.kube.yaml_loader import load_yaml
from konverge_resolution.resolver_settings import as_boolean

__all__ = ["CONFIG_MAPS", "IGNORED", "TEKTON_CONFIG_MAPS", "SettingsTranslation", "translate_settings"]

CONFIG_MAPS: Mapping[str, str] = {
    "bundles": "bundleresolver-config",
    "cluster": "cluster-resolver-config",
    "git": "git-resolver-config",
    "http": "http-resolver-config",
    "hub": "hubresolver-config",
}
"""By resolver, the ConfigMap of its settings."""

_FLAGS = "resolvers-feature-flags"
_CACHE = "resolver-cache-config"

TEKTON_CONFIG_MAPS = frozenset({*CONFIG_MAPS.values(), _FLAGS, _CACHE})
"""All that are read."""

_ATTEMPTS = "when a remote is asked again depends on how it failed; attempts of konverge-resolution says how often"
_ENTRY = "how long answers are kept is one setting for all, cache-ttl of konverge-resolution"
_UNCACHED = "what is in the cluster is never kept"
_WITH_NAME = "goes with api-token-secret-name"

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
"""By resolver, the keys that change nothing here, and why."""

_TOKEN = "api-token-secret-name: the operator's token is read from a file: mount the Secret, and name the file with "
_TOKEN += "api-token-file in ConfigMap konverge-resolver-git"
_PRIVATE = "block-private-ips: private networks are opened by a ResolutionPolicy (spec.privateNetworks), for whom it "
_PRIVATE += "names"
_LISTS = frozenset({"artifact-hub-urls", "tekton-hub-urls"})
_OF_CACHE = {"max-size": "cache-max-entries", "ttl": "cache-ttl"}


@dataclass(slots=True)
class SettingsTranslation:
    """What Tekton's ConfigMaps come to.

    Args:
        settings: By resolver, settings in our words.
        general: Settings for all of them.
        disabled: Resolvers that are switched off.
        refused: By resolver, what has to be put in another way before it can be used.
        ignored: By ConfigMap, keys that change nothing here, and why.
    """

    settings: dict[str, dict[str, str]] = field(default_factory=dict)
    general: dict[str, str] = field(default_factory=dict)
    disabled: list[str] = field(default_factory=list)
    refused: dict[str, tuple[str, ...]] = field(default_factory=dict)
    ignored: dict[str, tuple[str, ...]] = field(default_factory=dict)


def translate_settings(
    data: Mapping[str, Mapping[str, str]], known: Mapping[str, frozenset[str]]
) -> SettingsTranslation:
    """Put Tekton's ConfigMaps in our words.

    Args:
        data: By name of the ConfigMap, its data.
        known: By resolver, the keys of its settings.
    """
    found = SettingsTranslation()
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
        found.settings[resolver] = settings
        if refused:
            found.refused[resolver] = tuple(dict.fromkeys(refused))
        if ignored:
            found.ignored[name] = tuple(ignored)
    for key, value in data.get(_CACHE, {}).items():
        if key in _OF_CACHE and value.strip():
            found.general[_OF_CACHE[key]] = value
    flags = data.get(_FLAGS, {})
    found.disabled = [name for name in CONFIG_MAPS if not _is_on(flags.get(f"enable-{name}-resolver", "true"))]
    return found


def _explain_ignored(resolver: str, key: str) -> str:
    reasons = IGNORED.get(resolver, {})
    pattern = "backoff-*" if key.startswith("backoff-") else key
    return reasons.get(pattern, "api-token-file is used" if key == "api-token-secret-name" else "no such setting")


def _split_list(value: str) -> str:
    """A list in YAML, one in each line; what is none is left to be judged as it is."""
    try:
        listed = load_yaml(value)
    except yaml.YAMLError:
        return value
    is_list = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
    return "\n".join(listed) if is_list else value


def _is_on(value: str) -> bool:
    """As Tekton reads its flags: what is no word for off is on."""
    try:
        return as_boolean(value)
    except ValueError:
        return True

"""Tekton's own ConfigMaps, as its documentation shows them, read as settings of ours."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_resolution._internal.requests.resolution_config import ResolutionConfig, parse_config
from konverge_resolution._internal.requests.tekton_settings import CONFIG_MAPS
from konverge_resolution._internal.resolvers import load_resolvers

RESOLVERS = load_resolvers(["bundles", "cluster", "git", "http", "hub"])

SHIPPED: dict[str, dict[str, str]] = {
    "git-resolver-config": {
        "_example": "# anything",
        "fetch-timeout": "1m",
        "default-url": "https://github.com/tektoncd/catalog.git",
        "default-revision": "main",
        "scm-type": "github",
        "server-url": "",
        "api-token-secret-name": "",
        "api-token-secret-key": "",
        "api-token-secret-namespace": "default",
        "default-org": "",
        "backoff-duration": "2s",
        "backoff-factor": "2.0",
        "backoff-jitter": "0.1",
        "backoff-steps": "2",
        "backoff-cap": "10s",
        "default-cache-mode": "auto",
        "ttl": "5m",
        "gitlab.scm-type": "gitlab",
        "gitlab.server-url": "https://gitlab.example.com",
    },
    "bundleresolver-config": {"default-service-account": "default", "default-kind": "task", "backoff-cap": "10s"},
    "hubresolver-config": {
        "default-tekton-hub-catalog": "Tekton",
        "default-artifact-hub-task-catalog": "tekton-catalog-tasks",
        "default-artifact-hub-pipeline-catalog": "tekton-catalog-pipelines",
        "default-kind": "task",
        "default-type": "artifact",
        "artifact-hub-urls": "- https://hub.example.com\n- https://artifacthub.io\n",
    },
    "http-resolver-config": {"fetch-timeout": "1m", "block-private-ips": "true"},
    "cluster-resolver-config": {
        "default-kind": "task",
        "default-namespace": "",
        "allowed-namespaces": "",
        "blocked-namespaces": "",
        "ttl": "5m",
    },
    "resolver-cache-config": {"max-size": "50", "ttl": "10m"},
    "resolvers-feature-flags": {f"enable-{name}-resolver": "true" for name in CONFIG_MAPS},
}


def read(**changed: dict[str, str]) -> ResolutionConfig:
    """The configuration with ConfigMaps changed; underscores in their names stand for dashes."""
    data: dict[str, Any] = {**SHIPPED, **{name.replace("_", "-"): more for name, more in changed.items()}}
    return parse_config(RESOLVERS, data, uses_tekton_config=True)


def get_chosen_setting(found: ResolutionConfig, resolver: str, config_key: str = "") -> Any:
    return found.registry.get(resolver).settings.select(config_key)


def test_what_tekton_ships_is_no_mistake() -> None:
    found = read()

    assert found.errors == {}
    assert len(found.registry.names) == 5


def test_keys_of_the_same_meaning_count_and_those_with_another_form_too() -> None:
    found = read()

    assert get_chosen_setting(found, "git")["default-url"] == "https://github.com/tektoncd/catalog.git"
    assert get_chosen_setting(found, "git", "gitlab")["server-url"] == "https://gitlab.example.com"
    assert get_chosen_setting(found, "hub")["artifact-hub-urls"].split() == [
        "https://hub.example.com",
        "https://artifacthub.io",
    ]
    assert (found.cache_limits.entries, found.cache_limits.lifetime.total_seconds()) == (50, 600)


def test_keys_that_change_nothing_are_told_with_the_reason() -> None:
    ignored = read().ignored

    assert {each.partition(":")[0] for each in ignored["git-resolver-config"]} == {
        "api-token-secret-namespace",
        "backoff-cap",
        "backoff-duration",
        "backoff-factor",
        "backoff-jitter",
        "backoff-steps",
        "ttl",
    }
    assert "attempts of konverge-resolution" in " ".join(ignored["bundleresolver-config"])
    assert ignored["cluster-resolver-config"] == ("ttl: objects of the cluster are never cached",)


@pytest.mark.parametrize(
    ("resolver", "data", "told"),
    [
        ("git", {"api-token-secret-name": "token"}, "api-token-file"),
        ("git", {"gitlab.api-token-secret-name": "token"}, "api-token-file"),
        ("http", {"block-private-ips": "no"}, "ResolutionPolicy"),
        ("git", {"fetch-timeout": "banana"}, "fetch-timeout: expected a duration"),
    ],
)
def test_what_would_change_who_is_let_in_is_refused_with_what_to_do(
    resolver: str, data: dict[str, str], told: str
) -> None:
    found = read(**{CONFIG_MAPS[resolver].replace("-", "_"): data})

    (mistake,) = found.errors[f"konverge-resolver-{resolver}"]
    assert told in mistake
    assert list(found.errors) == [f"konverge-resolver-{resolver}"]


def test_ones_own_configmaps_have_the_last_word() -> None:
    found = read(
        git_resolver_config={"api-token-secret-name": "token", "default-revision": "master"},
        konverge_resolver_git={"api-token-file": "/token", "default-revision": "trunk"},
        konverge_resolution={"cache-ttl": "1m"},
    )

    assert found.errors == {}
    assert get_chosen_setting(found, "git")["default-revision"] == "trunk"
    assert found.cache_limits.lifetime.total_seconds() == 60


def test_a_flag_switches_a_resolver_off() -> None:
    found = read(resolvers_feature_flags={"enable-hub-resolver": "false", "enable-git-resolver": "banana"})

    assert found.registry.names == ("bundles", "cluster", "git", "http")


def test_tektons_configmaps_count_only_where_its_requests_are_served() -> None:
    assert parse_config(RESOLVERS, SHIPPED).cache_limits.entries == 1000

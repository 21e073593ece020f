"""Configuration, policies and announcements, read without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.operator.permission_derivation import RuntimeFeatures, derive_permissions
from konverge.kube import Object
from konverge_resolution import MAX_CONTENT_BYTES, Reason, Reference, ResolutionError, build_request_name
from konverge_resolution._internal.content_cache import CacheMode
from konverge_resolution._internal.policy import Policy, SignatureMode
from konverge_resolution._internal.requests.konverge_requests import KonvergeRequestFormat
from konverge_resolution._internal.requests.policy_parsing import InvalidPolicy, parse_policies, parse_policy
from konverge_resolution._internal.requests.resolution_config import parse_config
from konverge_resolution._internal.requests.resolver_announcements import AnnouncementTracker, build_announcement
from konverge_resolution._internal.resolvers.bundles import BundlesResolver
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution._internal.resolvers.hub import HubResolver
from konverge_resolution.requests import build_request, build_resolution_operator
from tests.client.certificates import CertificateAuthority
from tests.resolution.fake_resolver import FakeResolver

KEY = generate_private_key(SECP256R1()).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def general(**data: str) -> dict[str, dict[str, str]]:
    return {"konverge-resolution": {key.replace("_", "-"): value for key, value in data.items()}}


def test_without_configmaps_everything_has_its_default() -> None:
    found = parse_config([FakeResolver()], {})
    assert found.errors == {}
    assert found.options.timeout == timedelta(minutes=1)
    assert found.finished_lifetime == timedelta(hours=1)
    assert found.inline_bytes == MAX_CONTENT_BYTES
    assert found.registry.names == ("shelf",)


def test_what_holds_for_all_is_read() -> None:
    found = parse_config(
        [FakeResolver(), FakeResolver(name="attic")],
        general(
            timeout="30s",
            cache_mode="never",
            allowed_kinds="Task.tekton.dev, *.demo.dev",
            disabled_resolvers="attic",
            source_map="https://a.example => https://b.example/a\n",
            cache_max_bytes="1000",
            finished_ttl="never",
        ),
    )
    assert found.errors == {}
    assert (found.options.timeout, found.options.cache_mode) == (timedelta(seconds=30), CacheMode.NEVER)
    assert found.options.kinds.rules == ("Task.tekton.dev", "*.demo.dev")
    assert found.registry.names == ("shelf",)
    assert found.source_map.rewrite({"url": "https://a.example/x"})[0] == {"url": "https://b.example/a/x"}
    assert (found.cache_limits.size_bytes, found.finished_lifetime) == (1000, None)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("timeout", "banana", "timeout: expected a duration"),
        ("timeout", "0s", "timeout: expected a duration longer"),
        ("timeout", "99999999h", "timeout: expected a duration of at most 87600h"),
        ("finished-ttl", "99999999h", "finished-ttl: expected a duration of at most 87600h"),
        ("timeuot", "1s", "timeuot: no such setting; did you mean 'timeout'?"),
        ("attempts", "0", "attempts: expected a whole number of at least 1"),
        ("cache-mode", "sometimes", "cache-mode: "),
        ("allowed-kinds", "task", "allowed-kinds: expected Kind.group"),
        ("source-map", "https://a.example", "source-map: expected from => to"),
        ("source-map", "https://a.example => nowhere/../x", "source-map: expected an address"),
        ("finished-ttl", "soon", "finished-ttl: "),
        ("inline-max-bytes", "-1", "inline-max-bytes: expected a whole number"),
        ("set.timeout", "1s", "set.timeout: expected a key without a set"),
    ],
)
def test_every_mistake_names_its_key_and_refuses_every_request(key: str, value: str, told: str) -> None:
    found = parse_config([FakeResolver()], {"konverge-resolution": {key: value}})
    with pytest.raises(ResolutionError, match="ConfigMap konverge-resolution") as caught:
        found.check()
    assert told in caught.value.message
    assert caught.value.reason is Reason.INVALID_CONFIGURATION


def test_a_mistake_of_one_resolver_is_its_own() -> None:
    found = parse_config(
        [FakeResolver(), FakeResolver(name="attic")], {"konverge-resolver-shelf": {"fetch-timeout": "banana"}}
    )
    found.check()
    assert list(found.errors) == ["konverge-resolver-shelf"]
    assert found.registry.get("attic").errors == ()


def policy(name: str = "p", **spec: Any) -> Object:
    return {
        "apiVersion": "resolution.konverge.dev/v1alpha1",
        "kind": "ResolutionPolicy",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_policy_becomes_what_the_engine_decides_by() -> None:
    found = parse_policy(
        policy(
            resolvers=["git"],
            namespaces=["team-*"],
            sources=["https://a.example/team"],
            parameters={"revision": ["main"]},
            requiresDigest=True,
            signature={"mode": "warn", "keys": [KEY.decode()]},
            privateNetworks=["10.0.0.0/8"],
            public=True,
        )
    )
    assert isinstance(found, Policy)
    assert found.applies_to("git", "team-a")
    assert not found.applies_to("http", "team-a")
    assert found.allows("https://a.example/team/x", {"revision": "main"})
    assert not found.allows("https://a.example/team-b", {"revision": "main"})
    assert (found.requires_digest, found.is_public) == (True, True)
    assert found.signature is not None
    assert found.signature.mode is SignatureMode.WARN
    assert [str(network) for network in found.private_networks] == ["10.0.0.0/8"]


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"sources": ["https://*/x"]}, "spec.sources[0]"),
        ({"parameters": {"revision": []}}, "spec.parameters.revision: expected at least one value, found none"),
        ({"sources": ["https://a.example/(.*)", "a.example"]}, "spec.sources[1]"),
        (
            {"privateNetworks": ["10.0.0.1/8"]},
            "[0]: expected a network such as 10.0.0.0/8, found '10.0.0.1/8'; did you mean 10.0.0.0/8?",
        ),
        ({"signature": {"keys": ["no key"]}}, "spec.signature.keys[0]: expected a public key"),
        ({"signature": {}}, "spec.signature: expected at least one key or identity"),
        ({"requiresDigest": "yes"}, "requires"),
    ],
)
def test_a_policy_that_cannot_be_read_refuses_what_it_may_concern_and_says_why(spec: dict[str, Any], told: str) -> None:
    found = parse_policy(policy(resolvers=["git"], namespaces=["team-*"], **spec))
    assert isinstance(found, InvalidPolicy)
    assert told in " ".join(found.errors)
    policies = parse_policies([policy(resolvers=["git"], namespaces=["team-*"], **spec), policy("good")])
    policies.check("http", "team-a")
    policies.check("git", "other")
    with pytest.raises(ResolutionError, match="ResolutionPolicy p is invalid and may forbid this"):
        policies.check("git", "team-a")


@pytest.mark.parametrize("spec", [None, [], {"resolvers": "git"}, {"resolvers": [1]}])
def test_a_policy_of_which_nothing_can_be_read_concerns_everybody(spec: Any) -> None:
    with pytest.raises(ResolutionError, match="is invalid and may forbid"):
        parse_policies([{**policy(), "spec": spec}]).check("git", "team-a")


def test_a_policy_with_an_unknown_resolver_concerns_the_requests_of_its_namespaces_to_all() -> None:
    known = {"git", "hub"}
    obj = policy(resolvers=["git", "hbu"], namespaces=["team-*"])
    found = parse_policy(obj, known)
    assert isinstance(found, InvalidPolicy)
    message = "spec.resolvers: expected names of resolvers, found 'hbu'; available: git, hub; did you mean 'hub'?"
    assert found.errors == (message,)
    policies = parse_policies([obj], known)
    for resolver in ("git", "hub", "other"):
        with pytest.raises(ResolutionError, match="may forbid this: spec.resolvers"):
            policies.check(resolver, "team-a")
    policies.check("git", "web")
    parse_policies([policy(resolvers=["git", "hub"])], known).check("git", "team-a")


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_announcement_counts_for_a_minute_after_it_was_seen() -> None:
    lease = ObjectMeta.of(build_announcement("catalog", "system", ["git", "hub"], NOW))
    seen = AnnouncementTracker()
    seen.on_lease_change(None, lease, 100.0)
    assert seen.list_live(159.0) == {"git", "hub"}
    assert seen.list_live(160.0) == frozenset()
    seen.on_lease_change(lease, lease, 170.0)
    assert seen.list_live(200.0) == {"git", "hub"}
    seen.on_lease_change(lease, None, 201.0)
    assert seen.list_live(202.0) == frozenset()


OWNER: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "owner", "namespace": "web", "uid": "1234"},
}


def test_asking_twice_is_one_request_and_every_kind_of_value_comes_back() -> None:
    one = Reference("git", {"url": "a", "list": ["b"], "map": {"c": "d"}})
    same = Reference("git", {"map": {"c": "d"}, "list": ["b"], "url": "a"})
    request = build_request(one, OWNER)
    assert request == build_request(same, OWNER)
    assert request["metadata"]["name"] == build_request_name(one, namespace="web", owner_uid="1234")
    assert request["metadata"]["ownerReferences"][0]["uid"] == "1234"
    asked = KonvergeRequestFormat().parse_spec(request, "")
    assert asked.reference == one
    assert asked.user == "system:serviceaccount:web:default"


def test_parameters_that_could_be_read_in_two_ways_have_two_names() -> None:
    names = [
        build_request(Reference("git", params), OWNER)["metadata"]["name"]
        for params in ({"a": "b", "c": "d"}, {"a": "bcd"})
    ]
    assert names[0] != names[1]


def resources_of(*resolvers: Any) -> set[str]:
    """What an operator for these may use in the namespaces of requests."""
    permissions = derive_permissions(build_resolution_operator(resolvers).registered.declaration, RuntimeFeatures())
    return {resource for rule in (*permissions.rules, *permissions.cluster_rules) for resource in rule.resources}


def test_a_resolver_that_is_not_there_leaves_none_of_its_rules() -> None:
    whole = resources_of(ClusterResolver(), GitResolver(), BundlesResolver(), HubResolver(), HttpResolver())

    assert {"secrets", "serviceaccounts", "subjectaccessreviews"} <= whole
    assert whole - resources_of(GitResolver(), HttpResolver()) == {"serviceaccounts", "subjectaccessreviews"}
    assert not {"secrets", "serviceaccounts", "subjectaccessreviews"} & resources_of(HubResolver())
    assert not {"secrets", "serviceaccounts"} & resources_of(ClusterResolver())


def test_the_connections_of_all_are_those_of_each_resolver_that_says_nothing_else() -> None:
    data = general(proxy="http://a.example:1", no_proxy="b.example")
    data["konverge-resolver-git"] = {"proxy": "http://c.example:2"}
    found = parse_config([GitResolver(), HttpResolver(), ClusterResolver()], data)

    assert found.errors == {}
    chosen = {each.resolver.name: each.settings.select() for each in found.registry}
    assert (chosen["git"]["proxy"], chosen["http"]["proxy"]) == ("http://c.example:2", "http://a.example:1")
    assert chosen["git"]["no-proxy"] == "b.example"
    assert "proxy" not in chosen["cluster"]


def test_certificates_of_all_of_a_resolver_and_of_a_set_are_trusted_together() -> None:
    all_, own, inner = (CertificateAuthority().certificate.decode() for _ in range(3))
    data = {
        **general(ca_certificates=all_, no_proxy="a.example"),
        "konverge-resolver-http": {"ca-certificates": own, "no-proxy": "b.example", "inner.ca-certificates": inner},
    }
    settings = parse_config([HttpResolver()], data).registry.get("http").settings

    def list_trusted(config_key: str = "") -> list[bool]:
        trusted = settings.select(config_key)["ca-certificates"]
        return [each.strip() in trusted for each in (all_, own, inner)]

    assert list_trusted() == [True, True, False]
    assert list_trusted("inner") == [True, True, True]
    assert settings.select()["no-proxy"] == "b.example"


@pytest.mark.parametrize("data", [general(proxy="me:hunter2@a"), general(ca_certificates="nothing")])
def test_connections_that_cannot_be_made_so_are_a_mistake_that_is_not_shown(data: dict[str, dict[str, str]]) -> None:
    (mistake,) = parse_config([FakeResolver()], data).errors["konverge-resolution"]

    assert mistake.startswith((*data["konverge-resolution"],))
    assert "hunter2" not in mistake


def test_a_parameter_of_two_kinds_is_a_mistake() -> None:
    request = build_request(Reference("git", {"a": "b"}), OWNER)
    request["spec"]["listParams"] = {"a": ["c"]}
    mistake = KonvergeRequestFormat().parse_spec(request, "").error
    assert mistake is not None
    assert "parameter 'a': expected once" in mistake.message


def test_secrets_may_be_got_by_name_and_never_listed_and_only_who_keeps_the_lifecycle_deletes() -> None:
    whole = derive_permissions(
        build_resolution_operator([ClusterResolver(), FakeResolver()]).registered.declaration, RuntimeFeatures()
    )
    part = derive_permissions(
        build_resolution_operator([FakeResolver()], name="part", keeps_lifecycle=False).registered.declaration,
        RuntimeFeatures(),
    )
    for permissions in (whole, part):
        verbs = {verb for rule in permissions.rules if "secrets" in rule.resources for verb in rule.verbs}
        assert verbs == {"get"}
        everywhere = {verb for rule in permissions.rules if "configmaps" in rule.resources for verb in rule.verbs}
        assert everywhere == {"create"}
        assert permissions.gaps == ()

    def verbs_on_requests(permissions: Any) -> set[str]:
        return {verb for rule in permissions.rules if "resolutionrequests" in rule.resources for verb in rule.verbs}

    assert verbs_on_requests(whole) - verbs_on_requests(part) == {"delete"}
    reviews = [rule for rule in whole.cluster_rules if "subjectaccessreviews" in rule.resources]
    assert reviews
    assert not [rule for rule in part.cluster_rules if "subjectaccessreviews" in rule.resources]

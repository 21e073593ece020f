"""Values of parameters in policies: every spelling of a value is that value, and none escapes the stricter policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge_resolution import Reason, ResolutionError, Resolver
from konverge_resolution._internal.parameter_spellings import SpellingResolver
from konverge_resolution._internal.policy import Policy, PolicyDecision, RequestPolicies
from konverge_resolution._internal.resolvers import load_resolvers
from konverge_resolution._internal.resolvers.disk import DiskResolver

RESOLVERS = {resolver.name: resolver for resolver in (*load_resolvers(), DiskResolver(Path()))}
SETTINGS = {
    "git": {"default-revision": "main", "git-user": "git", "allow-ssh": "true"},
    "hub": {"default-type": "artifact", "default-kind": "task", "default-artifact-hub-task-catalog": "tekton"},
    "bundles": {"default-kind": "task"},
}
PARAMS = {
    "git": {"url": "https://git.example.com/team/boxes", "pathInRepo": "box.yaml"},
    "bundles": {"bundle": "registry.example.com/team/boxes:1", "name": "a"},
    "cluster": {"kind": "task", "name": "a", "namespace": "catalog"},
    "http": {"url": "https://files.example.com/box.yaml"},
    "hub": {"name": "a", "version": "0.7"},
    "disk": {"path": "box.yaml"},
}
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def decide(resolver: str, name: str, value: str, *policies: Policy) -> PolicyDecision:
    found: Resolver = RESOLVERS[resolver]
    settings = {key: setting.default for key, setting in found.settings.items()} | SETTINGS.get(resolver, {})
    params = found.validate({**PARAMS[resolver], name: value}, settings)
    assert isinstance(found, SpellingResolver)
    uri = found.source_uri(params, settings)
    return RequestPolicies(policies, resolver, "web", uri, params, found.spell_parameter).admit()


SAME = [
    ("git", "revision", COMMIT.upper(), COMMIT),
    ("git", "revision", COMMIT, COMMIT.upper()),
    ("git", "url", "https://Git.example.com:443/team/boxes", "https://git.example.com/team/boxes.git"),
    ("git", "url", "https://git.example.com/*", "https://GIT.example.com:443/team/boxes"),
    ("git", "url", "git@git.example.com:team/boxes.git", "git@git.example.com:team/boxes"),
    ("git", "pathInRepo", "./team//box.yaml", "/team/box.yaml"),
    ("bundles", "kind", "Task", "TASK"),
    ("bundles", "bundle", "boxes", "docker.io/library/boxes:latest"),
    ("bundles", "bundle", "oci://Registry.example.com:443/a:1", "registry.example.com/a:1"),
    ("cluster", "kind", "Task", "task"),
    ("http", "url", "https://Files.example.com:443/a.yaml", "https://files.example.com/a.yaml"),
    ("hub", "kind", "Task", "task"),
    ("hub", "version", "v0.7", "0.7.0"),
    ("hub", "url", "https://Hub.example.com/", "https://hub.example.com"),
    ("disk", "path", "./a//b.yaml", "a/b.yaml"),
]


@pytest.mark.parametrize(("resolver", "name", "pattern", "value"), SAME)
def test_a_value_is_permitted_in_every_spelling_and_its_requirements_apply(
    resolver: str, name: str, pattern: str, value: str
) -> None:
    strict = Policy("strict", parameters={name: (pattern,)}, requires_digest=True)
    assert decide(resolver, name, value, strict).digest_required_by == ("strict",)
    assert decide(resolver, name, value, strict, Policy("open")).digest_required_by == ("strict",)


MAYBE = [
    ("git", "revision", "main", "refs/heads/main"),
    ("git", "revision", "refs/heads/main", "main"),
    ("git", "revision", "refs/tags/*", "v1.0"),
    ("git", "revision", "v1.*", "refs/tags/v1.0"),
    ("git", "revision", "main", "HEAD"),
    ("git", "revision", "main", "Main"),
    ("git", "revision", "main", COMMIT),
    ("git", "revision", "main", COMMIT[:10]),
    ("git", "revision", "v1.0", "^1.0"),
    ("git", "pathInRepo", "secure/box.yaml", "Secure/box.yaml"),
    ("bundles", "bundle", "registry.example.com/a:1", f"registry.example.com/a@sha256:{'a' * 64}"),
    ("bundles", "bundle", f"registry.example.com/a@sha256:{'a' * 64}", "registry.example.com/a:1"),
    ("cluster", "kind", "task", "tasks"),
    ("cluster", "kind", "ingress", "ingresses"),
    ("cluster", "kind", "Policies", "policy"),
    ("http", "url", "https://files.example.com/a.yaml", "https://files.example.com/%61.yaml?x=1"),
    ("hub", "version", "0.7.0", "^0.7"),
]


@pytest.mark.parametrize(("resolver", "name", "pattern", "value"), MAYBE)
def test_a_value_that_may_be_a_named_one_is_not_permitted_but_has_to_meet_its_requirements(
    resolver: str, name: str, pattern: str, value: str
) -> None:
    strict = Policy("strict", parameters={name: (pattern,)}, requires_digest=True)
    with pytest.raises(ResolutionError, match="it allows other values") as caught:
        decide(resolver, name, value, strict)
    assert caught.value.reason is Reason.DENIED
    assert decide(resolver, name, value, strict, Policy("open")).digest_required_by == ("strict",)


OTHERS = [
    ("git", "revision", "main", "release"),
    ("git", "revision", "refs/tags/*", "refs/heads/v1.0"),
    ("git", "revision", "v1.*", "v10.0"),
    ("git", "url", "https://git.example.com/team/boxes", "https://git.example.com/team/boxes-2"),
    ("bundles", "bundle", "registry.example.com/a:1", f"registry.example.com/b@sha256:{'a' * 64}"),
    ("bundles", "bundle", "registry.example.com/a:1", "registry.example.com/a:2"),
    ("cluster", "kind", "task", "pipeline"),
    ("hub", "version", "0.7", "0.8"),
]


@pytest.mark.parametrize(("resolver", "name", "pattern", "value"), OTHERS)
def test_another_value_is_neither(resolver: str, name: str, pattern: str, value: str) -> None:
    strict = Policy("strict", parameters={name: (pattern,)}, requires_digest=True)
    assert decide(resolver, name, value, strict, Policy("open")).digest_required_by == ()


def test_a_missing_version_of_an_api_may_be_any() -> None:
    strict = Policy("strict", parameters={"apiVersion": ("tekton.dev/v1",)}, requires_digest=True)
    assert decide("cluster", "kind", "task", strict, Policy("open")).digest_required_by == ("strict",)

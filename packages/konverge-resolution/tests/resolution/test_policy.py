"""Policies: what they name, and what they ask for."""

from __future__ import annotations

from contextlib import suppress
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge_resolution import Reason, ResolutionError
from konverge_resolution._internal.policy import Policy, SignatureRule, admit, parse_networks
from konverge_resolution._internal.source_prefix import SourcePrefix, canonicalize_source

GOOD = SourcePrefix.parse("https://good.example.com/team")


def covers(prefix: str, uri: str) -> bool:
    return SourcePrefix.parse(prefix).matches(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "https://good.example.com/team",
        "https://good.example.com/team/",
        "https://good.example.com:443/team/boxes",
        "https://GOOD.example.com/team/a/b",
        "https://good.example.com./team",
        "https://good.example.com//team/a",
        "https://good.example.com/%74eam/a",
        "https://good.example.com/team/a?token=x#y",
    ],
)
def test_what_begins_with_the_prefix_is_covered(uri: str) -> None:
    assert GOOD.matches(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "https://good.example.com/team-evil",
        "https://good.example.com.evil.example/team",
        "https://evil.example/?https://good.example.com/team",
        "https://evil.example/#https://good.example.com/team",
        "https://good.example.com@evil.example/team",
        "https://user:secret@good.example.com/team",
        "http://good.example.com/team",
        "git+https://good.example.com/team",
        "https://good.example.com:8443/team",
        "https://good.example.com/team/../other",
        "https://good.example.com/team/%2e%2e/other",
        "https://good.example.com/team%2fother",
        "https://good.example.com/team/..%5c..%5cother",
        "https://good.example.com/team/..;/other",
        "https://good.example.com/team/%2e%2e%3Bx=1/other",
        "https://good.example.com/other/team",
        "https://good.example.com/\\team",
        "https://good.example.com/team/%00",
        "https://good.example.com/team\n",
        "good.example.com/team",
        "",
    ],
)
def test_nothing_else_is(uri: str) -> None:
    assert not GOOD.matches(uri)


SPELLINGS = {
    "git+https://git.example.com/team/boxes": [
        "git+https://git.example.com/team/boxes.git",
        "git+https://GIT.example.com./team/boxes.git/",
        "git+https://git.example.com:443//team/%62oxes",
        "GIT+HTTPS://git.example.com/team/boxes.git.git",
    ],
    "git+ssh://git.example.com/team/boxes": ["git+ssh://git.example.com:22/team/boxes.git"],
    "oci://docker.io/library/nginx": [
        "oci://index.docker.io/library/nginx",
        "oci://registry-1.docker.io:443/library/nginx/",
    ],
    "https://a.example/%25%20b%2B": ["https://a.example/%25%20b+", "HTTPS://A.example:443/%25%20b%2b"],
    "http://[::1]:8080/a.git": ["http://[::1]:8080/a.git/"],
    "cluster://catalog/task/build": ["cluster://catalog/Task/build"],
}
"""By canonical form, other spellings."""


@pytest.mark.parametrize(("canonical", "other"), [(one, each) for one, others in SPELLINGS.items() for each in others])
def test_all_spellings_of_a_source_are_one_for_policies_and_are_printed_in_one_form(canonical: str, other: str) -> None:
    assert SourcePrefix.parse(canonical) == SourcePrefix.parse(other)
    assert canonicalize_source(other) == canonicalize_source(canonical)
    assert covers(canonical, other)
    assert covers(other, canonical)


def test_the_canonical_form_is_the_plain_one() -> None:
    for canonical in SPELLINGS:
        assert canonicalize_source(canonical) == canonical.replace("%2B", "+")
    for text in ("", "no address", "https://[x", "https://a/../b", "git+https://u@a/b"):
        assert canonicalize_source(text) == text


@given(
    st.sampled_from(["https", "git+https", "git+ssh", "oci", "http", "cluster"]),
    st.sampled_from(["a.example", "docker.io", "index.docker.io", "[::1]", "A.b."]),
    st.sampled_from(["", ":443", ":22", ":80", ":8080"]),
    st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=1, max_size=6), max_size=3),
)
def test_a_printed_prefix_is_read_as_itself(scheme: str, host: str, port: str, segments: list[str]) -> None:
    text = f"{scheme}://{host}{port}/{'/'.join(quote(segment, safe='') for segment in segments)}"
    with suppress(ValueError):
        prefix = SourcePrefix.parse(text)
        assert SourcePrefix.parse(str(prefix)) == prefix
        assert canonicalize_source(str(prefix)) == str(prefix)


@pytest.mark.parametrize(
    ("prefix", "uri"),
    [
        ("git+https://git.example.com/team/boxes", "git+https://git.example.com/team/boxes-2.git"),
        ("git+https://git.example.com/team/boxes.git", "git+https://git.example.com/team/boxes.gitx"),
        ("git+https://git.example.com/team/boxes", "git+ssh://git.example.com/team/boxes.git"),
        ("git+https://git.example.com/team", "git+https://git.example.com/team.git.evil/boxes"),
        ("git+https://git.example.com/Team", "git+https://git.example.com/team/boxes"),
        ("https://a.example/boxes", "https://a.example/boxes.git"),
        ("oci://docker.io/team", "oci://docker.io.evil.example/team"),
    ],
)
def test_what_only_looks_like_a_spelling_is_another_source(prefix: str, uri: str) -> None:
    assert not covers(prefix, uri)


def test_a_star_stands_for_hosts_below_and_not_beside() -> None:
    assert covers("https://*.example.com", "https://a.b.example.com/x")
    assert not covers("https://*.example.com", "https://example.com/x")
    assert not covers("https://*.example.com", "https://evilexample.com/x")


def test_a_kind_of_the_cluster_may_be_written_as_it_is_called_and_a_path_elsewhere_may_not() -> None:
    assert covers("cluster://catalog/Task/build", "cluster://catalog/task/build")
    assert not covers("https://a.example/Task", "https://a.example/task")


AMBIGUOUS = ["example.com", "https://", "https://a*b.com", "https://a.com/*", "https://a.com/../b", "https://u@a.com"]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_a_prefix_that_can_be_read_in_two_ways_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        SourcePrefix.parse(text)


def is_admitted(*policies: Policy, uri: str = "https://good.example.com/team/a", **more: str) -> bool:
    params = {"revision": more.get("revision", "main")}
    with suppress(ResolutionError):
        admit(policies, resolver="git", uri=uri, params=params, namespace=more.get("namespace", "web"))
        return True
    return False


def test_without_a_policy_everything_may_be_fetched() -> None:
    assert is_admitted()
    assert is_admitted(Policy("other", resolvers=("http",), sources=(GOOD,)), uri="https://evil.example/")


def test_with_one_only_what_it_names_may() -> None:
    policy = Policy("team", sources=(GOOD,))
    assert is_admitted(policy)
    with pytest.raises(ResolutionError, match="its policies are team") as caught:
        admit([policy], resolver="git", uri="https://evil.example/a", params={}, namespace="web")
    assert caught.value.reason is Reason.DENIED


def test_a_policy_of_another_namespace_neither_allows_nor_forbids() -> None:
    policy = Policy("team", namespaces=("team-*",), sources=(GOOD,))
    assert is_admitted(policy, uri="https://evil.example/a", namespace="web")
    assert not is_admitted(policy, uri="https://evil.example/a", namespace="team-a")


def test_parameters_are_limited_by_name() -> None:
    policy = Policy("releases", parameters={"revision": ("main", "release-*")})
    assert [is_admitted(policy, revision=each) for each in ("main", "release-2", "mainline", "")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_parameter_without_permitted_values_is_never_permitted() -> None:
    policy = Policy("closed", parameters={"revision": ()})
    assert not policy.allows("https://good.example.com/team", {"revision": "main"})
    assert not policy.allows("https://good.example.com/team", {})


def test_what_every_naming_policy_asks_for_has_to_be_met() -> None:
    rule = SignatureRule(keys=("key",))
    policies = [
        Policy("a", sources=(GOOD,), is_public=True),
        Policy("b", requires_digest=True),
        Policy("c", signature=rule),
    ]
    found = admit(policies, resolver="git", uri="https://good.example.com/team", params={}, namespace="web")
    assert (found.policies, found.digest_required_by, found.signatures) == (("a", "b", "c"), ("b",), (rule,))
    assert not found.is_public


WIDE = Policy("wide", sources=(SourcePrefix.parse("git+https://git.example.com"),), is_public=True)
STRICT = Policy(
    "strict",
    sources=(SourcePrefix.parse("git+https://git.example.com/team/boxes"),),
    requires_digest=True,
    signature=SignatureRule(keys=("key",)),
    private_networks=parse_networks(["10.0.0.0/8"]),
)


@pytest.mark.parametrize(
    "path",
    [
        "team/boxes",
        "team/boxes.git",
        "team/%62oxes",
        "Team/Boxes.GIT",
        "TEAM/boxes/more",
        "other/..;/team/boxes",
        "other/%2e%2e/team/boxes",
        "team%2fboxes",
    ],
)
def test_another_spelling_does_not_escape_the_stricter_of_two_policies(path: str) -> None:
    open_to_all = Policy("open")
    uri = f"git+https://git.example.com/{path}"
    found = admit([WIDE, STRICT, open_to_all], resolver="git", uri=uri, params={}, namespace="web")
    assert (found.digest_required_by, found.signatures, found.is_public) == (("strict",), (STRICT.signature,), False)
    assert "strict" in found.policies


def test_a_policy_that_only_may_mean_a_source_permits_nothing() -> None:
    for uri in ("git+https://git.example.com/Team/boxes", "git+https://git.example.com/a/..;/team/boxes"):
        with pytest.raises(ResolutionError, match="strict"):
            admit([STRICT], resolver="git", uri=uri, params={}, namespace="web")
        found = admit([STRICT, Policy("open")], resolver="git", uri=uri, params={}, namespace="web")
        assert found.private_networks == ()
    other = admit([WIDE, STRICT], resolver="git", uri="git+https://git.example.com/x", params={}, namespace="web")
    assert (other.policies, other.signatures, other.is_public) == (("wide",), (), True)


def refusal(uri: str, *policies: Policy, **params: str) -> str:
    with pytest.raises(ResolutionError) as caught:
        admit(policies, resolver="git", uri=uri, params=params, namespace="web")
    return str(caught.value)


def test_a_refusal_names_what_was_compared_and_each_policy_with_what_speaks_against_it() -> None:
    other = Policy("other", resolvers=("http",))
    releases = Policy("releases", parameters={"revision": ("v*",), "path": ("boxes/*",)})
    message = refusal(
        "git+https://EVIL.example:443/x.git", Policy("ours", sources=(GOOD,)), releases, other, revision="main"
    )
    assert message == (
        "no policy allows namespace web to fetch git+https://evil.example/x with resolver git; its policies are "
        "ours (it allows other sources), releases (it allows other values of parameter 'revision')"
    )


def test_a_refusal_says_nothing_of_what_policies_allow_and_no_credential() -> None:
    policies = [Policy(f"p{number}", sources=(GOOD,)) for number in range(8)]
    message = refusal("https://user:hunter2@evil.example/x?token=hunter2#hunter2", *policies)
    assert "fetch https://evil.example/x with" in message
    assert message.endswith("p4 (it allows other sources), 3 more")
    for word in ("hunter2", "good.example"):
        assert word not in message
    for strange in ("", "https://a.example/\x1b[2J", "https://[x"):
        assert "fetch this with resolver git" in refusal(strange, *policies)

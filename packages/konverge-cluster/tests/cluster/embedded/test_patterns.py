"""Patterns of schemas: results of Python's own engine in bounded time, and the rejections of the real server."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.re2 import MatchTooCostlyError, Pattern, PatternSyntaxError
from konverge.errors import InvalidError
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from tests.cluster.embedded.objects import DEFINITION, WEBAPP, webapp

ATOMS = [
    "a",
    "b",
    ".",
    "[ab]",
    "[^a]",
    r"\d",
    r"\w",
    r"\s",
    "[a-c]",
    r"\b",
    "^",
    r"\.",
    "[b-]",
    "[]a]",
    r"[\w-]",
]
PATTERNS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.tuples(inner, inner).map("".join)
        | st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "{2}", "{1,2}", "{1,}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        )
        | inner.map(lambda part: f"(?i:{part})")
    ),
    max_leaves=8,
)


@given(PATTERNS, st.text("abcxAB1 .-\n]", max_size=7))
def test_what_python_finds_is_found(pattern: str, text: str) -> None:
    assert Pattern(pattern).matches(text) == bool(re.search(pattern, text, re.ASCII))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a$", "a\n", False),
        ("(?m)a$", "a\n", True),
        (r"a\z", "ba", True),
        ("(?s)a.b", "a\nb", True),
        ("(?i)ab(?-i)c", "ABC", False),
        ("[[:upper:]]{2}", "aBC", True),
        ("[[:^digit:]]", "1", False),
        (r"^\pL+$", "straße", True),
        (r"^\p{Greek}+$", "λόγος", True),
        (r"^\P{Lu}$", "A", False),
        (r"\x{e9}", "café", True),
        ("a{,3}", "a{,3}", True),
        ("(?P<one>a)(?<two>b)", "ab", True),
        ("", "", True),
        (r"a\Bb", "ab", True),
        (r"\B", "", True),
    ],
)
def test_the_dialect_is_the_servers(pattern: str, text: str, found: bool) -> None:
    assert Pattern(pattern).matches(text) is found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("\\", "trailing backslash at end of expression: `\\`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2000}", "invalid repeat count: `{2000}`"),
        ("[z-a]", "invalid character class range: `[z-a`"),
    ],
)
def test_what_the_server_cannot_read_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        Pattern(pattern)
    assert str(caught.value) == message


@pytest.mark.parametrize("pattern", ["(a{1000}){1000}", "(" * 5000, "(((a{99}){99}){99}){99}", "(((){999}){999}){999}"])
def test_a_pattern_is_bounded(pattern: str) -> None:
    with pytest.raises(PatternSyntaxError):
        Pattern(pattern)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "a*a*a*a*b", "^(a|aa)+$", "(.*)*=(.*)*=$"])
def test_no_pattern_keeps_the_server_busy(pattern: str) -> None:
    assert not Pattern(pattern).matches("a" * 20_000 + "!")


@pytest.mark.slow
def test_what_would_take_too_long_is_given_up() -> None:
    # Each run of thirteen letters creates its own alternatives.
    varied = "".join(format(number, "013b") for number in range(8192)).translate({48: "a", 49: "b"})

    with pytest.raises(MatchTooCostlyError):
        Pattern("[ab]*a[ab]{900}c").matches(varied)


def test_a_definition_with_a_pattern_that_is_none_is_refused(api: ApiServer, webapps: Object) -> None:
    fields = webapps["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["image"]["pattern"] = "("

    with pytest.raises(InvalidError, match=r"properties\[image\]\.pattern: Invalid value: \"\(\": must be a valid"):
        api.update(DEFINITION, webapps)


def test_a_catastrophic_pattern_in_a_definition_harms_nobody(api: ApiServer, webapps: Object) -> None:
    fields = webapps["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    fields["image"]["pattern"] = "^([a-z]+)+$"
    api.update(DEFINITION, webapps)

    with pytest.raises(InvalidError, match=r"spec\.image in body should match"):
        api.create(WEBAPP, webapp(image="a" * 60 + "!"))

"""References: their checks, and the names of their requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.kube.name_validation import validate_dns_label
from konverge_resolution import REASON_TRAITS, Digest, Reason, Reference, ResolutionError, build_request_name
from konverge_resolution._internal.consumer.requested_definition import format_reference
from konverge_resolution._internal.reference import redact_source
from konverge_resolution._internal.reference_parsing import ParsedReference

VALUES = st.one_of(st.text(max_size=20), st.lists(st.text(max_size=5), max_size=3))
PARAMETERS = st.dictionaries(st.text(min_size=1, max_size=10), VALUES, max_size=4)


def name_of(params: dict[str, Any], resolver: str = "git", *, owner: str = "uid-1") -> str:
    return build_request_name(Reference(resolver, params), namespace="default", owner_uid=owner)


def test_the_order_of_parameters_does_not_change_the_name() -> None:
    assert name_of({"a": "1", "b": "2"}) == name_of({"b": "2", "a": "1"})


def test_parameters_that_read_the_same_when_joined_have_different_names() -> None:
    assert name_of({"a": "b", "c": "d"}) != name_of({"a": "bcd"})


def test_two_owners_have_two_requests() -> None:
    assert name_of({"a": "b"}) != name_of({"a": "b"}, owner="uid-2")


@pytest.mark.slow
@given(PARAMETERS, PARAMETERS)
def test_equal_parameters_and_nothing_else_have_equal_names(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert (name_of(first) == name_of(second)) is (first == second)


@pytest.mark.parametrize("resolver", ["git", "a" * 63, "a" * 29 + "-b", "x-1"])
def test_a_name_is_one_that_kubernetes_takes(resolver: str) -> None:
    assert not validate_dns_label(name_of({"a": "b"}, resolver))


@pytest.mark.parametrize("resolver", ["", "Git", "a" * 64, "a" * 300, "gït", "a/b", "-a", "a b"])
def test_a_resolver_that_can_have_no_such_name_is_refused(resolver: str) -> None:
    with pytest.raises(ResolutionError, match="resolver") as caught:
        Reference(resolver).check()
    assert caught.value.reason is Reason.INVALID_PARAMETERS


@pytest.mark.parametrize("value", [1, None, [1], {"a": 1}, {"a": ["b"]}])
def test_a_value_of_another_type_is_refused_by_its_name(value: Any) -> None:
    with pytest.raises(ResolutionError, match="parameter 'depth'"):
        Reference("git", {"depth": value}).check()


@pytest.mark.parametrize("params", [{str(number): "" for number in range(65)}, {"a": "b" * 70_000}])
def test_parameters_are_bounded(params: dict[str, Any]) -> None:
    with pytest.raises(ResolutionError, match="at most"):
        Reference("git", params).check()


@pytest.mark.parametrize(
    "text",
    ["", "sha256", "sha256:", "sha256:" + "a" * 63, "sha512:" + "a" * 64, "sha1:" + "a" * 40, "sha256:" + "G" * 64],
)
def test_what_is_no_digest_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="expected sha256: and 64, or sha512: and 128"):
        Digest.parse(text)


@given(st.binary(max_size=50), st.sampled_from(["sha256", "sha512"]))
def test_a_digest_fits_its_own_bytes_alone(data: bytes, algorithm: str) -> None:
    digest = Digest.parse(str(Digest.of(data, algorithm)))
    assert digest.matches(data)
    assert not digest.matches(data + b"x")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("https://user:hunter2@a.example:8443/b?token=hunter2#c", "https://a.example:8443/b"),
        ("registry.example/team/tasks:1", "registry.example/team/tasks:1"),
        ("build", "build"),
        ("https://[x", ""),
        ("https://a.example/\x1b[2J", ""),
    ],
)
def test_an_address_is_shown_without_what_may_be_a_credential_or_obeyed(text: str, told: str) -> None:
    assert redact_source(text) == told
    written = ParsedReference((Reference("git", {"url": text}),))
    assert format_reference(written) == f"git {told}".rstrip()


def test_what_is_refused_never_falls_through_to_another_source() -> None:
    falling = {reason for reason, facts in REASON_TRAITS.items() if facts.allows_failover}
    assert falling == {Reason.NOT_FOUND, Reason.UNREACHABLE, Reason.RATE_LIMITED, Reason.TIMED_OUT}
    assert list(REASON_TRAITS) == list(Reason)

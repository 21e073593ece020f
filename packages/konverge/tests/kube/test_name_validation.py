from __future__ import annotations

import pytest

from konverge._internal.kube.name_validation import (
    validate_dns_label,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
    validate_service_name,
)


@pytest.mark.parametrize("text", ["a", "a-b", "1a", "a" * 63])
def test_good_labels(text: str) -> None:
    assert validate_dns_label(text) == []


@pytest.mark.parametrize(
    ("text", "begin"),
    [
        ("", "a lowercase RFC 1123 label must consist of"),
        ("A", "a lowercase RFC 1123 label must consist of"),
        ("a-", "a lowercase RFC 1123 label must consist of"),
        ("a.b", "must not contain dots"),
        ("a" * 64, "must be no more than 63 characters"),
    ],
)
def test_bad_labels(text: str, begin: str) -> None:
    (mistake,) = validate_dns_label(text)

    assert mistake.startswith(begin)


@pytest.mark.parametrize("text", ["a", "a.b-c.1", "x" * 253])
def test_good_subdomains(text: str) -> None:
    assert validate_dns_subdomain(text) == []


def test_a_subdomain_says_what_it_wants_as_the_server_does() -> None:
    assert validate_dns_subdomain("X_") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
    assert validate_dns_subdomain("x" * 254) == ["must be no more than 253 characters"]


def test_the_name_of_a_kind_starts_with_a_letter() -> None:
    assert validate_service_name("v1") == []
    assert validate_service_name("1v")[0].startswith("a DNS-1035 label must consist of")


@pytest.mark.parametrize("text", ["a", "A_b.c-1", "example.com/Name", "a" * 63, "x." * 100 + "y/n"])
def test_good_label_keys(text: str) -> None:
    assert validate_label_key(text) == []


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        ("/x", ["prefix part must be non-empty"]),
        ("x/", ["name part must be non-empty", "name part must consist of"]),
        ("a/b/c", ["a valid label key must consist of"]),
        ("UP/x", ["prefix part a lowercase RFC 1123 subdomain"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("a+", ["name part must consist of"]),
    ],
)
def test_bad_label_keys(text: str, mistakes: list[str]) -> None:
    found = validate_label_key(text)

    assert [mistake[: len(begin)] for mistake, begin in zip(found, mistakes, strict=True)] == mistakes


def test_label_values_may_be_empty_but_not_long() -> None:
    assert validate_label_value("") == []
    assert validate_label_value("v" * 64) == ["must be no more than 63 bytes"]
    assert validate_label_value("-v")[0].startswith("a valid label must be an empty string or consist of")

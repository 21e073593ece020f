"""The checks of a request before anything is sent."""

from __future__ import annotations

from typing import Any

import pytest

from konverge_box._internal.calls import CallAttemptError, CallRequest
from konverge_box._internal.calls.requests import check_headers, get_host_port, parse_call_url
from konverge_resolution.network import AllowedNetworks

URLS = {
    "ftp://example.com/": "expected http:// or https:// and a host, found scheme ftp",
    "file:///etc/passwd": "expected http:// or https:// and a host, found scheme file",
    "example.com": "expected http:// or https:// and a host, found scheme none",
    "http:///path": "found no host",
    "http://:80/path": "found no host",
    "http://host:99999/": "an invalid port",
    "http://host:0/": "an invalid port",
    "http://user:password@example.com/": "expected no user and no password",
    "http://user@example.com/": "expected no user and no password",
    "http://good.example@169.254.169.254/": "expected no user and no password",
    "http://example.com/a b": "expected no blanks",
    "http://example.com\\@evil.example/": "backslashes",
    "http://example.com/\r\nX-Evil: 1": "control characters",
    "http://0177.1/": "neither a name nor an address",
    "http://example.com/" + "a" * 9000: "expected at most 8192 characters",
}


@pytest.mark.parametrize(("url", "problem"), URLS.items())
def test_a_url_that_cannot_be_used_is_refused(url: str, problem: str) -> None:
    with pytest.raises(CallAttemptError) as failure:
        parse_call_url(url, "http")
    assert problem in failure.value.problem
    assert "password@" not in failure.value.problem


@pytest.mark.parametrize("url", ["hunter2", "hunter2://a.example/", "http://hunter2@a.example/"])
def test_a_url_that_comes_from_a_secret_is_not_shown(url: str) -> None:
    with pytest.raises(CallAttemptError) as failure:
        parse_call_url(url, "http", is_sensitive=True)
    assert "hunter2" not in str(failure.value)


@pytest.mark.parametrize(
    ("url", "protocol", "port"),
    [
        ("https://a.example/", "http", 443),
        ("http://a.example:8080/", "prometheus", 8080),
        ("redis://a.example", "redis", 6379),
        ("rediss://a.example", "redis", 6379),
        ("postgresql://a.example/db", "postgres", 5432),
    ],
)
def test_each_protocol_has_its_schemes_and_ports(url: str, protocol: str, port: int) -> None:
    place = get_host_port(parse_call_url(url, protocol))
    assert (place.host, place.port) == ("a.example", port)


HEADERS = {
    "a line break in a value": {"X-A": "1\r\nX-Evil: 2"},
    "a bare line feed": {"X-A": "1\nX-Evil: 2"},
    "a NUL": {"X-A": "a\x00b"},
    "a line break in a name": {"X-A\r\nX-Evil": "1"},
    "a blank in a name": {"X A": "1"},
    "no name": {"": "1"},
    "the host": {"Host": "evil.example"},
    "the length": {"content-length": "5"},
    "the framing": {"Transfer-Encoding": "chunked"},
    "what the answer is packed with": {"accept-encoding": "gzip"},
    "a long value": {"X-A": "a" * 9000},
    "many": {f"X-{number}": "1" for number in range(101)},
}


@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
def test_a_header_that_would_change_the_request_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(CallAttemptError) as failure:
        check_headers(headers)
    assert "Evil" not in failure.value.problem


def test_a_request_shows_neither_its_path_nor_its_credential() -> None:
    url = parse_call_url("https://a.example/token-in-path?token=in-query", "http")
    request = CallRequest(
        protocol="http", url=url, networks=AllowedNetworks(), credential="hunter2", headers={"X-Key": "hunter3"}
    )
    for text in (repr(request), str(request), f"{request}", request.display_origin):
        assert "hunter" not in text
        assert "token" not in text
    assert request.display_origin == "https://a.example"


def test_what_an_answer_depends_on_is_in_the_fingerprint() -> None:
    base: dict[str, Any] = {
        "protocol": "http",
        "url": parse_call_url("https://a.example/a", "http"),
        "networks": AllowedNetworks(),
    }
    different: list[dict[str, Any]] = [
        {"url": parse_call_url("https://a.example/b", "http")},
        {"networks": AllowedNetworks(["10.0.0.0/8"])},
        {"method": "POST"},
        {"headers": {"X-A": "1"}},
        {"body": b""},
        {"query": "up"},
        {"parameters": ("up",)},
        {"command": ("GET", "a")},
        {"credential": "one"},
        {"credential": "another"},
        {"credential": "one", "credential_header": "X-Token"},
        {"expected": (200,)},
        {"is_sensitive": True},
        {"protocol": "prometheus"},
    ]
    prints = {CallRequest(**{**base, **each}).compute_fingerprint() for each in [{}, *different]}
    assert len(prints) == len(different) + 1
    assert CallRequest(**base).compute_fingerprint() in prints

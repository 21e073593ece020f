"""What a redirect changes about a request, by itself: what happens on the way is in `test_http`."""

from __future__ import annotations

import pytest

from konverge_resolution._internal.network.redirects import RequestHop, follow_redirect
from konverge_resolution._internal.network.url_parsing import parse_url
from konverge_resolution.network import HostUnreachableError, OriginCredential, RefusedRedirectError

HEADERS = {"Accept": "a", "Content-Type": "b", "X-Key": "c"}


def hop(method: str = "GET", body: bytes | None = None) -> RequestHop:
    url = "https://here.example/a/b"
    return RequestHop(method, parse_url(url), HEADERS, body, OriginCredential("Bearer hunter2", url))


@pytest.mark.parametrize(
    ("method", "status", "following"),
    [
        ("GET", 303, "GET"),
        ("HEAD", 303, "HEAD"),
        ("HEAD", 301, "HEAD"),
        ("POST", 301, "GET"),
        ("POST", 302, "GET"),
        ("POST", 303, "GET"),
        ("POST", 307, "POST"),
        ("POST", 308, "POST"),
        ("PUT", 302, "PUT"),
        ("PUT", 303, "GET"),
    ],
)
def test_a_redirect_changes_the_method_as_http_has_it(method: str, status: int, following: str) -> None:
    assert follow_redirect(hop(method), status, "/c").method == following


def test_the_type_of_a_body_goes_with_the_body() -> None:
    stays, goes = (follow_redirect(hop("POST", b"body"), status, "c") for status in (307, 303))
    assert (stays.body, dict(stays.headers)) == (b"body", HEADERS)
    assert (goes.body, set(goes.headers)) == (None, {"Accept", "X-Key"})
    assert str(goes.url) == "https://here.example/a/c"


def test_another_origin_gets_no_body() -> None:
    with pytest.raises(RefusedRedirectError, match="a request with a body to another server"):
        follow_redirect(hop("POST", b"body"), 307, "https://there.example/")
    assert follow_redirect(hop("POST", b"body"), 303, "https://there.example/").credential is None


def test_a_credential_takes_the_place_of_a_header_of_its_name_in_any_case() -> None:
    credential = OriginCredential("Bearer hunter2", "https://here.example")
    assert credential.add_to({"authorization": "mine", "A": "b"}) == {"A": "b", "Authorization": "Bearer hunter2"}


def test_an_error_behind_a_redirect_blames_the_target_and_not_the_host_that_redirects() -> None:
    error = HostUnreachableError("https://there.example", "cannot be connected to").with_redirect()
    assert error.problem == "redirects to an address that cannot be connected to"
    assert str(error) == "https://there.example cannot be connected to"

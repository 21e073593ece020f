"""The decoding of responses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from konverge_box._internal.calls import CallAttemptError
from konverge_box._internal.calls.call_result import CallResult, build_external_result, decode_body
from konverge_box.expressions import has_sensitive


def http(parsed: Any, **more: Any) -> dict[str, Any]:
    return build_external_result("http", CallResult(fields={"status": 200, "body": "…", "json": parsed}, **more))


def test_fields_of_a_json_object_stand_beside_the_fixed_ones_which_win() -> None:
    result = http({"replicas": 3, "status": "fake", "ok": False, "error": "fake", "called": 0, "on": True})
    assert result["replicas"] == 3
    assert result["on"] is True
    assert (result["status"], result["ok"], result["error"], result["called"]) == (200, True, "", True)
    assert result["json"]["status"] == "fake"


@pytest.mark.parametrize("parsed", [[1], "text", 3, None])
def test_json_that_is_no_object_adds_no_fields(parsed: Any) -> None:
    assert set(http(parsed)) == {"called", "ok", "status", "body", "json", "error"}


@pytest.mark.parametrize("protocol", ["http", "prometheus", "redis", "postgres"])
def test_a_call_that_was_not_made_has_the_fields_of_one_that_was(protocol: str) -> None:
    skipped = build_external_result(protocol, None)
    assert skipped.keys() == build_external_result(protocol, CallResult()).keys()
    assert (skipped["called"], skipped["ok"], skipped["error"]) == (False, False, "")


def test_of_a_sensitive_answer_the_status_is_shown_and_nothing_else() -> None:
    result = http({"token": "hunter2", "deep": [{"a": "hunter3"}]}, is_sensitive=True)
    assert "hunter" not in repr(result)
    assert has_sensitive(result["token"])
    assert has_sensitive(result["deep"])
    assert not has_sensitive([result["status"], result["ok"], result["called"]])


@pytest.mark.parametrize("kind", ["application/json", "application/problem+json", "text/plain", ""])
def test_json_is_read_whatever_kind_of_text_it_comes_as(kind: str) -> None:
    assert decode_body('{"a": "ü"}'.encode(), kind, None) == ('{"a": "ü"}', {"a": "ü"})


def test_text_is_decoded_by_its_charset_and_json_never_by_another_than_its_own() -> None:
    assert decode_body("ü".encode("latin-1"), "text/plain", "ISO-8859-1")[0] == "ü"
    assert decode_body('"ü"'.encode(), "application/json", "iso-8859-1")[1] == "ü"


@pytest.mark.parametrize("charset", ["punycode", "unicode_escape", "zlib", "no-such"])
def test_a_charset_that_is_none_of_texts_is_refused(charset: str) -> None:
    with pytest.raises(CallAttemptError, match="charset"):
        decode_body(b"a", "text/plain", charset)


def test_what_is_no_text_is_not_shown() -> None:
    assert decode_body(b"\x89PNG", "image/png", None) == ("", None)


def test_text_that_is_no_json_has_no_value() -> None:
    assert decode_body(b'{"a": ', "application/json", None) == ('{"a": ', None)


@pytest.mark.parametrize("levels", [51, 1000, 200_000])
def test_json_that_nests_deeper_than_expressions_allow_is_refused(levels: int) -> None:
    with pytest.raises(CallAttemptError, match="levels"):
        decode_body(b"[" * levels + b"]" * levels, "application/json", None)


def test_json_may_nest_as_deep_as_expressions_allow() -> None:
    assert decode_body(b"[" * 50 + b"]" * 50, "application/json", None)[1] is not None


def test_a_json_text_of_more_than_four_kilobytes_is_read_whole() -> None:
    value = {"items": ["x" * 100] * 1000}
    assert decode_body(json.dumps(value).encode(), "application/json", None)[1] == value

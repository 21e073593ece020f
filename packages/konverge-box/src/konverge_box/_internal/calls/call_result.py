"""The result of a call: decoding of the response, and its value in expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge._internal.client.json_decoding import DECODE_ERRORS
from konverge_box._internal.calls.call_errors import CallAttemptError
from konverge_box._internal.expressions import DEFAULT_LIMITS, to_sensitive

__all__ = ["MAX_BODY_BYTES", "CallResult", "build_external_result", "build_too_long_error", "decode_body"]

MAX_BODY_BYTES = 1 << 20
"""Maximum size of a response in bytes, compressed or not. A longer one is rejected: a part of it is not valid JSON."""

_CHARSETS = frozenset(
    {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "iso-8859-15"}
    | {"windows-1252", "cp1252", "utf-16", "utf-16le", "utf-16be"}
)
"""The supported charsets. Python has more codecs, and some of them take minutes to decode a response."""

_EMPTY: dict[str, dict[str, Any]] = {
    "http": {"status": 0, "body": "", "json": None},
    "prometheus": {"status": 0, "result": None, "raw": {}},
    "redis": {"result": None, "raw": None},
    "postgres": {"result": None, "raw": {}},
}
"""The fields that a result always has, by protocol, with their values for a call without a response."""

_OPEN = frozenset({"status", "called", "ok"})
"""The fields that are never sensitive: conditions need them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """The result of a call. It never changes: several reconciles can share it.

    Args:
        fields: The fields of its protocol: status and body, or result and raw.
        error: The error; empty without one. It contains no value of a Secret.
        is_transient: Tells whether a retry can succeed.
        retry_after: The delay in seconds that the server requests before a retry; None without one.
        is_sensitive: Tells whether it can contain a value of a Secret.
        size: The approximate size in bytes.
        is_sent: Tells whether the call was sent. One that was not sent has no other fields.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    is_transient: bool = False
    retry_after: float | None = None
    is_sensitive: bool = False
    size: int = 0
    is_sent: bool = True

    def __repr__(self) -> str:
        return f"CallResult(error={self.error!r})"


def build_external_result(protocol: str, answer: CallResult | None) -> dict[str, Any]:
    """Return the value of ``external.<name>`` in expressions.

    Args:
        protocol: The protocol of the call, which determines its fields.
        answer: The result; None, or one with `is_sent` false, when the call was not sent.
    """
    if answer is None or not answer.is_sent:
        return {**_EMPTY[protocol], "called": False, "ok": False, "error": ""}
    fields = {**_EMPTY[protocol], **answer.fields}
    parsed = fields.get("json")
    # The fixed fields win: a server cannot present a failure as a success.
    result = {**parsed, **fields} if isinstance(parsed, dict) else fields
    if answer.is_sensitive:
        result = {name: value if name in _OPEN else to_sensitive(value) for name, value in result.items()}
    return {**result, "called": True, "ok": not answer.error, "error": answer.error}


def build_too_long_error() -> CallAttemptError:
    """Return the error for a response that is longer than `MAX_BODY_BYTES`."""
    return CallAttemptError(f"expected a response of at most {MAX_BODY_BYTES >> 20} MiB, found a longer one")


def decode_body(body: bytes, content_type: str, charset: str | None) -> tuple[str, Any]:
    """Return the text of a response, and its value if it is JSON.

    The text of a binary response is empty. The value of a response that is not JSON is None.

    Args:
        body: The decompressed body.
        content_type: The content type without parameters; empty without one.
        charset: The charset of the content type; None without one.

    Raises:
        CallAttemptError: The charset is not supported, or the JSON nests too deeply for expressions.
    """
    kind = content_type.strip().lower()
    is_json = kind == "application/json" or kind.endswith("+json")
    if not (is_json or kind == "" or kind.startswith("text/") or kind == "application/x-ndjson"):
        return "", None
    # JSON is always UTF-8, independent of the header (RFC 8259).
    name = "utf-8" if is_json else (charset or "utf-8").strip().lower()
    if name not in _CHARSETS:
        raise CallAttemptError("expected a response in UTF-8 or a common charset, found another charset")
    text = body.decode(name, errors="replace")
    try:
        parsed = msgspec.json.decode(text)
        if _has_allowed_depth(parsed):
            return text, parsed
    except RecursionError:
        pass
    except DECODE_ERRORS:
        return text, None
    raise CallAttemptError(f"expected JSON of at most {DEFAULT_LIMITS.depth} levels, found more")


def _has_allowed_depth(value: Any) -> bool:
    """Tell whether a value nests no deeper than expressions allow, without recursion, which has a limit of its own."""
    level = [value]
    for _ in range(DEFAULT_LIMITS.depth):
        inner: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                inner.extend(item for item in each.values() if isinstance(item, dict | list))
            elif isinstance(each, list):
                inner.extend(item for item in each if isinstance(item, dict | list))
        if not inner:
            return True
        level = inner
    return False

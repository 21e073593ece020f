"""What comes back: how an answer is read, and what of it expressions see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from konverge.client.json_decoding import DECODE_ERRORS
from konverge_box.calls.call_errors import CallAttemptError
from konverge_box.expressions import DEFAULT_LIMITS, to_sensitive

__all__ = ["MAX_BODY_BYTES", "CallResult", "build_external_result", "build_too_long_error", "decode_body"]

MAX_BODY_BYTES = 1 << 20
"""Bytes of an answer, packed or not; a longer one is refused whole: half of a JSON text is none."""

_CHARSETS = frozenset(
    {"utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "iso-8859-15"}
    | {"windows-1252", "cp1252", "utf-16", "utf-16le", "utf-16be"}
)
"""Those of texts. Python knows others, some of which take minutes to read."""

_EMPTY: dict[str, dict[str, Any]] = {
    "http": {"status": 0, "body": "", "json": None},
    "prometheus": {"status": 0, "result": None, "raw": {}},
    "redis": {"result": None, "raw": None},
    "postgres": {"result": None, "raw": {}},
}
"""By protocol, the fields that a result always has, with the values of a call that got no answer."""

_OPEN = frozenset({"status", "called", "ok"})
"""What of an answer is shown also if the rest of it is sensitive: conditions live on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """What came of a call. Never changed: several passes may see the same one.

    Args:
        fields: Of its protocol: status and body, or result and raw.
        error: What went wrong; empty for nothing. It never shows what came from a Secret.
        is_transient: Whether another try may end otherwise.
        retry_after: After how many seconds the server wants to be asked again.
        is_sensitive: Whether it may repeat what came from a Secret.
        size: About how many bytes it is.
        is_sent: Whether anybody was asked; a call that was not made has no other fields.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    is_transient: bool = False
    retry_after: float | None = None
    is_sensitive: bool = False
    size: int = 0
    is_sent: bool = True

    def __repr__(self) -> str:
        return f"Answer(error={self.error!r})"


def build_external_result(protocol: str, answer: CallResult | None) -> dict[str, Any]:
    """What expressions know as ``external.<name>``.

    Args:
        protocol: What the call's fields depend on.
        answer: None, or one that is not made, when the call was not made.
    """
    if answer is None or not answer.is_sent:
        return {**_EMPTY[protocol], "called": False, "ok": False, "error": ""}
    fields = {**_EMPTY[protocol], **answer.fields}
    parsed = fields.get("json")
    # What is fixed wins: a server cannot pretend that its failure was a success.
    result = {**parsed, **fields} if isinstance(parsed, dict) else fields
    if answer.is_sensitive:
        result = {name: value if name in _OPEN else to_sensitive(value) for name, value in result.items()}
    return {**result, "called": True, "ok": not answer.error, "error": answer.error}


def build_too_long_error() -> CallAttemptError:
    """The failure for an answer that is longer than `MAX_BODY_BYTES`."""
    return CallAttemptError(f"expected an answer of at most {MAX_BODY_BYTES >> 20} MiB, found a longer one")


def decode_body(body: bytes, content_type: str, charset: str | None) -> tuple[str, Any]:
    """The text of an answer, and its value if it is JSON.

    Anything but text is not shown: it has no value in an expression. A text that is no JSON has none either.

    Args:
        body: Unpacked.
        content_type: Without parameters; empty if there was none.
        charset: Of the content type; None if there was none.

    Raises:
        CallAttemptError: It is in an unknown charset, or its JSON nests too deeply for expressions.
    """
    kind = content_type.strip().lower()
    is_json = kind == "application/json" or kind.endswith("+json")
    if not (is_json or kind == "" or kind.startswith("text/") or kind == "application/x-ndjson"):
        return "", None
    # JSON is UTF-8 whatever the header says of it (RFC 8259).
    name = "utf-8" if is_json else (charset or "utf-8").strip().lower()
    if name not in _CHARSETS:
        raise CallAttemptError("expected an answer in UTF-8 or a common charset, found another")
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
    """Tell whether a value nests no deeper than expressions allow. Not by recursion: that is what is looked for."""
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

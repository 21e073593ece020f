"""What was asked of a server: the real one's audit log, entry by entry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

__all__ = ["AuditedRequest", "read_audit_log"]


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One request that a server has answered (a watch: has begun to answer).

    Args:
        time: When it arrived.
        user_agent: Who asked.
        verb: The API verb: ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete`` and so on.
        path: The path, without the query.
        code: The HTTP status code.
    """

    time: datetime
    user_agent: str
    verb: str
    path: str
    code: int


class _ResponseStatus(msgspec.Struct, frozen=True):
    code: int = 0


class _AuditEvent(msgspec.Struct, frozen=True, rename="camel"):
    audit_id: str = msgspec.field(name="auditID")
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    request_received_timestamp: datetime
    user_agent: str = ""
    response_status: _ResponseStatus = _ResponseStatus()


_decode = msgspec.json.Decoder(_AuditEvent).decode


def read_audit_log(log: Path, start: int = 0) -> Iterator[AuditedRequest]:
    """The requests in an audit log (``audit.k8s.io/v1``, one JSON line each), in the order of their answers.

    A watch has two lines, when it begins and when it ends; it counts once. The server writes the line before it
    finishes the answer, so whoever has an answer finds its request here.

    Args:
        log: The file.
        start: The offset in bytes to begin at: a size that the file once had.
    """
    seen = set()
    with log.open("rb") as lines:
        if start:
            lines.seek(start - 1)
            lines.readline()  # the rest of a line that was being written then
        for line in lines:
            if not line.endswith(b"\n"):
                return  # still being written
            event = _decode(line)
            if event.audit_id not in seen:
                seen.add(event.audit_id)
                path, _, _ = event.request_uri.partition("?")
                yield AuditedRequest(
                    event.request_received_timestamp, event.user_agent, event.verb, path, event.response_status.code
                )

"""The requests that a real server recorded in its audit log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec

__all__ = ["AuditedRequest", "read_audit_log"]


@dataclass(frozen=True, slots=True)
class AuditedRequest:
    """One answered request; a watch counts as answered once its response begins.

    Args:
        time: The time when the request arrived.
        user_agent: The user agent of the client.
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
    """Yield the requests of an audit log (``audit.k8s.io/v1``, one JSON line each) in the order of their responses.

    A watch has two lines, one when it begins and one when it ends; it counts once. The server writes a line before it
    finishes the response, so a client that received a response finds its request here.

    Args:
        log: The path of the audit log.
        start: The offset in bytes of the first line to read: an earlier size of the file.
    """
    seen = set()
    with log.open("rb") as lines:
        if start:
            lines.seek(start - 1)
            lines.readline()  # the rest of a line that was incomplete at that time
        for line in lines:
            if not line.endswith(b"\n"):
                return  # the server is still writing this line
            event = _decode(line)
            if event.audit_id not in seen:
                seen.add(event.audit_id)
                path, _, _ = event.request_uri.partition("?")
                yield AuditedRequest(
                    event.request_received_timestamp, event.user_agent, event.verb, path, event.response_status.code
                )

"""The audit log of a real server as a list of requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from konverge_cluster._internal.testing.audit_requests import read_audit_log


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def line(audit_id: str, verb: str = "get", *, stage: str = "ResponseComplete", code: int = 200) -> str:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": audit_id,
        "stage": stage,
        "requestURI": "/api/v1/namespaces/default/pods?limit=500",
        "verb": verb,
        "user": {"username": "admin"},
        "userAgent": "me",
        "responseStatus": {"metadata": {}, "code": code},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
        "stageTimestamp": "2026-01-01T00:00:00.000002Z",
    }
    return json.dumps(event) + "\n"


def test_each_request_has_its_verb_path_and_code(log: Path) -> None:
    log.write_text(line("1", "create", code=201))

    (request,) = read_audit_log(log)

    assert (request.user_agent, request.verb, request.path, request.code) == (
        "me",
        "create",
        "/api/v1/namespaces/default/pods",
        201,
    )


def test_a_watch_that_began_and_ended_is_one_request(log: Path) -> None:
    log.write_text(line("1", "watch", stage="ResponseStarted") + line("2") + line("1", "watch"))

    assert [request.verb for request in read_audit_log(log)] == ["watch", "get"]


def test_reading_begins_where_it_is_told_to(log: Path) -> None:
    log.write_text(line("1", "list"))
    begin = log.stat().st_size
    log.write_text(line("1", "list") + line("2", "get"))

    assert [request.verb for request in read_audit_log(log, begin)] == ["get"]


def test_a_line_that_was_half_written_at_the_beginning_is_no_request_of_ours(log: Path) -> None:
    log.write_text(line("1", "list") + line("2", "get"))

    assert [request.verb for request in read_audit_log(log, 20)] == ["get"]


def test_a_line_that_is_still_being_written_is_left_for_later(log: Path) -> None:
    log.write_text(line("1", "list") + line("2", "get")[:40])

    assert [request.verb for request in read_audit_log(log)] == ["list"]

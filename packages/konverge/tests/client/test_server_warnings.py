"""Warnings of the server are passed on each time, and logged once."""

from __future__ import annotations

import logging

import pytest

from konverge._internal.client.server_text_filter import ServerTextFilter
from konverge._internal.client.server_warnings import ServerWarningLog, parse_warnings
from konverge.client import Client, ServerWarning
from konverge.clock import SimulatedClock
from konverge.kube import GroupVersionKind, ObjectKey
from tests.client.scripted_transport import ScriptedResponse, ScriptedTransport

pytestmark = pytest.mark.anyio

PATH = "/api/v1/namespaces/default/configmaps/web"


@pytest.mark.parametrize(
    ("header", "texts"),
    [
        ('299 - "unknown field \\"foo\\""', ['unknown field "foo"']),
        ('299 - "a, b", 299 kube "c \\\\ d"', ["a, b", "c \\ d"]),
        ('299 - "old" "Sat, 21 Nov 2026 09:00:00 GMT", 299 - "new"', ["old", "new"]),
        ('299 - "two\nlines"', ["two lines"]),
        ('299 - "' + "x" * 5000 + '"', ["x" * 1000]),
        ('299 - "never closed', []),
        ("rubbish", []),
        ("", []),
    ],
)
def test_the_texts_of_a_header_are_found(header: str, texts: list[str]) -> None:
    assert parse_warnings(header) == texts


def test_an_answer_full_of_warnings_is_cut() -> None:
    assert len(parse_warnings(", ".join(f'299 - "{number}"' for number in range(1000)))) == 64


async def test_a_warning_is_passed_on_each_time_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[ServerWarning] = []
    answer = ScriptedResponse(
        json={"metadata": {"name": "web"}}, headers={"warning": '299 - "v1 is old", 299 - "move on"'}
    )
    client = Client(ScriptedTransport(answer, answer), clock=SimulatedClock(), on_warning=heard.append)
    with caplog.at_level(logging.WARNING, logger="konverge.client"):
        for _ in range(2):
            await client.get(GroupVersionKind("", "v1", "ConfigMap"), ObjectKey("default", "web"))

    assert heard == [ServerWarning(text, "GET", PATH) for text in ("v1 is old", "move on")] * 2
    assert [record.getMessage() for record in caplog.records] == [
        f"the API server warns: v1 is old (GET {PATH})",
        f"the API server warns: move on (GET {PATH})",
    ]


def test_what_was_logged_long_ago_is_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    warnings = ServerWarningLog()
    with caplog.at_level(logging.WARNING, logger="konverge.client"):
        for number in [0, *range(400), 0]:
            warnings.process_headers("GET", PATH, {"warning": f'299 - "number {number}"'}, ServerTextFilter())

    assert len(caplog.records) == 401

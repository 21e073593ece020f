"""Calls to Prometheus."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from konverge_box._internal.calls import CallError
from tests.box.calls.call_fixtures import run_calls, serve_site

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def run_query(answer: Any, *, status: int = 200, base: str = "", query: str = "up") -> tuple[Any, list[str]]:
    seen: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.append(f"{request.path} {request.query['query']}")
        return web.json_response(answer, status=status)

    served = {"api/v1/query": serve, "prometheus/api/v1/query": serve}
    async with serve_site(**served) as url:
        text = f"[{{name: load, protocol: prometheus, url: '{url}{base}', query: '{query}', continueOnError: true}}]"
        found = await run_calls(text, spec={"job": "web"})
    return found["load"], seen


def vector(*values: str) -> dict[str, Any]:
    samples = [{"metric": {"pod": str(index)}, "value": [1700000000.0, value]} for index, value in enumerate(values)]
    return {"status": "success", "data": {"resultType": "vector", "result": samples}}


async def test_the_first_sample_is_the_result_and_all_are_raw() -> None:
    found, seen = await run_query(vector("3", "4"), query='up{job="{{ spec.job }}"}')
    assert seen == ['/api/v1/query up{job="web"}']
    assert (found["result"], found["status"], found["ok"], found["error"]) == (3, 200, True, "")
    assert [sample["metric"]["pod"] for sample in found["raw"]["result"]] == ["0", "1"]


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        (vector("0.25"), 0.25),
        (vector("NaN"), "NaN"),
        (vector("+Inf"), "+Inf"),
        (vector(), None),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1, "7"]}}, 7),
        ({"status": "success", "data": {"resultType": "string", "result": [1, "7"]}}, "7"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, None),
        ({"status": "success", "data": {"resultType": "vector", "result": [{"value": 3}]}}, None),
    ],
)
async def test_the_result_is_a_number_where_it_is_one(answer: Any, result: Any) -> None:
    found, _ = await run_query(answer)
    assert found["result"] == result
    assert found["ok"] is True


@pytest.mark.parametrize("base", ["/prometheus", "/prometheus/", "/prometheus/api/v1/query"])
async def test_the_path_of_the_query_is_added_where_it_is_not(base: str) -> None:
    _, seen = await run_query(vector("1"), base=base)
    assert seen == ["/prometheus/api/v1/query up"]


async def test_a_query_that_prometheus_refuses_is_an_error_with_its_words() -> None:
    refusal = {"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"}
    found, _ = await run_query(refusal, status=400)
    assert found["error"] == "Prometheus rejects the query: parse error: unexpected end"
    assert (found["ok"], found["status"], found["result"]) == (False, 400, None)


@pytest.mark.parametrize("answer", [{"data": 3}, [], "up", {"status": "success", "data": []}])
async def test_what_is_no_answer_of_prometheus_is_an_error(answer: Any) -> None:
    found, _ = await run_query(answer)
    assert found["error"] == "expected a Prometheus response, found another format"


async def test_a_query_that_fails_ends_the_step() -> None:
    with pytest.raises(CallError, match="cannot be connected to"):
        await run_calls("[{name: load, protocol: prometheus, url: 'http://127.0.0.1:1', query: up}]")

"""Calls over HTTP to a server that behaves well."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from aiohttp import web

from konverge_box._internal.calls import CallError
from tests.box.calls.call_fixtures import QuickClock, build_caller, respond_with, run_calls, serve_site

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def test_a_json_answer_is_known_with_its_types() -> None:
    value = {"size": 3, "on": True, "name": "a", "list": [1.5, None]}
    async with serve_site(config=respond_with(value)) as url:
        found = await run_calls(f"[{{name: config, url: '{url}/config'}}]")
    result = found["config"]
    assert result["status"] == 200
    assert result["called"] is True
    assert result["ok"] is True
    assert result["error"] == ""
    assert result["json"] == value
    assert {name: result[name] for name in value} == value


async def test_an_answer_of_much_more_than_four_kilobytes_is_read_whole() -> None:
    value = {"items": ["x" * 1000] * 500}
    async with serve_site(big=respond_with(value)) as url:
        found = await run_calls(f"[{{name: big, url: '{url}/big'}}]")
    assert found["big"]["items"] == value["items"]


async def test_expressions_make_the_request() -> None:
    seen: dict[str, Any] = {}

    async def serve(request: web.Request) -> web.StreamResponse:
        seen.update(
            method=request.method, query=dict(request.query), headers=request.headers, body=await request.json()
        )
        return web.json_response({})

    text = """
      - name: order
        url: "%s/orders?size={{ spec.size }}"
        method: POST
        headers: {X-Size: "{{ spec.size }}", X-On: "{{ spec.on }}"}
        body: {size: "{{ spec.size }}", names: ["{{ metadata.name }}"]}
    """
    async with serve_site(orders=serve) as url:
        found = await run_calls(text % url, spec={"size": 3, "on": True})
    assert found["order"]["ok"]
    assert (seen["method"], seen["query"], seen["body"]) == ("POST", {"size": "3"}, {"size": 3, "names": ["web"]})
    assert (seen["headers"]["X-Size"], seen["headers"]["X-On"]) == ("3", "true")
    assert seen["headers"]["Content-Type"] == "application/json"
    assert seen["headers"]["Accept-Encoding"] == "identity"


async def test_a_call_reads_what_another_has_answered_wherever_it_stands() -> None:
    async def echo(request: web.Request) -> web.StreamResponse:
        return web.json_response({"said": request.query["say"]})

    text = """
      - {name: second, url: "%s/echo?say={{ external.first.token }}"}
      - {name: first, url: "%s/token"}
    """
    async with serve_site(echo=echo, token=respond_with({"token": "abc"})) as url:
        found = await run_calls(text % (url, url))
    assert found["second"]["said"] == "abc"


async def test_calls_that_do_not_read_each_other_are_under_way_together() -> None:
    all_here = asyncio.Barrier(3)

    async def serve(request: web.Request) -> web.StreamResponse:
        await all_here.wait()
        return web.json_response({})

    async with serve_site(meet=serve) as url:
        found = await run_calls("\n".join(f"- {{name: {name}, url: '{url}/meet', timeout: 5s}}" for name in "abc"))
    assert all(found[name]["ok"] for name in "abc")


async def test_a_call_whose_conditions_do_not_hold_is_not_made_and_the_others_are_visible() -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.json_response({})

    text = """
      - {name: skipped, url: "%s/a", when: [{field: spec.on, equals: true}]}
      - {name: made, url: "%s/b"}
    """
    async with serve_site(a=serve, b=serve) as url:
        found = await run_calls(text % (url, url), spec={"on": False})
    assert asked == ["/b"]
    assert found["skipped"] == {"called": False, "ok": False, "error": "", "status": 0, "body": "", "json": None}
    assert found["made"]["called"] is True


async def test_a_status_from_400_is_a_failure_which_ends_the_step_with_all_results_so_far() -> None:
    text = """
      - {name: bad, url: "%s/bad"}
      - {name: good, url: "%s/good"}
      - {name: later, url: "%s/good?{{ external.bad.status }}"}
    """
    async with serve_site(bad=respond_with({"why": "full"}, status=507), good=respond_with({"a": 1})) as url:
        with pytest.raises(CallError) as failure:
            await run_calls(text % (url, url, url))
    assert failure.value.where == "spec.crds.website.external"
    assert failure.value.problem == f"bad: {url}: expected status below 400, found 507"
    found = failure.value.results
    assert (found["bad"]["status"], found["bad"]["ok"], found["bad"]["why"]) == (507, False, "full")
    assert found["bad"]["error"] != ""
    assert found["good"]["a"] == 1
    assert found["later"]["called"] is False


async def test_a_failure_that_may_be_leaves_its_error_and_the_calls_after_it_are_made() -> None:
    text = """
      - {name: bad, url: "%s/bad", continueOnError: true}
      - {name: later, url: "%s/good?{{ external.bad.status }}", when: [{field: external.bad.ok, equals: false}]}
    """
    async with serve_site(bad=respond_with({}, status=503), good=respond_with({})) as url:
        found = await run_calls(text % (url, url))
    assert "503" in found["bad"]["error"]
    assert found["later"]["ok"] is True


@pytest.mark.parametrize(
    ("status", "expected", "is_ok"),
    [(404, "[404]", True), (200, "[204]", False), (302, "[302]", True), (204, "[]", True)],
)
async def test_the_expected_statuses_decide_what_a_success_is(status: int, expected: str, is_ok: bool) -> None:
    async with serve_site(a=respond_with({}, status=status, headers={"Location": "/elsewhere"})) as url:
        found = await run_calls(f"[{{name: a, url: '{url}/a', expectedStatus: {expected}, continueOnError: true}}]")
    assert found["a"]["ok"] is is_ok
    assert found["a"]["status"] == status


async def test_a_mistake_in_an_expression_ends_the_step_also_with_continue_on_error() -> None:
    text = "[{name: a, url: 'http://a.example/{{ spec.no.such }}', continueOnError: true}]"
    with pytest.raises(CallError, match=r"external\[0\]\.url"):
        await run_calls(text)


async def test_a_line_break_that_an_expression_brings_into_a_header_is_refused() -> None:
    text = "[{name: a, url: 'http://127.0.0.1:1/', headers: {X-A: '{{ spec.a }}'}}]"
    with pytest.raises(CallError, match=r"header X-A: expected one line") as failure:
        await run_calls(text, spec={"a": "1\r\nX-Evil: 2"})
    assert "Evil" not in str(failure.value)


class Sometimes:
    """A handler that fails a number of times and then responds."""

    def __init__(self, failures: int, status: int = 503, **headers: str) -> None:
        self.left, self.status, self.headers = failures, status, headers
        self.times = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.times += 1
        self.left -= 1
        if self.left >= 0:
            return web.json_response({}, status=self.status, headers=self.headers)
        return web.json_response({"a": 1})


@pytest.mark.parametrize("status", [429, 500, 503, 404])
async def test_a_status_that_is_not_expected_is_tried_again_after_pauses(status: int) -> None:
    clock, served = QuickClock(), Sometimes(2, status)
    async with serve_site(a=served) as url:
        text = f"[{{name: a, url: '{url}/a', retry: {{attempts: 3, initial: 1s, factor: 4, max: 3s}}}}]"
        found = await run_calls(text, by=build_caller(clock=clock))
    assert found["a"]["a"] == 1
    assert served.times == 3
    first, second = clock.slept
    assert 0.75 <= first <= 1.0
    assert 2.25 <= second <= 3.0


async def test_a_server_says_when_to_come_back_within_the_longest_pause() -> None:
    clock, served = QuickClock(), Sometimes(1, 429, **{"Retry-After": "20"})
    longer = Sometimes(1, 429, **{"Retry-After": "86400"})
    async with serve_site(a=served, b=longer) as url:
        await run_calls(f"[{{name: a, url: '{url}/a', retry: {{}}}}]", by=build_caller(clock=clock))
        await run_calls(f"[{{name: b, url: '{url}/b', retry: {{}}}}]", by=build_caller(clock=clock))
    assert clock.slept == [20.0, 30.0]


async def test_attempts_end_and_the_error_says_how_many_there_were() -> None:
    served = Sometimes(99)
    async with serve_site(a=served) as url:
        with pytest.raises(CallError, match=r"expected status below 400, found 503 \(4 attempts\)"):
            await run_calls(f"[{{name: a, url: '{url}/a', retry: {{attempts: 4}}}}]")
    assert served.times == 4


async def test_what_would_not_be_otherwise_the_next_time_is_not_tried_again() -> None:
    asked: list[str] = []

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        return web.Response(body=b" " * 2_000_000)

    async with serve_site(a=serve) as url:
        with pytest.raises(CallError, match="at most 1 MiB"):
            await run_calls(f"[{{name: a, url: '{url}/a', retry: {{attempts: 3}}}}]")
    assert asked == ["/a"]


async def test_an_answer_is_kept_for_all_who_ask_the_same() -> None:
    served = Sometimes(0)
    async with serve_site(a=served) as url, build_caller() as by:
        text = f"[{{name: a, url: '{url}/a?{{{{ spec.n }}}}', cacheFor: 1m}}]"
        for n in (1, 1, 2, 1, 2):
            await run_calls(text, by=by, spec={"n": n})
    assert served.times == 2


async def test_without_cache_for_every_pass_asks() -> None:
    served = Sometimes(0)
    async with serve_site(a=served) as url, build_caller() as by:
        for _ in range(3):
            await run_calls(f"[{{name: a, url: '{url}/a'}}]", by=by)
    assert served.times == 3


async def test_an_answer_that_one_box_may_see_is_not_given_to_one_that_may_not_reach_its_server() -> None:
    async with serve_site(a=respond_with({"a": 1})) as url, build_caller() as by:
        text = f"[{{name: a, url: '{url}/a', cacheFor: 1m}}]"
        assert (await run_calls(text, by=by))["a"]["a"] == 1
        with pytest.raises(CallError, match="may not be reached"):
            await run_calls(text, by=by, allowed=())


async def test_a_failure_of_a_kept_call_is_an_error_for_all_who_ask() -> None:
    served = Sometimes(99)
    async with serve_site(a=served) as url, build_caller() as by:
        text = f"[{{name: a, url: '{url}/a', cacheFor: 1m}}]"
        for _ in range(3):
            with pytest.raises(CallError, match="503"):
                await run_calls(text, by=by)
    assert served.times == 1


async def test_the_environments_proxy_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    async with serve_site(a=respond_with({})) as url:
        assert (await run_calls(f"[{{name: a, url: '{url}/a'}}]"))["a"]["ok"]

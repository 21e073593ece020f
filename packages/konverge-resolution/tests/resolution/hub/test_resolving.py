"""Definitions from hubs: which version, from which hub, in how many calls, and what is told when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge_resolution import Digest, Reason, Reference, ResolutionError
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.resolvers.hub import HubResolver
from konverge_resolution._internal.resolvers.hub.hub_order import list_hubs
from konverge_resolution.network import AllowedNetworks
from tests.resolution.http_resolution import QuickClock, build_engine, build_fetch, expect_resolution_error, resolve
from tests.resolution.hub.fake_hubs import FakeHub, build_definition, serve_hubs
from tests.resolution.network.http_servers import (
    FakeDns,
    build_guarded_http,
    certificate,
    never_respond,
    redirect_to,
    serve_connections,
    serve_site,
)

pytestmark = pytest.mark.anyio

HUB = HubResolver()
NAMED = {"name": "git-clone", "version": "0.7.0"}
PATH = "/api/v1/packages/tekton-task/tekton-catalog-tasks/git-clone"
TEKTON = {"type": "tekton", "name": "git-clone"}
TEKTON_PATH = "/v1/resource/Tekton/task/git-clone"


def build_settings(urls: list[str], hub_type: str = "artifact") -> dict[str, str]:
    return {f"{hub_type}-hub-urls": "\n".join(urls)}


# Versions.


@pytest.mark.parametrize("version", ["0.7.0", "0.7", "v0.7.0"])
async def test_an_exact_version_costs_one_call(version: str) -> None:
    hub = FakeHub()
    async with serve_hubs(hub) as urls:
        found = await resolve(HUB, {**NAMED, "version": version}, build_settings(urls))
    assert hub.asked == [f"{PATH}/0.7.0"]
    assert found.data == build_definition("0.7.0")
    assert (found.source.uri, found.source.digest) == (
        f"{urls[0]}{PATH}/0.7.0",
        {"sha256": Digest.of(found.data).hex},
    )
    assert (found.pinned["version"], found.pinned["url"]) == ("0.7.0", urls[0])


@pytest.mark.parametrize("version", ["0.7", "0.7.0"])
async def test_a_tekton_hub_is_asked_in_its_own_way(version: str) -> None:
    hub = FakeHub(["0.6", "0.7"])
    async with serve_hubs(hub) as urls:
        found = await resolve(HUB, {**TEKTON, "version": version}, build_settings(urls, "tekton"))
    assert hub.asked == [f"{TEKTON_PATH}/0.7/yaml"]
    assert found.data == build_definition("0.7")


RANGES = {
    ">=0.7,<2.0": "1.1.0",
    ">=0.7 <2.0": "1.1.0",
    "~0.7": "0.7.0",
    "^0.6": "0.6.0",
    "0.x": "0.10.0",
    "*": "2.0.0",
    "1": "1.1.0",
    "0.6 || 0.7": "0.7.0",
}


@pytest.mark.parametrize(("version", "best"), RANGES.items())
async def test_of_a_range_the_highest_version_is_taken(version: str, best: str) -> None:
    hub = FakeHub()
    async with serve_hubs(hub) as urls:
        found = await resolve(HUB, {**NAMED, "version": version}, build_settings(urls))
    assert (found.data, found.pinned["version"]) == (build_definition(best), best)
    assert hub.asked == [PATH, f"{PATH}/{best}"]


async def test_a_range_on_a_tekton_hub_takes_its_highest_version() -> None:
    hub = FakeHub(["0.9", "0.10", "1.0"])
    async with serve_hubs(hub) as urls:
        found = await resolve(HUB, {**TEKTON, "version": "<1"}, build_settings(urls, "tekton"))
    assert (found.data, hub.asked) == (build_definition("0.10"), [TEKTON_PATH, f"{TEKTON_PATH}/0.10/yaml"])


async def test_pre_releases_are_in_no_range_however_they_are_told() -> None:
    hub = FakeHub(["1.0.0", "1.1.0", "1.2.0-rc.1", "no version"], prereleases=["1.1.0"])
    async with serve_hubs(hub) as urls:
        assert (await resolve(HUB, {**NAMED, "version": ">=1"}, build_settings(urls))).pinned["version"] == "1.0.0"
        by_name = await resolve(HUB, {**NAMED, "version": "1.2.0-rc.1"}, build_settings(urls))
    assert by_name.data == build_definition("1.2.0-rc.1")


@pytest.mark.parametrize("versions", [["1.0.0-rc.1"], ["0.1.0"], []], ids=["a pre-release only", "others", "none"])
async def test_a_range_without_a_version_in_it_is_not_found(versions: list[str]) -> None:
    async with serve_hubs(FakeHub(versions)) as urls:
        error = await expect_resolution_error(HUB, {**NAMED, "version": ">=1"}, build_settings(urls))
    assert error.reason is Reason.NOT_FOUND
    assert f"hub {urls[0]} has no version >=1 of task 'git-clone'" in error.message


async def test_a_range_is_pinned_to_the_version_and_the_hub_that_satisfied_it() -> None:
    down, hub = FakeHub(status=503), FakeHub()
    async with serve_hubs(down, hub) as urls:
        pinned = (await resolve(HUB, {**NAMED, "version": "^1"}, build_settings(urls))).pinned
        assert (pinned["version"], pinned["url"]) == ("1.1.0", urls[1])
        down.status = 200  # and up again: it is not asked for what was pinned
        await resolve(HUB, pinned, build_settings(urls))
    assert (len(down.asked), len(hub.asked)) == (1, 3)


@pytest.mark.parametrize("version", ["1.1.0", "^1"])
async def test_a_version_that_is_published_again_is_not_hidden_by_the_first_one(version: str) -> None:
    # A hub's version is a name: neither it nor a range that comes to it is kept unless somebody asks for that.
    hub = FakeHub()
    async with serve_hubs(hub) as urls:
        engine = build_engine(HUB, QuickClock(), build_settings(urls))
        reference = Reference("hub", {**NAMED, "version": version})
        first = await engine.resolve(reference, Requester("web"))
        assert not HUB.is_pinned(first.resolved.pinned)
        hub.answer = lambda path: (
            msgspec.json.encode({"available_versions": [{"version": "1.1.0", "prerelease": False, "ts": 1}]})
            if path == PATH
            else msgspec.json.encode({"data": {"manifestRaw": build_definition("again").decode()}})
        )
        again = await engine.resolve(reference, Requester("web"))
    assert (first.resolved.data, again.resolved.data) == (build_definition("1.1.0"), build_definition("again"))


# Lists of hubs.


async def test_a_hub_that_is_down_is_passed_over() -> None:
    hub = FakeHub()
    async with serve_hubs(FakeHub(status=500), FakeHub(status=429), hub) as urls:
        found = await resolve(HUB, NAMED, build_settings(["http://127.0.0.1:1", *urls]))
    assert found.source.uri.startswith(urls[2])
    assert len(hub.asked) == 1


@pytest.mark.parametrize("version", ["9.9.9", ">=9"])
async def test_a_hub_that_has_no_such_version_has_the_last_word(version: str) -> None:
    second = FakeHub(["9.9.9"])
    async with serve_hubs(FakeHub(), second) as urls:
        error = await expect_resolution_error(HUB, {**NAMED, "version": version}, build_settings(urls))
    assert (error.reason, second.asked) == (Reason.NOT_FOUND, [])


@pytest.mark.parametrize("status", [401, 403])
async def test_a_hub_that_refuses_has_the_last_word(status: int) -> None:
    second = FakeHub()
    async with serve_hubs(FakeHub(status=status), second) as urls:
        error = await expect_resolution_error(HUB, NAMED, build_settings(urls))
    assert (error.reason, second.asked) == (Reason.AUTHENTICATION_REQUIRED, [])


async def test_a_version_that_is_gone_is_one_that_the_hub_does_not_have() -> None:
    async with serve_hubs(FakeHub(status=410)) as urls:
        error = await expect_resolution_error(HUB, NAMED, build_settings(urls))
    assert (error.reason, error.message) == (
        Reason.NOT_FOUND,
        f"hub {urls[0]} has no version 0.7.0 of task 'git-clone'",
    )


async def test_hubs_that_are_all_down_are_told_in_one_message() -> None:
    pauses = [{"Retry-After": "9"}, {"Retry-After": "20"}]
    async with serve_hubs(FakeHub(status=503, headers=pauses[0]), FakeHub(status=429, headers=pauses[1])) as urls:
        error = await expect_resolution_error(HUB, NAMED, build_settings([*urls, "http://127.0.0.1:1"]))
    assert error.message == (
        f"none of 3 hubs can be reached: hub {urls[0]} is temporarily unavailable (status 503); hub {urls[1]} "
        "limits the rate of requests (status 429); hub http://127.0.0.1:1 cannot be connected to: connection refused"
    )
    assert (error.reason, error.retry_after_seconds) == (Reason.UNREACHABLE, 9.0)


def test_of_many_hubs_the_first_ten_are_asked_each_once() -> None:
    urls = [f"https://hub-{number}.example" for number in range(12)]
    assert list_hubs({"type": "artifact"}, build_settings([urls[0], *urls])) == tuple(urls[:10])


@pytest.mark.slow
async def test_a_hub_that_hangs_leaves_time_for_the_next() -> None:
    async with serve_connections(never_respond) as port, serve_hubs(FakeHub()) as urls:
        found = await resolve(HUB, NAMED, build_settings([f"http://127.0.0.1:{port}", *urls]), seconds=0.6)
        error = await expect_resolution_error(
            HUB, NAMED, build_settings([f"http://127.0.0.1:{port}", f"http://127.0.0.2:{port}"]), seconds=0.2
        )
    assert found.source.uri.startswith(urls[0])
    assert f"hub http://127.0.0.1:{port} did not respond within 0.09 s" in error.message


ANSWERS: dict[str, bytes] = {
    "no JSON": b"<html>",
    "no definition": b'{"data": {}}',
    "another form": b'{"data": {"manifestRaw": 7}}',
    "deep": b"[" * 100_000,
    "no text": b'{"data": {"manifestRaw": "\xff"}}',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_does_not_answer_as_a_hub_does_is_passed_over_as_well(answer: bytes) -> None:
    async with serve_hubs(FakeHub(answer=lambda path: answer), FakeHub()) as urls:
        assert (await resolve(HUB, NAMED, build_settings(urls))).data == build_definition("0.7.0")
        error = await expect_resolution_error(HUB, NAMED, build_settings(urls[:1]))
    assert error.message == f"hub {urls[0]}: expected a hub's response, found another format"


async def test_where_a_hub_redirected_to_is_told() -> None:
    async with serve_site(FakeHub()) as other, serve_site(redirect_to(f"{other}{PATH}/0.7.0")) as url:
        found = await resolve(HUB, {**NAMED, "url": url})
    assert (found.source.uri, found.found_at) == (f"{url}{PATH}/0.7.0", f"{other}{PATH}/0.7.0")


async def test_a_definition_that_is_too_large_is_refused() -> None:
    def answer(path: str) -> bytes:
        return msgspec.json.encode({"data": {"manifestRaw": "x" * ((1 << 20) + ("more" in path))}})

    async with serve_hubs(FakeHub(answer=answer)) as urls:
        assert len((await resolve(HUB, NAMED, build_settings(urls))).data) == 1 << 20
        error = await expect_resolution_error(HUB, {**NAMED, "name": "more"}, build_settings(urls))
    async with serve_hubs(FakeHub(answer=lambda path: b" " * (4 << 20))) as urls:
        huge = await expect_resolution_error(HUB, NAMED, build_settings(urls))
    assert (error.reason, huge.reason) == (Reason.TOO_LARGE, Reason.TOO_LARGE)


# Names and addresses.

NAMES = {
    "../../evil": "..%2F..%2Fevil",
    "a%2fb": "a%252fb",
    "a?x=": "a%3Fx=",
    "a#b": "a%23b",
    "a/b": "a%2Fb",
    "ä ö": "%C3%A4%20%C3%B6",
}


@pytest.mark.parametrize(("name", "sent"), NAMES.items())
@pytest.mark.parametrize("parameter", ["name", "catalog"])
async def test_a_name_stays_one_segment_of_the_path(parameter: str, name: str, sent: str) -> None:
    hub = FakeHub()
    async with serve_hubs(hub) as urls:
        await resolve(HUB, {**NAMED, parameter: name}, build_settings([f"{urls[0]}/hub/"]))
    asked = {"name": f"tekton-catalog-tasks/{sent}", "catalog": f"{sent}/git-clone"}[parameter]
    assert hub.asked[0].replace("%3D", "=") == f"/hub/api/v1/packages/tekton-task/{asked}/0.7.0"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"name": ".."}, "parameter 'name': expected one line of at most 253 characters"),
        ({"catalog": "."}, "parameter 'catalog': expected one line"),
        ({"name": "a\nb"}, "parameter 'name': expected one line"),
        ({"name": "a" * 254}, "parameter 'name': expected one line"),
        ({"name": ""}, "parameter 'name': expected a value, found none"),
        ({"version": ""}, "parameter 'version': expected a value, found none"),
        ({"version": "../.."}, "parameter 'version': expected a version or a range"),
        ({"kind": "secret"}, "parameter 'kind': expected task, pipeline or stepaction, found 'secret'"),
        ({"type": "docker"}, "parameter 'type': expected artifact or tekton, found 'docker'"),
        ({"kind": "stepaction"}, "parameter 'catalog': expected a value, found none, and the operator has no default"),
        ({"url": "file:///etc"}, "parameter 'url' cannot be used: expected http:// or https://"),
        ({"url": "https://example.com/?a=b"}, "parameter 'url' cannot be used: expected no query"),
        ({"nmae": "a"}, "parameter 'nmae': no such parameter; expected one of type, kind"),
        ({"name": ["a"]}, "parameter 'name': expected text"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(params: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ResolutionError) as failure:
        build_fetch(HUB, {**NAMED, **params})
    assert failure.value.reason is Reason.INVALID_PARAMETERS
    assert problem in failure.value.message


def test_the_hub_of_the_reference_stands_in_place_of_the_list() -> None:
    params = build_fetch(HUB, {**NAMED, "url": "https://hub.example/api/"}).params
    assert HUB.source_uri(params, {}) == f"https://hub.example/api{PATH}"


def test_settings_are_as_tekton_writes_them() -> None:
    settings = {
        "artifact-hub-urls": "- https://one.example/\n- 'https://two.example'\n",
        "default-kind": "pipeline",
    }
    fetch = build_fetch(HUB, NAMED, settings)
    path = "/api/v1/packages/tekton-pipeline/tekton-catalog-pipelines/git-clone"
    assert HUB.source_uri(fetch.params, fetch.settings) == f"https://one.example{path}"


@pytest.mark.parametrize("text", ["file:///etc", "https://u:hunter2@hub.example", ""])
def test_a_list_of_hubs_that_cannot_be_used_is_the_operators_mistake(text: str) -> None:
    with pytest.raises(ResolutionError, match="setting 'artifact-hub-urls'") as failure:
        build_fetch(HUB, NAMED, {"artifact-hub-urls": text})
    assert failure.value.reason is Reason.INVALID_CONFIGURATION
    assert "hunter2" not in failure.value.message


def test_a_tekton_hub_has_to_be_named_since_there_is_no_public_one() -> None:
    with pytest.raises(ResolutionError, match="'tekton-hub-urls': expected the address of a hub, found none"):
        build_fetch(HUB, {**TEKTON, "version": "0.7"})


# Whom it reaches.


@pytest.mark.parametrize("host", ["127.0.0.1", "[fd00::1]", "169.254.169.254", "private.example"])
async def test_private_addresses_are_denied_and_no_other_hub_is_asked(host: str) -> None:
    hub, names = FakeHub(), FakeDns({"private.example": [["10.0.0.1"]]})
    http = build_guarded_http(names, networks=AllowedNetworks())
    async with serve_hubs(hub) as urls:
        error = await expect_resolution_error(HUB, NAMED, build_settings([f"http://{host}", *urls]), http=http)
    assert (error.reason, hub.asked) == (Reason.DENIED, [])


async def test_a_private_authority_is_a_setting(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    async with serve_site(FakeHub(), tls=tls) as url:
        found = await resolve(HUB, NAMED, {**build_settings([url]), "ca-certificates": authority})
        error = await expect_resolution_error(HUB, NAMED, build_settings([url]))
    assert found.data == build_definition("0.7.0")
    assert error.message.startswith(f"hub {url} has a certificate that is not trusted; add its certificate authority")


async def test_a_hub_that_is_not_trusted_or_has_no_tls_is_not_passed_over(tmp_path: Path) -> None:
    _, context = certificate(tmp_path, "127.0.0.1")
    next_one = FakeHub()
    async with serve_hubs(FakeHub(), next_one) as urls, serve_site(FakeHub(), tls=context) as untrusted:
        for first in (untrusted, urls[0].replace("http:", "https:")):
            error = await expect_resolution_error(HUB, NAMED, build_settings([first, urls[1]]))
            assert (error.reason, error.message.startswith(f"hub {first} ")) == (Reason.DENIED, True)
    assert next_one.asked == []


async def test_a_resolution_that_is_cancelled_leaves_no_connection() -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()

    before = asyncio.all_tasks()
    async with serve_connections(talk) as port:
        fetch = build_fetch(HUB, NAMED, build_settings([f"http://127.0.0.1:{port}"]))
        task = asyncio.create_task(HUB.resolve(fetch))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == before


async def test_the_engine_asks_a_hub_twice_for_a_range_and_once_for_a_version() -> None:
    hub = FakeHub()
    async with serve_hubs(hub) as urls:
        engine = build_engine(HUB, QuickClock(), build_settings(urls))
        for version in ("^1", "1.1"):
            outcome = await engine.resolve(Reference("hub", {**NAMED, "version": version}), Requester("web"))
            assert outcome.object["kind"] == "Task"
    assert hub.asked == [PATH, f"{PATH}/1.1.0", f"{PATH}/1.1.0"]

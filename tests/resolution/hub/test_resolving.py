"""Definitions from hubs: which version, from which hub, in how many calls, and what is told when there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge.network import Networks
from konverge.resolution import Digest, Reason, Reference, ResolutionError
from konverge.resolution.engine import Requester
from konverge.resolution.resolvers.hub import HubResolver
from konverge.resolution.resolvers.hub.turns import hubs_of
from tests.network.stands import Names, certificate, guarded, server, silent, site, to
from tests.resolution.fetching import QuickClock, engine_of, fetch_of, refused, resolve
from tests.resolution.hub.hubs import Hub, definition, hubs

pytestmark = pytest.mark.anyio

HUB = HubResolver()
NAMED = {"name": "git-clone", "version": "0.7.0"}
PATH = "/api/v1/packages/tekton-task/tekton-catalog-tasks/git-clone"
TEKTON = {"type": "tekton", "name": "git-clone"}
TEKTON_PATH = "/v1/resource/Tekton/task/git-clone"


def listed(urls: list[str], hub_type: str = "artifact") -> dict[str, str]:
    return {f"{hub_type}-hub-urls": "\n".join(urls)}


# Versions.


@pytest.mark.parametrize("version", ["0.7.0", "0.7", "v0.7.0"])
async def test_an_exact_version_costs_one_call(version: str) -> None:
    hub = Hub()
    async with hubs(hub) as urls:
        found = await resolve(HUB, {**NAMED, "version": version}, listed(urls))
    assert hub.asked == [f"{PATH}/0.7.0"]
    assert found.data == definition("0.7.0")
    assert (found.source.uri, found.source.digest) == (
        f"{urls[0]}{PATH}/0.7.0",
        {"sha256": Digest.of(found.data).hex},
    )
    assert (found.pinned["version"], found.pinned["url"]) == ("0.7.0", urls[0])


@pytest.mark.parametrize("version", ["0.7", "0.7.0"])
async def test_a_tekton_hub_is_asked_in_its_own_way(version: str) -> None:
    hub = Hub(["0.6", "0.7"])
    async with hubs(hub) as urls:
        found = await resolve(HUB, {**TEKTON, "version": version}, listed(urls, "tekton"))
    assert hub.asked == [f"{TEKTON_PATH}/0.7/yaml"]
    assert found.data == definition("0.7")


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
    hub = Hub()
    async with hubs(hub) as urls:
        found = await resolve(HUB, {**NAMED, "version": version}, listed(urls))
    assert (found.data, found.pinned["version"]) == (definition(best), best)
    assert hub.asked == [PATH, f"{PATH}/{best}"]


async def test_a_range_on_a_tekton_hub_takes_its_highest_version() -> None:
    hub = Hub(["0.9", "0.10", "1.0"])
    async with hubs(hub) as urls:
        found = await resolve(HUB, {**TEKTON, "version": "<1"}, listed(urls, "tekton"))
    assert (found.data, hub.asked) == (definition("0.10"), [TEKTON_PATH, f"{TEKTON_PATH}/0.10/yaml"])


async def test_pre_releases_are_in_no_range_however_they_are_told() -> None:
    hub = Hub(["1.0.0", "1.1.0", "1.2.0-rc.1", "no version"], prereleases=["1.1.0"])
    async with hubs(hub) as urls:
        assert (await resolve(HUB, {**NAMED, "version": ">=1"}, listed(urls))).pinned["version"] == "1.0.0"
        by_name = await resolve(HUB, {**NAMED, "version": "1.2.0-rc.1"}, listed(urls))
    assert by_name.data == definition("1.2.0-rc.1")


@pytest.mark.parametrize("versions", [["1.0.0-rc.1"], ["0.1.0"], []], ids=["a pre-release only", "others", "none"])
async def test_a_range_without_a_version_in_it_is_not_found(versions: list[str]) -> None:
    async with hubs(Hub(versions)) as urls:
        error = await refused(HUB, {**NAMED, "version": ">=1"}, listed(urls))
    assert error.reason is Reason.NOT_FOUND
    assert f"hub {urls[0]} has no version >=1 of task 'git-clone'" in error.message


async def test_a_range_is_pinned_to_the_version_and_the_hub_that_satisfied_it() -> None:
    down, hub = Hub(status=503), Hub()
    async with hubs(down, hub) as urls:
        pinned = (await resolve(HUB, {**NAMED, "version": "^1"}, listed(urls))).pinned
        assert (pinned["version"], pinned["url"]) == ("1.1.0", urls[1])
        down.status = 200  # and up again: it is not asked for what was pinned
        await resolve(HUB, pinned, listed(urls))
    assert (len(down.asked), len(hub.asked)) == (1, 3)


@pytest.mark.parametrize("version", ["1.1.0", "^1"])
async def test_a_version_that_is_published_again_is_not_hidden_by_the_first_one(version: str) -> None:
    # A hub's version is a name: neither it nor a range that comes to it is kept unless somebody asks for that.
    hub = Hub()
    async with hubs(hub) as urls:
        engine = engine_of(HUB, QuickClock(), listed(urls))
        reference = Reference("hub", {**NAMED, "version": version})
        first = await engine.resolve(reference, Requester("web"))
        assert not HUB.is_pinned(first.resolved.pinned)
        hub.answer = lambda path: (
            msgspec.json.encode({"available_versions": [{"version": "1.1.0", "prerelease": False, "ts": 1}]})
            if path == PATH
            else msgspec.json.encode({"data": {"manifestRaw": definition("again").decode()}})
        )
        again = await engine.resolve(reference, Requester("web"))
    assert (first.resolved.data, again.resolved.data) == (definition("1.1.0"), definition("again"))


# Lists of hubs.


async def test_a_hub_that_is_down_is_passed_over() -> None:
    hub = Hub()
    async with hubs(Hub(status=500), Hub(status=429), hub) as urls:
        found = await resolve(HUB, NAMED, listed(["http://127.0.0.1:1", *urls]))
    assert found.source.uri.startswith(urls[2])
    assert len(hub.asked) == 1


@pytest.mark.parametrize("version", ["9.9.9", ">=9"])
async def test_a_hub_that_has_no_such_version_has_the_last_word(version: str) -> None:
    second = Hub(["9.9.9"])
    async with hubs(Hub(), second) as urls:
        error = await refused(HUB, {**NAMED, "version": version}, listed(urls))
    assert (error.reason, second.asked) == (Reason.NOT_FOUND, [])


@pytest.mark.parametrize("status", [401, 403])
async def test_a_hub_that_refuses_has_the_last_word(status: int) -> None:
    second = Hub()
    async with hubs(Hub(status=status), second) as urls:
        error = await refused(HUB, NAMED, listed(urls))
    assert (error.reason, second.asked) == (Reason.AUTHENTICATION_REQUIRED, [])


async def test_a_version_that_is_gone_is_one_that_the_hub_does_not_have() -> None:
    async with hubs(Hub(status=410)) as urls:
        error = await refused(HUB, NAMED, listed(urls))
    assert (error.reason, error.message) == (
        Reason.NOT_FOUND,
        f"hub {urls[0]} has no version 0.7.0 of task 'git-clone'",
    )


async def test_hubs_that_are_all_down_are_told_in_one_message() -> None:
    pauses = [{"Retry-After": "9"}, {"Retry-After": "20"}]
    async with hubs(Hub(status=503, headers=pauses[0]), Hub(status=429, headers=pauses[1])) as urls:
        error = await refused(HUB, NAMED, listed([*urls, "http://127.0.0.1:1"]))
    assert error.message == (
        f"none of 3 hubs could be asked: hub {urls[0]} is not available at the moment (status 503); hub {urls[1]} is "
        "asked too often (status 429); hub http://127.0.0.1:1 cannot be connected to: connection refused"
    )
    assert (error.reason, error.retry_after_seconds) == (Reason.UNREACHABLE, 9.0)


def test_of_many_hubs_the_first_ten_are_asked_each_once() -> None:
    urls = [f"https://hub-{number}.example" for number in range(12)]
    assert hubs_of({"type": "artifact"}, listed([urls[0], *urls])) == tuple(urls[:10])


async def test_a_hub_that_hangs_leaves_time_for_the_next() -> None:
    async with server(silent) as port, hubs(Hub()) as urls:
        found = await resolve(HUB, NAMED, listed([f"http://127.0.0.1:{port}", *urls]), seconds=0.6)
        error = await refused(HUB, NAMED, listed([f"http://127.0.0.1:{port}", f"http://127.0.0.2:{port}"]), seconds=0.2)
    assert found.source.uri.startswith(urls[0])
    assert f"hub http://127.0.0.1:{port} did not answer within 0.09 s" in error.message


ANSWERS: dict[str, bytes] = {
    "no JSON": b"<html>",
    "no definition": b'{"data": {}}',
    "another form": b'{"data": {"manifestRaw": 7}}',
    "deep": b"[" * 100_000,
    "no text": b'{"data": {"manifestRaw": "\xff"}}',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_does_not_answer_as_a_hub_does_is_passed_over_as_well(answer: bytes) -> None:
    async with hubs(Hub(answer=lambda path: answer), Hub()) as urls:
        assert (await resolve(HUB, NAMED, listed(urls))).data == definition("0.7.0")
        error = await refused(HUB, NAMED, listed(urls[:1]))
    assert error.message == f"hub {urls[0]}: expected an answer of a hub, found something else"


async def test_where_a_hub_redirected_to_is_told() -> None:
    async with site(Hub()) as other, site(to(f"{other}{PATH}/0.7.0")) as url:
        found = await resolve(HUB, {**NAMED, "url": url})
    assert (found.source.uri, found.found_at) == (f"{url}{PATH}/0.7.0", f"{other}{PATH}/0.7.0")


async def test_a_definition_that_is_too_large_is_refused() -> None:
    def answer(path: str) -> bytes:
        return msgspec.json.encode({"data": {"manifestRaw": "x" * ((1 << 20) + ("more" in path))}})

    async with hubs(Hub(answer=answer)) as urls:
        assert len((await resolve(HUB, NAMED, listed(urls))).data) == 1 << 20
        error = await refused(HUB, {**NAMED, "name": "more"}, listed(urls))
    async with hubs(Hub(answer=lambda path: b" " * (4 << 20))) as urls:
        huge = await refused(HUB, NAMED, listed(urls))
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
    hub = Hub()
    async with hubs(hub) as urls:
        await resolve(HUB, {**NAMED, parameter: name}, listed([f"{urls[0]}/hub/"]))
    asked = {"name": f"tekton-catalog-tasks/{sent}", "catalog": f"{sent}/git-clone"}[parameter]
    assert hub.asked[0].replace("%3D", "=") == f"/hub/api/v1/packages/tekton-task/{asked}/0.7.0"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"name": ".."}, "parameter 'name': expected one line of at most 253 letters"),
        ({"catalog": "."}, "parameter 'catalog': expected one line"),
        ({"name": "a\nb"}, "parameter 'name': expected one line"),
        ({"name": "a" * 254}, "parameter 'name': expected one line"),
        ({"name": ""}, "parameter 'name': expected one, found none"),
        ({"version": ""}, "parameter 'version': expected one, found none"),
        ({"version": "../.."}, "parameter 'version': expected a version or a range"),
        ({"kind": "secret"}, "parameter 'kind': expected task, pipeline or stepaction, found 'secret'"),
        ({"type": "docker"}, "parameter 'type': expected artifact or tekton, found 'docker'"),
        ({"kind": "stepaction"}, "parameter 'catalog': expected one, found none, and the operator has no default"),
        ({"url": "file:///etc"}, "parameter 'url' cannot be used: expected http:// or https://"),
        ({"url": "https://example.com/?a=b"}, "parameter 'url' cannot be used: expected no query"),
        ({"nmae": "a"}, "parameter 'nmae': no such parameter; there are: type, kind"),
        ({"name": ["a"]}, "parameter 'name': expected text"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named(params: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(ResolutionError) as failure:
        fetch_of(HUB, {**NAMED, **params})
    assert failure.value.reason is Reason.INVALID_PARAMETERS
    assert problem in failure.value.message


def test_the_hub_of_the_reference_stands_in_place_of_the_list() -> None:
    params = fetch_of(HUB, {**NAMED, "url": "https://hub.example/api/"}).params
    assert HUB.source_uri(params, {}) == f"https://hub.example/api{PATH}"


def test_settings_are_as_tekton_writes_them() -> None:
    settings = {
        "artifact-hub-urls": "- https://one.example/\n- 'https://two.example'\n",
        "default-kind": "pipeline",
    }
    fetch = fetch_of(HUB, NAMED, settings)
    path = "/api/v1/packages/tekton-pipeline/tekton-catalog-pipelines/git-clone"
    assert HUB.source_uri(fetch.params, fetch.settings) == f"https://one.example{path}"


@pytest.mark.parametrize("text", ["file:///etc", "https://u:hunter2@hub.example", ""])
def test_a_list_of_hubs_that_cannot_be_used_is_the_operators_mistake(text: str) -> None:
    with pytest.raises(ResolutionError, match="setting 'artifact-hub-urls'") as failure:
        fetch_of(HUB, NAMED, {"artifact-hub-urls": text})
    assert failure.value.reason is Reason.INVALID_CONFIGURATION
    assert "hunter2" not in failure.value.message


def test_a_tekton_hub_has_to_be_named_since_there_is_no_public_one() -> None:
    with pytest.raises(ResolutionError, match="'tekton-hub-urls': expected the address of a hub, found none"):
        fetch_of(HUB, {**TEKTON, "version": "0.7"})


# Whom it reaches.


@pytest.mark.parametrize("host", ["127.0.0.1", "[fd00::1]", "169.254.169.254", "private.example"])
async def test_private_addresses_are_denied_and_no_other_hub_is_asked(host: str) -> None:
    hub, names = Hub(), Names({"private.example": [["10.0.0.1"]]})
    http = guarded(names, networks=Networks())
    async with hubs(hub) as urls:
        error = await refused(HUB, NAMED, listed([f"http://{host}", *urls]), http=http)
    assert (error.reason, hub.asked) == (Reason.DENIED, [])


async def test_a_private_authority_is_a_setting(tmp_path: Path) -> None:
    authority, tls = certificate(tmp_path)
    async with site(Hub(), tls=tls) as url:
        found = await resolve(HUB, NAMED, {**listed([url]), "ca-certificates": authority})
        error = await refused(HUB, NAMED, listed([url]))
    assert found.data == definition("0.7.0")
    assert error.message.startswith(f"hub {url} has a certificate that is not trusted; setting 'ca-certificates' has")


async def test_a_hub_that_is_not_trusted_or_has_no_tls_is_not_passed_over(tmp_path: Path) -> None:
    _, context = certificate(tmp_path, "127.0.0.1")
    next_one = Hub()
    async with hubs(Hub(), next_one) as urls, site(Hub(), tls=context) as untrusted:
        for first in (untrusted, urls[0].replace("http:", "https:")):
            error = await refused(HUB, NAMED, listed([first, urls[1]]))
            assert (error.reason, error.message.startswith(f"hub {first} ")) == (Reason.DENIED, True)
    assert next_one.asked == []


async def test_a_resolution_that_is_cancelled_leaves_no_connection() -> None:
    arrived = asyncio.Event()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        arrived.set()
        await reader.read()

    before = asyncio.all_tasks()
    async with server(talk) as port:
        fetch = fetch_of(HUB, NAMED, listed([f"http://127.0.0.1:{port}"]))
        task = asyncio.create_task(HUB.resolve(fetch))
        await arrived.wait()
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert asyncio.all_tasks() == before


async def test_the_engine_asks_a_hub_twice_for_a_range_and_once_for_a_version() -> None:
    hub = Hub()
    async with hubs(hub) as urls:
        engine = engine_of(HUB, QuickClock(), listed(urls))
        for version in ("^1", "1.1"):
            outcome = await engine.resolve(Reference("hub", {**NAMED, "version": version}), Requester("web"))
            assert outcome.object["kind"] == "Task"
    assert hub.asked == [PATH, f"{PATH}/1.1.0", f"{PATH}/1.1.0"]

"""What owners get of definitions that they ask for: by request and by their own process, on either cluster."""

from __future__ import annotations

import asyncio
import base64

import pytest

from konverge.errors import ConflictError
from konverge.kube import Object, ObjectKey
from konverge.kube.times import format_time
from konverge.resolution import Digest, Fetch, Reason, ResolutionError
from konverge.resolution.consuming import Definitions
from konverge.resolution.requests import REQUEST
from konverge.resolution.requests.own import request_for
from tests.resolution.consuming.readers import READER, Readers, ReaderSpec, key_of_page, recorded, written
from tests.resolution.requests.desk import CONFIG_MAP
from tests.resolution.shelf import BOX, Shelf

pytestmark = pytest.mark.anyio

NEWER = BOX.replace(b"name: a", b"name: b")
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])

LABEL = "resolution.konverge.dev/definition"


async def copies(readers: Readers) -> list[Object]:
    listed = await readers.desk.cluster.client.list(CONFIG_MAP, namespace=readers.desk.namespace, label_selector=LABEL)
    return listed.items


async def requests_of(readers: Readers) -> list[Object]:
    return (await readers.desk.cluster.client.list(REQUEST, namespace=readers.desk.namespace)).items


async def page_of(readers: Readers, name: str, owner: str = "a") -> str:
    key = key_of_page(readers.desk, owner, name)
    return str((await readers.desk.cluster.client.get(CONFIG_MAP, key))["data"]["text"])


async def test_a_definition_reaches_a_component_and_the_record_says_where_it_is_from(readers: Readers) -> None:
    async with readers.running(Shelf()):
        await readers.create("a", reads={"one": "1"})
        condition = await readers.until(reason="Resolved")
        await readers.until(condition_type="PagesReady", reason="Healthy")

    digest = Digest.of(BOX).hex
    assert (condition.status, condition.message) == ("True", f"one: from https://a.example/one at sha256:{digest}")
    assert await page_of(readers, "one") == BOX.decode()
    assert recorded(await readers.get()) == {
        "one": {
            "resolver": "shelf",
            "uri": "https://a.example/one",
            "digest": {"sha256": digest},
            "entryPoint": "",
            "content": f"sha256:{digest}",
        }
    }
    assert await requests_of(readers) == []


@in_simulated_time
async def test_a_component_waits_and_says_for_what_and_no_worker_does(readers: Readers) -> None:
    shelf = Shelf()
    async with readers.running(shelf):
        await readers.create("slow", reads={"one": "1"}, seconds="30")
        resolving = await readers.until("slow", reason="Resolving")
        blocked = await readers.until("slow", "PagesReady", reason="Blocked")
        await readers.create("fast", reads={"two": "1"})
        await readers.until("fast", reason="Resolved", within=10)

    assert (resolving.status, resolving.message) == ("Unknown", "one: resolving shelf https://a.example/one")
    assert blocked.message.endswith("one: resolving shelf https://a.example/one")


@in_simulated_time
async def test_everything_that_an_owner_needs_is_asked_for_at_once(readers: Readers) -> None:
    shelf = Shelf()
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1", "two": "1", "three": "1"}, seconds="2")
        await readers.desk.cluster.eventually(lambda: shelf.running == 3, describe="three are fetched at once")
        await readers.until(reason="Resolved")
    assert len(shelf.calls) == 3


@in_simulated_time
async def test_a_run_never_changes_its_definition_and_asks_nobody_again(readers: Readers) -> None:
    content = [BOX]
    shelf = Shelf(answer=lambda fetch, calls: content[0])
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "main"})
        await readers.until(reason="Resolved")
        content[0] = NEWER
        await readers.edit(reads={"one": "main", "two": "main"})
        await readers.desk.cluster.eventually(
            lambda: len(shelf.calls) == 2, timeout_seconds=20, describe="the second one is fetched"
        )
        await readers.until(condition_type="PagesReady", reason="Healthy")
    async with readers.running(shelf):
        await readers.edit(reads={"one": "main"})
        await readers.until(condition_type="PagesReady", reason="Healthy")

    assert await page_of(readers, "one") == BOX.decode()
    assert len(shelf.calls) == 2


async def test_another_reference_is_another_definition_and_the_copy_of_the_former_goes(readers: Readers) -> None:
    shelf = Shelf(answer=lambda fetch, calls: BOX if fetch.params["version"] == "1" else NEWER)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.until(reason="Resolved")
        await readers.edit(reads={"one": "2"})

        async def is_new() -> bool:
            return [base64.b64decode(copy["binaryData"]["content"]) for copy in await copies(readers)] == [NEWER]

        await readers.desk.cluster.eventually(is_new, describe="there is the new copy alone")


@in_simulated_time
async def test_the_copy_of_the_former_goes_too_when_the_process_ends_in_the_middle(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = Shelf(answer=lambda fetch, calls: BOX if fetch.params["version"] == "1" else NEWER)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.until(reason="Resolved")
    reached = asyncio.Event()

    async def get_no_further(*given: object) -> None:
        reached.set()
        await asyncio.get_running_loop().create_future()

    with monkeypatch.context() as dying:
        dying.setattr(Definitions, "_remove_others", get_no_further)
        async with readers.running(shelf):
            await readers.edit(reads={"one": "2"})
            await readers.desk.cluster.eventually(reached.is_set, describe="it was about to remove the former")
    async with readers.running(shelf):

        async def is_new() -> bool:
            return [base64.b64decode(copy["binaryData"]["content"]) for copy in await copies(readers)] == [NEWER]

        await readers.desk.cluster.eventually(is_new, describe="there is the new copy alone")


@in_simulated_time
async def test_a_failure_has_its_reason_and_message_on_the_owner(readers: Readers) -> None:
    shelf = Shelf(answer=_missing)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        condition = await readers.until(reason="NotFound")
        blocked = await readers.until(condition_type="PagesReady", reason="Blocked")

    assert (condition.status, condition.message) == ("False", "one: NotFound: there is no such box")
    assert blocked.message.endswith("one: NotFound: there is no such box")


@in_simulated_time
async def test_the_next_source_answers_when_the_first_does_not_have_it(readers: Readers) -> None:
    async with readers.running(Shelf(answer=_missing), Shelf(name="attic")):
        await readers.create("a", reads={"one": "1"}, otherwise="attic")
        await readers.until(reason="Resolved")
    assert recorded(await readers.get())["one"]["resolver"] == "attic"


@in_simulated_time
async def test_no_other_source_answers_when_the_first_refuses(readers: Readers) -> None:
    attic = Shelf(name="attic")
    async with readers.running(Shelf(answer=_denied), attic):
        await readers.create("a", reads={"one": "1"}, otherwise="attic")
        await readers.until(reason="Denied")
    assert attic.calls == []


async def test_an_altered_copy_is_refused_until_somebody_deletes_it(readers: Readers) -> None:
    async with readers.running(Shelf()):
        await readers.create("a", reads={"one": "1"})
        await readers.until(reason="Resolved")
        (copy,) = await copies(readers)
        client, key = readers.desk.cluster.client, ObjectKey.of(copy)
        await client.delete(CONFIG_MAP, key)
        altered = {
            **copy,
            "metadata": {name: copy["metadata"][name] for name in ("name", "namespace", "labels", "ownerReferences")},
            "binaryData": {"content": base64.b64encode(NEWER).decode()},
        }
        await _create_first(readers, altered, key)
        condition = await readers.until(reason="DigestMismatch")
        await client.delete(CONFIG_MAP, key)
        await readers.until(reason="Resolved")
    assert condition.message.endswith("its content is not what its record says; delete it, and it is fetched again")


@in_simulated_time
async def test_an_owner_that_goes_takes_its_fetch_and_its_copies_with_it(readers: Readers) -> None:
    shelf = Shelf()
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.until(reason="Resolved")
        assert len(await copies(readers)) == 1
        await readers.edit(reads={"two": "1"}, seconds="100")
        await readers.desk.cluster.eventually(lambda: shelf.running > 0, describe="something is fetched")
        await readers.desk.cluster.client.delete(READER, readers.desk.key("a"))
        await readers.desk.cluster.eventually(
            lambda: shelf.running == 0, timeout_seconds=60, describe="nothing is fetched any more"
        )

        async def are_gone() -> bool:
            return await copies(readers) == []

        await readers.desk.cluster.eventually(are_gone, timeout_seconds=60, describe="there are no copies")


@in_simulated_time
async def test_an_owner_that_has_its_definitions_costs_no_request(readers: Readers) -> None:
    async with readers.running(Shelf()):
        await readers.create("a", reads={"one": "1"})
        await readers.until(reason="Resolved")
        await readers.until(condition_type="PagesReady", reason="Healthy")
        await readers.desk.cluster.clock.sleep(5)
        before = len(_sent(readers))
        await readers.desk.cluster.clock.sleep(300)
        assert _sent(readers)[before:] == []


@in_simulated_time
async def test_nobody_who_serves_a_resolver_is_told_at_once(requesting: Readers) -> None:
    async with requesting.running(Shelf()):
        await requesting.create("a", reads={"one": "1"}, resolver="nobody")
        condition = await requesting.until(reason="ResolverNotAvailable", within=10)
    assert "there are: shelf" in condition.message


@in_simulated_time
async def test_three_references_of_an_owner_are_three_requests_after_one_pass(requesting: Readers) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1", "two": "1", "three": "1"})
        await requesting.until(reason="Resolving")
    found = await requests_of(requesting)
    assert len(found) == 3
    assert {each["metadata"]["ownerReferences"][0]["kind"] for each in found} == {"Reader"}


async def test_content_of_a_request_that_was_changed_is_refused(requesting: Readers) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1"})
        await requesting.until(reason="Resolving")
        (request,) = await requests_of(requesting)
        status = {
            "data": base64.b64encode(NEWER).decode(),
            "dataDigest": str(Digest.of(BOX)),
            "conditions": [
                {
                    "type": "Succeeded",
                    "status": "True",
                    "reason": "Resolved",
                    "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
        }
        key = ObjectKey.of(request)
        body = {"status": status}
        await requesting.desk.cluster.client.patch(REQUEST, key, body, patch_type="merge", subresource="status")
        condition = await requesting.until(reason="DigestMismatch")
    assert "was changed after it was written" in condition.message
    assert await copies(requesting) == []


async def test_a_request_that_somebody_has_filed_in_advance_under_its_name_is_not_taken_for_ours(
    requesting: Readers,
) -> None:
    client = requesting.desk.cluster.client
    owner = await requesting.create("a", reads={"one": "1"})
    (reference,) = written(ReaderSpec(), "one", "1").choices
    forged = request_for(reference, owner)
    forged["spec"]["params"] |= {"url": "https://elsewhere.example/one"}
    await client.create(forged)
    async with requesting.running(Shelf()):
        condition = await requesting.until(reason="Denied")
        await client.delete(REQUEST, ObjectKey.of(forged))
        await requesting.until(reason="Resolved")
    assert "asks for something else" in condition.message
    assert recorded(await requesting.get())["one"]["uri"] == "https://a.example/one"


@in_simulated_time
async def test_content_that_was_kept_apart_and_is_gone_is_asked_for_again_and_not_looked_for_at_once(
    requesting: Readers,
) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1"})
        await requesting.until(reason="Resolving")
        (request,) = await requests_of(requesting)
        now = format_time(requesting.desk.cluster.clock.now())
        succeeded = {"type": "Succeeded", "status": "True", "reason": "Resolved", "message": ""}
        status = {
            "dataRef": {"name": "gone", "key": "content"},
            "dataDigest": str(Digest.of(BOX)),
            "finishedAt": now,
            "conditions": [{**succeeded, "lastTransitionTime": now}],
        }
        client, key = requesting.desk.cluster.client, ObjectKey.of(request)
        await client.patch(REQUEST, key, {"status": status}, patch_type="merge", subresource="status")
        await requesting.until(reason="Unreachable")
        passes = requesting.passes
        await requesting.until(reason="Resolving", within=200)
        (anew,) = await requests_of(requesting)
    assert anew["metadata"]["uid"] != request["metadata"]["uid"]
    assert requesting.passes - passes < 8


@in_simulated_time
async def test_what_may_pass_is_asked_again_by_itself(readers: Readers) -> None:
    def answer(fetch: Fetch, calls: int) -> bytes:
        if calls <= 3:
            raise ResolutionError(Reason.UNREACHABLE, "nobody answers")
        return BOX

    async with readers.running(Shelf(answer=answer)):
        await readers.create("a", reads={"one": "main"})
        await readers.until(reason="Unreachable")
        await readers.until(reason="Resolved", within=200)


async def _create_first(readers: Readers, obj: Object, key: ObjectKey) -> None:
    """Be faster than the operator, which makes what is absent."""
    client = readers.desk.cluster.client
    for _ in range(50):
        try:
            await client.create(obj)
        except ConflictError:
            await client.delete(CONFIG_MAP, key)
        else:
            return
    raise AssertionError("the operator is always faster")


def _sent(readers: Readers) -> list[str]:
    found = readers.desk.cluster.requests("readers")
    return [f"{each.verb} {each.path}" for each in found if each.verb not in ("watch", "list")]


def _missing(fetch: Fetch, calls: int) -> bytes:
    raise ResolutionError(Reason.NOT_FOUND, "there is no such box")


def _denied(fetch: Fetch, calls: int) -> bytes:
    raise ResolutionError(Reason.DENIED, "you may not")

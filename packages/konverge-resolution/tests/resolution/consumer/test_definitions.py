"""What owners get of definitions that they ask for: by request and by their own process, on either cluster."""

from __future__ import annotations

import asyncio
import base64

import pytest

from konverge._internal.kube.timestamps import format_time
from konverge.errors import ConflictError
from konverge.kube import Object, ObjectKey
from konverge_resolution import Digest, FetchRequest, Reason, ResolutionError
from konverge_resolution._internal.requests.konverge_requests import build_request
from konverge_resolution.consumer import DefinitionClient
from konverge_resolution.requests import REQUEST
from tests.resolution.consumer.consumer_harness import (
    READER,
    ConsumerHarness,
    ReaderSpec,
    build_page_key,
    build_reference,
    read_recorded,
)
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import CONFIG_MAP

pytestmark = pytest.mark.anyio

NEWER = BOX.replace(b"name: a", b"name: b")
in_simulated_time = pytest.mark.parametrize("cluster_kind", [pytest.param("embedded", marks=pytest.mark.embedded)])

LABEL = "resolution.konverge.dev/definition"


async def copies(readers: ConsumerHarness) -> list[Object]:
    listed = await readers.desk.cluster.client.list(CONFIG_MAP, namespace=readers.desk.namespace, label_selector=LABEL)
    return listed.items


async def requests_of(readers: ConsumerHarness) -> list[Object]:
    return (await readers.desk.cluster.client.list(REQUEST, namespace=readers.desk.namespace)).items


async def page_of(readers: ConsumerHarness, name: str, owner: str = "a") -> str:
    key = build_page_key(readers.desk, owner, name)
    return str((await readers.desk.cluster.client.get(CONFIG_MAP, key))["data"]["text"])


async def test_a_definition_reaches_a_component_and_the_record_says_where_it_is_from(readers: ConsumerHarness) -> None:
    async with readers.running(FakeResolver()):
        await readers.create("a", reads={"one": "1"})
        condition = await readers.wait_for_condition(reason="Resolved")
        await readers.wait_for_condition(condition_type="PagesReady", reason="Healthy")

    digest = Digest.of(BOX).hex
    assert (condition.status, condition.message) == ("True", f"one: from https://a.example/one at sha256:{digest}")
    assert await page_of(readers, "one") == BOX.decode()
    assert read_recorded(await readers.get()) == {
        "one": {
            "resolver": "shelf",
            "uri": "https://a.example/one",
            "digest": {"sha256": digest},
            "entryPoint": "",
            "content": f"sha256:{digest}",
        }
    }
    assert await requests_of(readers) == []


async def test_one_owner_has_definitions_from_three_resolvers_and_a_record_of_each(readers: ConsumerHarness) -> None:
    resolvers = {"one": "shelf", "two": "attic", "three": "cellar"}
    contents = {name: BOX.replace(b"name: a", f"name: {name}".encode()) for name in resolvers}
    served = [
        FakeResolver(lambda fetch, calls, data=contents[name]: data, name=resolver)  # type: ignore[misc]
        for name, resolver in resolvers.items()
    ]
    async with readers.running(*served):
        await readers.create("a", reads=dict.fromkeys(resolvers, "1"), resolvers=resolvers)
        await readers.wait_for_condition(reason="Resolved")
        await readers.wait_for_condition(condition_type="PagesReady", reason="Healthy")

    recorded = read_recorded(await readers.get())
    assert {name: record["resolver"] for name, record in recorded.items()} == resolvers
    assert {name: record["content"] for name, record in recorded.items()} == {
        name: str(Digest.of(content)) for name, content in contents.items()
    }
    assert [await page_of(readers, name) for name in resolvers] == [content.decode() for content in contents.values()]
    assert [len(resolver.calls) for resolver in served] == [1, 1, 1]


async def test_an_owner_without_references_makes_no_request(requesting: ConsumerHarness) -> None:
    shelf = FakeResolver()
    async with requesting.running(shelf):
        await requesting.create("a", reads={})
        await requesting.wait_for_condition(condition_type="PagesReady", reason="Healthy")
    assert (await requests_of(requesting), await copies(requesting), shelf.calls) == ([], [], [])


@in_simulated_time
async def test_a_component_waits_and_says_for_what_and_no_worker_does(readers: ConsumerHarness) -> None:
    shelf = FakeResolver()
    async with readers.running(shelf):
        await readers.create("slow", reads={"one": "1"}, seconds="30")
        resolving = await readers.wait_for_condition("slow", reason="Resolving")
        blocked = await readers.wait_for_condition("slow", "PagesReady", reason="Blocked")
        await readers.create("fast", reads={"two": "1"})
        await readers.wait_for_condition("fast", reason="Resolved", within=10)

    assert (resolving.status, resolving.message) == ("Unknown", "one: resolving shelf https://a.example/one")
    assert blocked.message.endswith("one: resolving shelf https://a.example/one")


@in_simulated_time
async def test_everything_that_an_owner_needs_is_asked_for_at_once(readers: ConsumerHarness) -> None:
    shelf = FakeResolver()
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1", "two": "1", "three": "1"}, seconds="2")
        await readers.desk.cluster.eventually(lambda: shelf.running == 3, describe="three are fetched at once")
        await readers.wait_for_condition(reason="Resolved")
    assert len(shelf.calls) == 3


@in_simulated_time
async def test_a_run_never_changes_its_definition_and_asks_nobody_again(readers: ConsumerHarness) -> None:
    content = [BOX]
    shelf = FakeResolver(answer=lambda fetch, calls: content[0])
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "main"})
        await readers.wait_for_condition(reason="Resolved")
        content[0] = NEWER
        await readers.edit(reads={"one": "main", "two": "main"})
        await readers.desk.cluster.eventually(
            lambda: len(shelf.calls) == 2, timeout_seconds=20, describe="the second one is fetched"
        )
        await readers.wait_for_condition(condition_type="PagesReady", reason="Healthy")
    async with readers.running(shelf):
        await readers.edit(reads={"one": "main"})
        await readers.wait_for_condition(condition_type="PagesReady", reason="Healthy")

    assert await page_of(readers, "one") == BOX.decode()
    assert len(shelf.calls) == 2


async def test_another_reference_is_another_definition_and_the_copy_of_the_former_goes(
    readers: ConsumerHarness,
) -> None:
    shelf = FakeResolver(answer=lambda fetch, calls: BOX if fetch.params["version"] == "1" else NEWER)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.wait_for_condition(reason="Resolved")
        await readers.edit(reads={"one": "2"})

        async def is_new() -> bool:
            return [base64.b64decode(copy["binaryData"]["content"]) for copy in await copies(readers)] == [NEWER]

        await readers.desk.cluster.eventually(is_new, describe="there is the new copy alone")


@in_simulated_time
async def test_the_copy_of_the_former_goes_too_when_the_process_ends_in_the_middle(
    readers: ConsumerHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf = FakeResolver(answer=lambda fetch, calls: BOX if fetch.params["version"] == "1" else NEWER)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.wait_for_condition(reason="Resolved")
    reached = asyncio.Event()

    async def get_no_further(*given: object) -> None:
        reached.set()
        await asyncio.get_running_loop().create_future()

    with monkeypatch.context() as dying:
        dying.setattr(DefinitionClient, "_remove_other_copies", get_no_further)
        async with readers.running(shelf):
            await readers.edit(reads={"one": "2"})
            await readers.desk.cluster.eventually(reached.is_set, describe="it was about to remove the former")
    async with readers.running(shelf):

        async def is_new() -> bool:
            return [base64.b64decode(copy["binaryData"]["content"]) for copy in await copies(readers)] == [NEWER]

        await readers.desk.cluster.eventually(is_new, describe="there is the new copy alone")


@in_simulated_time
async def test_a_failure_has_its_reason_and_message_on_the_owner(readers: ConsumerHarness) -> None:
    shelf = FakeResolver(answer=_missing)
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        condition = await readers.wait_for_condition(reason="NotFound")
        blocked = await readers.wait_for_condition(condition_type="PagesReady", reason="Blocked")

    assert (condition.status, condition.message) == ("False", "one: NotFound: there is no such box")
    assert blocked.message.endswith("one: NotFound: there is no such box")


@in_simulated_time
async def test_the_next_source_answers_when_the_first_does_not_have_it(readers: ConsumerHarness) -> None:
    async with readers.running(FakeResolver(answer=_missing), FakeResolver(name="attic")):
        await readers.create("a", reads={"one": "1"}, otherwise="attic")
        await readers.wait_for_condition(reason="Resolved")
    assert read_recorded(await readers.get())["one"]["resolver"] == "attic"


@in_simulated_time
async def test_no_other_source_answers_when_the_first_refuses(readers: ConsumerHarness) -> None:
    attic = FakeResolver(name="attic")
    async with readers.running(FakeResolver(answer=_raise_denied), attic):
        await readers.create("a", reads={"one": "1"}, otherwise="attic")
        await readers.wait_for_condition(reason="Denied")
    assert attic.calls == []


async def test_an_altered_copy_is_refused_until_somebody_deletes_it(readers: ConsumerHarness) -> None:
    async with readers.running(FakeResolver()):
        await readers.create("a", reads={"one": "1"})
        await readers.wait_for_condition(reason="Resolved")
        (copy,) = await copies(readers)
        client, key = readers.desk.cluster.client, ObjectKey.of(copy)
        await client.delete(CONFIG_MAP, key)
        altered = {
            **copy,
            "metadata": {name: copy["metadata"][name] for name in ("name", "namespace", "labels", "ownerReferences")},
            "binaryData": {"content": base64.b64encode(NEWER).decode()},
        }
        await _create_first(readers, altered, key)
        condition = await readers.wait_for_condition(reason="DigestMismatch")
        await client.delete(CONFIG_MAP, key)
        await readers.wait_for_condition(reason="Resolved")
    assert condition.message.endswith(
        "the content does not match the digest of its record; delete it to fetch the content again"
    )


@in_simulated_time
async def test_an_owner_that_goes_takes_its_fetch_and_its_copies_with_it(readers: ConsumerHarness) -> None:
    shelf = FakeResolver()
    async with readers.running(shelf):
        await readers.create("a", reads={"one": "1"})
        await readers.wait_for_condition(reason="Resolved")
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
async def test_an_owner_that_has_its_definitions_costs_no_request(readers: ConsumerHarness) -> None:
    async with readers.running(FakeResolver()):
        await readers.create("a", reads={"one": "1"})
        await readers.wait_for_condition(reason="Resolved")
        await readers.wait_for_condition(condition_type="PagesReady", reason="Healthy")
        await readers.desk.cluster.clock.sleep(5)
        before = len(_list_writes(readers))
        await readers.desk.cluster.clock.sleep(300)
        assert _list_writes(readers)[before:] == []


@in_simulated_time
async def test_nobody_who_serves_a_resolver_is_told_at_once(requesting: ConsumerHarness) -> None:
    async with requesting.running(FakeResolver()):
        await requesting.create("a", reads={"one": "1"}, resolver="nobody")
        condition = await requesting.wait_for_condition(reason="ResolverNotAvailable", within=10)
    assert "available: shelf" in condition.message


@in_simulated_time
async def test_three_references_of_an_owner_are_three_requests_after_one_pass(requesting: ConsumerHarness) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1", "two": "1", "three": "1"})
        await requesting.wait_for_condition(reason="Resolving")
    found = await requests_of(requesting)
    assert len(found) == 3
    assert {each["metadata"]["ownerReferences"][0]["kind"] for each in found} == {"Reader"}


async def test_content_of_a_request_that_was_changed_is_refused(requesting: ConsumerHarness) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1"})
        await requesting.wait_for_condition(reason="Resolving")
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
        condition = await requesting.wait_for_condition(reason="DigestMismatch")
    assert "was changed; delete the request" in condition.message
    assert await copies(requesting) == []


async def test_a_request_that_somebody_has_filed_in_advance_under_its_name_is_not_taken_for_ours(
    requesting: ConsumerHarness,
) -> None:
    client = requesting.desk.cluster.client
    owner = await requesting.create("a", reads={"one": "1"})
    (reference,) = build_reference(ReaderSpec(), "one", "1").choices
    forged = build_request(reference, owner)
    forged["spec"]["params"] |= {"url": "https://elsewhere.example/one"}
    await client.create(forged)
    async with requesting.running(FakeResolver()):
        condition = await requesting.wait_for_condition(reason="Denied")
        await client.delete(REQUEST, ObjectKey.of(forged))
        await requesting.wait_for_condition(reason="Resolved")
    assert "expected this owner's request" in condition.message
    assert read_recorded(await requesting.get())["one"]["uri"] == "https://a.example/one"


@in_simulated_time
async def test_content_that_was_kept_apart_and_is_gone_is_asked_for_again_and_not_looked_for_at_once(
    requesting: ConsumerHarness,
) -> None:
    async with requesting.running(serves=False):
        await requesting.create("a", reads={"one": "1"})
        await requesting.wait_for_condition(reason="Resolving")
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
        await requesting.wait_for_condition(reason="Unreachable")
        passes = requesting.passes
        await requesting.wait_for_condition(reason="Resolving", within=200)
        (anew,) = await requests_of(requesting)
    assert anew["metadata"]["uid"] != request["metadata"]["uid"]
    assert requesting.passes - passes < 8


@in_simulated_time
async def test_what_may_pass_is_asked_again_by_itself(readers: ConsumerHarness) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if calls <= 3:
            raise ResolutionError(Reason.UNREACHABLE, "nobody answers")
        return BOX

    async with readers.running(FakeResolver(answer=answer)):
        await readers.create("a", reads={"one": "main"})
        await readers.wait_for_condition(reason="Unreachable")
        await readers.wait_for_condition(reason="Resolved", within=200)


async def _create_first(readers: ConsumerHarness, obj: Object, key: ObjectKey) -> None:
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


def _list_writes(readers: ConsumerHarness) -> list[str]:
    found = readers.desk.cluster.list_requests("readers")
    return [f"{each.verb} {each.path}" for each in found if each.verb not in ("watch", "list")]


def _missing(fetch: FetchRequest, calls: int) -> bytes:
    raise ResolutionError(Reason.NOT_FOUND, "there is no such box")


def _raise_denied(fetch: FetchRequest, calls: int) -> bytes:
    raise ResolutionError(Reason.DENIED, "you may not")

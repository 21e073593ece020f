"""What becomes of a request, on either cluster: it begins, is fetched once, ends, and goes."""

import asyncio
from datetime import UTC, timedelta

import pytest

from konverge.errors import InvalidError
from konverge.kube import ObjectKey, parse_time
from konverge_resolution import Digest, FetchRequest, Reason, ResolutionError
from konverge_resolution.requests import REQUEST, parse_provenance, read_content
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import CONFIG_MAP, EMBEDDED, POLICY, RequestNamespace, decode_data

pytestmark = pytest.mark.anyio

HANGS = {"seconds": "100"}


async def test_a_request_written_by_hand_gets_its_content_its_digest_and_its_source(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a")
        request = await desk.wait_until_ended("a")

    status = request["status"]
    assert decode_data(request) == read_content(request) == BOX
    assert status["dataDigest"] == str(Digest.of(BOX))
    assert parse_provenance(request).uri == "https://a.example/a"
    assert parse_provenance(request).digest == {"sha256": Digest.of(BOX).hex}
    assert (status["resolver"], status["fetchedFrom"], status["attempts"]) == ("shelf", "remote", 1)
    assert parse_time(status["startedAt"]) <= parse_time(status["finishedAt"])
    assert [each["reason"] for each in status["conditions"]] == ["Resolved"]
    assert len(desk.status_writes("a")) <= 3
    assert await desk.events("a") == []


async def test_a_request_is_in_progress_within_a_second_and_says_until_when(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        before = desk.cluster.clock.now()
        await desk.create_request("a", params=HANGS)
        await desk.wait_until_pending("a")
        assert desk.cluster.clock.now() - before <= timedelta(seconds=1 + desk.late_seconds)

        deadline = parse_time((await desk.get("a"))["status"]["deadline"])
        left = deadline - before.astimezone(UTC)
        assert timedelta(seconds=59) <= left <= timedelta(seconds=61 + desk.late_seconds)


async def test_a_resolver_that_nobody_serves_is_refused_at_once_with_those_there_are(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver(), FakeResolver(name="attic")):
        await desk.create_request("a", "attci")
        failure = await desk.wait_for_failure("a", within=2)
        (event,) = await desk.wait_for_events("a", "ResolverNotAvailable")

    assert failure.reason == "ResolverNotAvailable"
    assert failure.message.endswith("available: attic, shelf; did you mean 'attic'?")
    assert (event["type"], event["note"]) == ("Warning", failure.message)
    assert len(desk.status_writes("a")) == 1


@EMBEDDED
async def test_the_digest_of_whoever_creates_a_request_is_compared(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()), desk.policy("strict", requiresDigest=True):
        await desk.create_request("right", digest=str(Digest.of(BOX)))
        await desk.create_request("wrong", digest=str(Digest.of(b"other")))
        await desk.create_request("missing")
        right = await desk.wait_until_ended("right")
        wrong, missing = [await desk.wait_for_failure(name) for name in ("wrong", "missing")]
        rejected = await desk.get("wrong")

    assert (decode_data(right), right["status"]["dataDigest"]) == (BOX, str(Digest.of(BOX)))
    assert (wrong.reason, missing.reason) == ("DigestMismatch", "Denied")
    assert f"expected {Digest.of(b'other')}, found {Digest.of(BOX)}" in wrong.message
    assert "data" not in rejected["status"]
    assert "requires a digest" in missing.message


@EMBEDDED
async def test_switching_a_resolver_off_and_on_counts_for_the_next_request(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf):
        await desk.set_config_map("konverge-resolution", disabled_resolvers="shelf")
        await desk.cluster.clock.sleep(2)
        await desk.create_request("off")
        failure = await desk.wait_for_failure("off", within=2)
        await desk.set_config_map("konverge-resolution", disabled_resolvers="")
        await desk.cluster.clock.sleep(2)
        await desk.create_request("on")
        assert decode_data(await desk.wait_until_ended("on")) == BOX

    assert failure.reason == "ResolverNotAvailable"
    assert "'shelf' is disabled; available: none" in failure.message
    assert len(shelf.calls) == 1


@EMBEDDED
@pytest.mark.parametrize(("whole", "own", "told"), [("2s", "1m", 2.0), ("10s", "1s", 1.0)])
async def test_the_smaller_of_both_times_ends_a_request_and_what_it_fetched(
    desk: RequestNamespace, whole: str, own: str, told: float
) -> None:
    shelf = FakeResolver()
    await desk.set_config_map("konverge-resolution", timeout=whole, attempts="1")
    await desk.set_config_map("konverge-resolver-shelf", fetch_timeout=own)
    async with desk.running_resolvers(shelf):
        before = desk.cluster.clock.monotonic()
        await desk.create_request("a", params=HANGS)
        failure = await desk.wait_for_failure("a")
        seconds = desk.cluster.clock.monotonic() - before

    assert failure.reason == "TimedOut"
    assert f"{told:g}" in failure.message
    assert abs(seconds - told) <= 0.6
    assert shelf.running == 0


async def test_a_request_that_is_deleted_ends_its_fetch_within_two_seconds(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf):
        await desk.create_request("a", params=HANGS)
        await desk.cluster.eventually(lambda: shelf.running == 1, describe="it is fetched")
        await desk.cluster.client.delete(REQUEST, desk.key("a"))
        await desk.cluster.eventually(lambda: shelf.running == 0, 2 + desk.late_seconds, "nobody fetches")


async def test_an_owner_that_goes_takes_its_request_and_the_fetch_with_it(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    owner = await desk.cluster.client.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner", "namespace": desk.namespace}}
    )
    async with desk.running_resolvers(shelf):
        await desk.create_request("a", owner=owner, params=HANGS)
        await desk.cluster.eventually(lambda: shelf.running == 1, describe="it is fetched")
        await desk.cluster.client.delete(CONFIG_MAP, desk.key("owner"))
        await desk.wait_until_gone("a")
        await desk.cluster.eventually(lambda: shelf.running == 0, 2 + desk.late_seconds, "nobody fetches")


@EMBEDDED
async def test_what_has_ended_is_never_resolved_again_whatever_wakes_it(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf):
        await desk.create_request("a")
        await desk.wait_until_ended("a")
        for number in range(50):
            labels = {"metadata": {"labels": {"number": str(number)}}}
            await desk.cluster.client.patch(REQUEST, desk.key("a"), labels, patch_type="merge")
        await desk.cluster.clock.sleep(1)
    async with desk.running_resolvers(shelf):
        await desk.cluster.clock.sleep(1)

    assert len(shelf.calls) == 1
    assert len(desk.status_writes("a")) == 2


async def test_content_without_a_condition_is_not_fetched_again(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    await desk.create_request("a")
    status = {"status": {"data": "YQ==", "dataDigest": str(Digest.of(b"a"))}}
    await desk.cluster.client.patch(REQUEST, desk.key("a"), status, patch_type="merge", subresource="status")
    async with desk.running_resolvers(shelf):
        request = await desk.wait_until_ended("a")

    assert decode_data(request) == b"a"
    assert shelf.calls == []


async def test_a_request_does_not_change_after_it_was_created(desk: RequestNamespace) -> None:
    await desk.create_request("a")
    for spec in ({"resolver": "attic"}, {"params": {"url": "https://b.example"}}, {"digest": str(Digest.of(b""))}):
        with pytest.raises(InvalidError, match="a request is immutable"):
            await desk.cluster.client.patch(REQUEST, desk.key("a"), {"spec": spec}, patch_type="merge")


@pytest.mark.parametrize("resolver", ["a" * 64, "a" * 300, "größe", "-a", "A"])
async def test_the_name_of_a_resolver_is_one_or_nothing_is_created(desk: RequestNamespace, resolver: str) -> None:
    with pytest.raises(InvalidError, match="resolver"):
        await desk.create_request("a", resolver)


@EMBEDDED
async def test_a_request_without_a_resolver_asks_the_default_or_fails_at_once(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("without", "")
        failure = await desk.wait_for_failure("without", within=2)
        await desk.set_config_map("konverge-resolution", default_resolver="shelf")
        await desk.cluster.clock.sleep(2)
        await desk.create_request("with", "")
        request = await desk.wait_until_ended("with")

    assert failure.reason == "InvalidParams"
    message = "spec.resolver: expected the name of a resolver, found none; set it, or set default-resolver"
    assert failure.message == message
    assert request["status"]["resolver"] == "shelf"


@EMBEDDED
@pytest.mark.parametrize(
    ("params", "told"), [({"cache": "banana"}, "parameter 'cache'"), ({"configKey": "b"}, "parameter 'configKey'")]
)
async def test_a_parameter_that_cannot_be_fails_at_once_and_is_named(
    desk: RequestNamespace, params: dict[str, str], told: str
) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf):
        await desk.create_request("a", params=params)
        failure = await desk.wait_for_failure("a", within=1)

    assert failure.reason == "InvalidParams"
    assert told in failure.message
    assert shelf.calls == []


async def test_a_credential_in_an_address_is_refused_and_told_nowhere(
    desk: RequestNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = FakeResolver()
    caplog.set_level("DEBUG")
    async with desk.running_resolvers(shelf):
        await desk.create_request("a", params={"url": "https://a.example/box?X-Amz-Signature=hunter2"})
        failure = await desk.wait_for_failure("a", within=5)
        (event,) = await desk.wait_for_events("a", "InvalidParams")

    assert failure.reason == "InvalidParams"
    assert "expected an address without a credential, found 'X-Amz-Signature' in its query; put it into a Secret" in (
        failure.message
    )
    message = repr((await desk.get("a")).get("status")) + repr(event) + caplog.text
    assert "hunter2" not in message
    assert shelf.calls == []


@EMBEDDED
@pytest.mark.parametrize(
    "content",
    [
        b"apiVersion: v1\nkind: Secret\ndata: {a: aHVudGVyMg==}\n",
        b"hunter2\n",
        b'{"hunter2": 1}',
        b"\x00hunter2\xff",
        b"",
        b"apiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: hunter2\n",
        b"apiVersion: v1\nkind: A\nhunter2: 1\nhunter2: 2\n",
        b"a: &a [hunter2, hunter2]\n"
        + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 120)),
        b"[" * 10_000,
    ],
    ids=["Secret", "text", "no kind", "binary", "empty", "two documents", "twice", "aliases", "deep"],
)
async def test_what_is_no_definition_is_refused_and_nothing_of_it_is_told(
    desk: RequestNamespace, content: bytes
) -> None:
    async with desk.running_resolvers(FakeResolver(lambda fetch, calls: content)):
        await desk.create_request("a")
        request = await desk.wait_until_ended("a")
        await desk.wait_for_events("a", "UnsupportedContent")
        events = await desk.events("a")

    assert request["status"]["conditions"][0]["reason"] == "UnsupportedContent"
    assert "hunter2" not in str(request["status"]) + str(events)
    assert "aHVudGVyMg" not in str(request["status"])


@pytest.mark.real_time  # large content is read in a thread, for which simulated time does not wait
async def test_one_mebibyte_passes_and_one_byte_more_does_not(desk: RequestNamespace) -> None:
    def of(fetch: FetchRequest, calls: int) -> bytes:
        size = int(str(fetch.params["size"]))
        begin = b"apiVersion: v1\nkind: A\ntext: "
        return begin + b"a" * (size - len(begin))

    async with desk.running_resolvers(FakeResolver(of)):
        await desk.create_request("fits", params={"size": str(1 << 20)})
        await desk.create_request("large", params={"size": str((1 << 20) + 1)})
        assert len(decode_data(await desk.wait_until_ended("fits"))) == 1 << 20
        assert (await desk.wait_for_failure("large")).reason == "TooLarge"


async def test_content_above_the_operators_limit_is_kept_in_a_configmap_of_the_request(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", inline_max_bytes="10")
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a")
        request = await desk.wait_until_ended("a")

    reference = request["status"]["dataRef"]
    config_map = await desk.cluster.client.get(CONFIG_MAP, desk.key(reference["name"]))
    assert "data" not in request["status"]
    assert read_content(request, config_map) == BOX
    assert config_map["metadata"]["ownerReferences"][0]["uid"] == request["metadata"]["uid"]


@EMBEDDED
async def test_each_request_has_a_configmap_of_its_own_whose_name_is_one_however_long_that_of_the_request(
    desk: RequestNamespace,
) -> None:
    await desk.set_config_map("konverge-resolution", inline_max_bytes="10")
    names = [f"{'a' * 199}.{end}" for end in ("b", "c")]
    async with desk.running_resolvers(FakeResolver()):
        for name in names:
            await desk.create_request(name)
        found = [(await desk.wait_until_ended(name))["status"]["dataRef"]["name"] for name in names]
    assert len(set(found)) == 2


@EMBEDDED
async def test_who_reads_content_that_was_changed_afterwards_is_told(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a")
        await desk.wait_until_ended("a")
    other = {"status": {"data": "YXBpVmVyc2lvbjogdjEK"}}
    changed = await desk.cluster.client.patch(REQUEST, desk.key("a"), other, patch_type="merge", subresource="status")

    with pytest.raises(ResolutionError, match="was changed; delete the request") as caught:
        read_content(changed)
    assert caught.value.reason is Reason.DIGEST_MISMATCH


@EMBEDDED
async def test_after_a_failure_other_parameters_resolve_and_so_does_the_same_request_created_again(
    desk: RequestNamespace,
) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if calls == 1:
            raise ResolutionError(Reason.NOT_FOUND, "there is no such version")
        return BOX

    async with desk.running_resolvers(FakeResolver(answer)):
        await desk.create_request("a")
        assert (await desk.wait_for_failure("a")).reason == "NotFound"
        await desk.create_request("b", params={"version": "2"})
        await desk.wait_until_ended("b")
        await desk.cluster.client.delete(REQUEST, desk.key("a"))
        await desk.create_request("a")
        assert decode_data(await desk.wait_until_ended("a")) == BOX


@EMBEDDED
async def test_half_of_the_time_is_told_once_and_so_is_the_end(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", timeout="4s")
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a", params=HANGS)
        await desk.cluster.clock.sleep(2.8)
        labels = {"metadata": {"labels": {"wakes": "it"}}}
        await desk.cluster.client.patch(REQUEST, desk.key("a"), labels, patch_type="merge")
        await desk.wait_for_failure("a")
        slow, end = sorted(
            await desk.wait_for_events("a", "SlowResolution", "TimedOut"), key=lambda each: each["reason"]
        )

    assert "no result after half of the time limit" in slow["note"]
    assert "no result within" in end["note"]


@EMBEDDED
async def test_a_finished_request_is_removed_after_its_time(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", finished_ttl="2s")
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a")
        await desk.wait_until_ended("a")
        await desk.wait_until_gone("a", within=5)


async def test_a_worker_is_not_held_while_something_is_fetched(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf):
        names = [f"slow-{number}" for number in range(50)]
        await asyncio.gather(
            *(desk.create_request(name, params={"url": f"https://{name}.example/x", **HANGS}) for name in names)
        )
        await desk.wait_until_pending(*names)
        await desk.create_request("quick")
        await desk.wait_until_ended("quick", within=2)


async def test_a_configuration_with_a_mistake_fails_its_resolver_alone_and_names_the_key(
    desk: RequestNamespace,
) -> None:
    shelf, attic = FakeResolver(), FakeResolver(name="attic")
    async with desk.running_resolvers(shelf, attic):
        await desk.set_config_map("konverge-resolver-shelf", fetch_timeout="banana")
        (event,) = await desk.wait_for_events("konverge-resolver-shelf", "InvalidConfiguration")
        await desk.create_request("a")
        failure = await desk.wait_for_failure("a", within=1)
        await desk.create_request("b", "attic")
        await desk.wait_until_ended("b")
        await desk.set_config_map("konverge-resolver-shelf", fetch_timeout="5s")
        await desk.cluster.clock.sleep(2)
        await desk.create_request("c")
        await desk.wait_until_ended("c")

    assert "fetch-timeout: expected" in event["note"]
    assert failure.reason == "InvalidConfiguration"
    assert "fetch-timeout: expected" in failure.message
    assert (len(shelf.calls), len(attic.calls)) == (1, 1)


@EMBEDDED
async def test_what_holds_for_all_fails_all_while_it_cannot_be_read(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", timout="5s", allowed_kinds="task")
    async with desk.running_resolvers(FakeResolver()):
        await desk.create_request("a")
        failure = await desk.wait_for_failure("a", within=1)

    assert failure.reason == "InvalidConfiguration"
    assert "did you mean 'timeout'?" in failure.message
    assert "allowed-kinds: expected Kind.group" in failure.message


async def test_a_policy_refuses_before_anybody_is_asked_and_one_that_cannot_be_read_refuses_too(
    desk: RequestNamespace,
) -> None:
    shelf, attic = FakeResolver(), FakeResolver(name="attic")
    async with desk.running_resolvers(shelf, attic):
        async with desk.policy("only-b", resolvers=["shelf"], sources=["https://b.example"]):
            await desk.cluster.clock.sleep(1)
            await desk.create_request("denied")
            denied = await desk.wait_for_failure("denied", within=2)
        async with desk.policy("broken", resolvers=["shelf"], sources=["https://*/x"]):
            await desk.cluster.clock.sleep(1)
            await desk.create_request("closed")
            closed = await desk.wait_for_failure("closed", within=2)
            await desk.create_request("others", "attic")
            await desk.wait_until_ended("others")
            policy = await desk.cluster.client.get(POLICY, ObjectKey("", f"{desk.namespace}-broken"))
        await desk.cluster.clock.sleep(1)
        await desk.create_request("open")
        await desk.wait_until_ended("open")

    assert (denied.reason, closed.reason) == ("Denied", "InvalidConfiguration")
    assert "spec.sources[0]: expected" in closed.message
    (reported,) = policy["status"]["conditions"]
    assert reported["status"] == "False"
    assert "spec.sources[0]: expected" in reported["message"]
    assert len(shelf.calls) == 1

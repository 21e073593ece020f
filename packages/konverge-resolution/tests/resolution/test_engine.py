"""The engine: what is decided before anybody is asked, how often a remote is asked, and what of an answer is taken."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from konverge.clock import SeededEntropy
from konverge_resolution import (
    Digest,
    FetchRequest,
    Provenance,
    Reason,
    Reference,
    ResolutionError,
    ResolvedContent,
)
from konverge_resolution._internal.content_cache import CacheMode
from konverge_resolution._internal.engine import Engine, EngineOptions, Requester, ResolutionResult
from konverge_resolution._internal.policy import Policy, SignatureMode, SignatureRule
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.single_flight import SingleFlight
from konverge_resolution._internal.source_map import SourceMap
from konverge_resolution._internal.source_prefix import SourcePrefix
from konverge_resolution.network import ConcurrencyLimiter
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.fake_source import CLOCK, WEB, build_services

pytestmark = pytest.mark.anyio

UNREACHABLE = ResolutionError(Reason.UNREACHABLE, "nobody answers")


def engine_of(shelf: FakeResolver, *, options: EngineOptions | None = None, **more: Any) -> Engine:
    registry = more.pop("registry", None) or ResolverRegistry.of([shelf])
    return Engine(registry, build_services, clock=CLOCK, entropy=SeededEntropy(), options=options, **more)


def ref(url: str = "https://a.example/box", digest: Digest | None = None, **params: Any) -> Reference:
    return Reference("shelf", {"url": url, **params}, digest)


async def expect_resolution_error(engine: Engine, reference: Reference, requester: Requester = WEB) -> ResolutionError:
    with pytest.raises(ResolutionError) as caught:
        await engine.resolve(reference, requester)
    return caught.value


async def test_a_reference_comes_to_its_content_and_where_it_is_from() -> None:
    outcome = await engine_of(FakeResolver()).resolve(ref(), WEB)
    assert outcome.object["metadata"] == {"name": "a"}
    assert (outcome.resolved.source.uri, outcome.fetched_from, outcome.attempts) == (
        "https://a.example/box",
        "remote",
        1,
    )


async def test_a_resolver_that_does_not_exist_is_refused_with_those_that_do() -> None:
    error = await expect_resolution_error(engine_of(FakeResolver()), Reference("gti"))
    assert error.reason is Reason.RESOLVER_NOT_AVAILABLE
    assert "available: shelf" in error.message


async def test_one_that_is_switched_off_is_refused_at_once() -> None:
    shelf = FakeResolver()
    error = await expect_resolution_error(
        engine_of(shelf, registry=ResolverRegistry.of([shelf], disabled=["shelf"])), ref()
    )
    assert (error.reason, shelf.calls) == (Reason.RESOLVER_NOT_AVAILABLE, [])


async def test_a_configuration_with_a_mistake_fails_every_request_and_names_the_key() -> None:
    shelf = FakeResolver()
    registry = ResolverRegistry.of([shelf], {"shelf": {"fetch-timeout": "banana"}})
    error = await expect_resolution_error(engine_of(shelf, registry=registry), ref())
    assert (error.reason, shelf.calls) == (Reason.INVALID_CONFIGURATION, [])
    assert "fetch-timeout: expected a duration" in error.message


@pytest.mark.parametrize(("name", "value"), [("cache", "banana"), ("configKey", "unknown")])
async def test_what_the_engine_itself_reads_is_checked(name: str, value: str) -> None:
    shelf = FakeResolver()
    error = await expect_resolution_error(
        engine_of(shelf), Reference("shelf", {"url": "https://a.example/box", name: value})
    )
    assert (error.reason, shelf.calls) == (Reason.INVALID_PARAMETERS, [])
    assert f"parameter '{name}'" in error.message


async def test_a_mode_of_the_cache_that_is_none_is_told_to_who_has_set_it() -> None:
    shelf = FakeResolver()
    error = await expect_resolution_error(
        engine_of(shelf, registry=ResolverRegistry.of([shelf], {"shelf": {"default-cache-mode": "x"}})), ref()
    )
    assert (error.reason, shelf.calls) == (Reason.INVALID_CONFIGURATION, [])
    assert error.message == "setting 'default-cache-mode': expected auto, always or never, found 'x'"


async def test_what_no_policy_names_is_refused_before_anybody_is_asked() -> None:
    shelf = FakeResolver(latest="7")
    policy = Policy("only-b", sources=(SourcePrefix.parse("https://b.example"),))
    assert (await expect_resolution_error(engine_of(shelf, policies=[policy]), ref())).reason is Reason.DENIED
    assert shelf.calls == []


async def test_a_source_map_is_applied_before_policies_and_recorded() -> None:
    policy = Policy("only-b", sources=(SourcePrefix.parse("https://b.example"),))
    mirrors = SourceMap.parse([("https://a.example", "https://b.example/mirror")])
    outcome = await engine_of(FakeResolver(), policies=[policy], source_map=mirrors).resolve(ref(), WEB)
    assert outcome.resolved.source.uri == "https://b.example/mirror/box"
    assert outcome.rewritten_from == "https://a.example/box"


async def test_what_a_source_map_has_made_stays_when_it_comes_again() -> None:
    mirrors = SourceMap.parse([("https://a.example", "https://a.example/mirror")])
    engine = engine_of(FakeResolver(), source_map=mirrors)
    for url, found in (("box", "mirror/box"), ("mirror/box", "mirror/box"), ("mirrors", "mirror/mirrors")):
        outcome = await engine.resolve(ref(f"https://a.example/{url}"), WEB)
        assert outcome.resolved.source.uri == f"https://a.example/{found}"


@pytest.mark.parametrize(
    ("rule", "url", "found"),
    [
        ("https://a.example/box => https://b.example/x", "https://a.example/box.git", "https://b.example/x.git"),
        ("https://a.example/box.git => https://b.example/x", "https://a.example/box", "https://b.example/x"),
        ("https://a.example/box => https://b.example/x.git", "https://a.example/box.git", "https://b.example/x.git"),
        ("https://a.example/box => https://b.example/x", "https://a.example/box.gitx", "https://a.example/box.gitx"),
        ("https://a.example/box.git => https://b.example/x", "https://a.example/boxes", "https://a.example/boxes"),
    ],
)
async def test_a_source_map_knows_both_names_of_a_repository(rule: str, url: str, found: str) -> None:
    before, _, after = rule.partition(" => ")
    engine = engine_of(FakeResolver(), source_map=SourceMap.parse([(before, after)]))
    assert (await engine.resolve(ref(url), WEB)).resolved.source.uri == found


async def test_a_resolver_gets_the_time_that_there_is() -> None:
    given: list[float] = []

    def answer(fetch: FetchRequest, calls: int) -> bytes:
        given.append(fetch.seconds)
        return BOX

    for seconds in (7.0, 600.0):
        await engine_of(FakeResolver(answer)).resolve(ref(), WEB, seconds=seconds)
    assert given == [7, 60]


async def test_a_failure_from_the_cache_still_says_when_to_come_again() -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        raise ResolutionError(Reason.RATE_LIMITED, "not now", retry_after_seconds=40)

    shelf = FakeResolver(answer)
    engine = engine_of(shelf, options=EngineOptions(attempts=1))
    for _ in range(2):
        error = await expect_resolution_error(engine, ref(version="7"))
        assert (error.reason, error.retry_after_seconds, len(shelf.calls)) == (Reason.RATE_LIMITED, 40, 1)


async def test_content_that_is_held_is_judged_as_if_it_had_just_come() -> None:
    shelf = FakeResolver()
    held = ResolvedContent(BOX, Provenance("https://a.example/box", {}))
    judged = await engine_of(shelf).validate_content(ref(), WEB, held)
    assert (judged.object["metadata"], judged.fetched_from, shelf.calls) == ({"name": "a"}, "cache", [])
    policy = Policy("only-b", sources=(SourcePrefix.parse("https://b.example"),))
    with pytest.raises(ResolutionError, match="no policy allows"):
        await engine_of(shelf, policies=[policy]).validate_content(ref(), WEB, held)
    with pytest.raises(ResolutionError, match="does not match its digest"):
        await engine_of(shelf).validate_content(ref(digest=Digest.of(b"other")), WEB, held)


async def test_the_smaller_of_the_timeouts_ends_it() -> None:
    for theirs, ours, message in ((1, 10, "1 s"), (10, 2, "2 s")):
        shelf = FakeResolver()
        options = EngineOptions(timeout=timedelta(seconds=ours))
        registry = ResolverRegistry.of([shelf], {"shelf": {"fetch-timeout": f"{theirs}s"}})
        engine = engine_of(shelf, options=options, registry=registry)
        error = await expect_resolution_error(engine, ref(seconds="100"))
        assert error.reason is Reason.TIMED_OUT
        assert message in error.message
        assert shelf.running == 0


async def test_a_remote_that_does_not_answer_is_asked_again_and_not_for_ever() -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if calls < 3:
            raise UNREACHABLE
        return BOX

    assert (await engine_of(FakeResolver(answer)).resolve(ref(), WEB)).attempts == 3
    twice = engine_of(FakeResolver(answer), options=EngineOptions(attempts=2))
    assert (await expect_resolution_error(twice, ref())).reason is Reason.UNREACHABLE


async def test_during_an_outage_pinned_content_comes_from_the_cache_and_a_name_that_moves_fails() -> None:
    is_down = False

    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if is_down:
            raise UNREACHABLE
        return BOX

    engine = engine_of(FakeResolver(answer))
    for reference in (ref(version="7"), ref(cache="always"), ref()):
        assert (await engine.resolve(reference, WEB)).fetched_from == "remote"
    is_down = True
    for reference in (ref(version="7"), ref(cache="always")):
        outcome = await engine.resolve(reference, WEB)
        assert (outcome.resolved.data, outcome.fetched_from, outcome.attempts) == (BOX, "cache", 0)
    assert (await expect_resolution_error(engine, ref())).reason is Reason.UNREACHABLE


@pytest.mark.parametrize(
    "reason", [reason for reason in Reason if reason not in (Reason.UNREACHABLE, Reason.RATE_LIMITED, Reason.TIMED_OUT)]
)
async def test_what_will_not_pass_is_asked_once(reason: Reason) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        raise ResolutionError(reason, "no")

    shelf = FakeResolver(answer)
    assert (await expect_resolution_error(engine_of(shelf), ref())).reason is reason
    assert len(shelf.calls) == 1


async def test_what_a_resolver_raises_by_mistake_is_told_by_type_alone() -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        raise ValueError("password=hunter2")

    error = await expect_resolution_error(engine_of(FakeResolver(answer)), ref())
    assert error.reason is Reason.INTERNAL
    assert "ValueError" in error.message
    assert "hunter2" not in error.message


@pytest.mark.parametrize("params", [{"url": "https://[x"}, {"from": "https://[x"}])
async def test_a_resolver_whose_address_is_none_is_at_fault(params: dict[str, Any]) -> None:
    error = await expect_resolution_error(engine_of(FakeResolver()), ref(**params))
    assert (error.reason, error.message) == (Reason.INTERNAL, "resolver 'shelf' failed: ValueError")


@pytest.mark.parametrize("version", ["7", "main"])
async def test_a_resolver_that_answers_with_nothing_is_at_fault_whether_it_is_kept_or_not(version: str) -> None:
    class Careless(FakeResolver):
        async def resolve(self, fetch: FetchRequest) -> Any:
            await super().resolve(fetch)

    error = await expect_resolution_error(engine_of(Careless()), ref(version=version))
    assert (error.reason, "expected a ResolvedContent" in error.message) == (Reason.INTERNAL, True)


async def test_what_names_one_content_for_ever_is_fetched_once() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf)
    first, second = [await engine.resolve(ref(version="7"), WEB) for _ in range(2)]
    assert (first.fetched_from, second.fetched_from, second.attempts) == ("remote", "cache", 0)
    assert len(shelf.calls) == 1


async def test_another_namespace_does_not_get_what_one_fetched() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf)
    for namespace in ("web", "other", "web"):
        await engine.resolve(ref(version="7"), Requester(namespace))
    assert len(shelf.calls) == 2


async def test_a_public_source_is_fetched_once_for_all() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf, policies=[Policy("all", is_public=True)])
    for namespace in ("web", "other"):
        await engine.resolve(ref(version="7"), Requester(namespace))
    assert len(shelf.calls) == 1


async def test_what_is_public_is_given_to_all_and_nobody_fails_by_the_credential_of_another() -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if fetch.namespace != "web":
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, "there is no such Secret")
        return BOX

    shelf = FakeResolver(answer)
    engine = engine_of(shelf, policies=[Policy("all", is_public=True)])
    other, wanted = Requester("other"), ref(version="7", seconds="5")
    failing = asyncio.create_task(engine.resolve(wanted, other))
    await CLOCK.sleep(1)  # what is under way is not joined, and what it came to is not kept for others
    assert (await engine.resolve(wanted, WEB)).resolved.data == BOX
    with pytest.raises(ResolutionError, match="no such Secret"):
        await failing
    assert (await engine.resolve(wanted, other)).fetched_from == "cache"
    many = [engine.resolve(ref(version="8", seconds="5"), Requester("web", str(number))) for number in range(40)]
    assert {outcome.resolved.data for outcome in await asyncio.gather(*many)} == {BOX}
    assert len(shelf.calls) == 2 + 4  # those that wait for a place find it in the cache then


@pytest.mark.slow
async def test_a_namespace_whose_remotes_hang_leaves_places_for_the_others() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf)
    hung = [
        asyncio.create_task(engine.resolve(ref(f"https://{at}.example/{number}", seconds="50"), Requester("greedy")))
        for number in range(40)
        for at in ("shared", *(f"host-{each}" for each in range(30)))
    ]
    await CLOCK.sleep(0.1)
    async with asyncio.timeout(2):
        found = await asyncio.gather(
            *(engine.resolve(ref(f"https://shared.example/w{each}"), WEB) for each in range(50))
        )
    assert len(found) == 50
    for task in hung:
        task.cancel()
    await asyncio.wait(hung)
    assert shelf.running == 0


async def test_who_comes_while_a_fetch_that_nobody_wants_any_more_ends_begins_anew() -> None:
    flights: SingleFlight[str, int] = SingleFlight()

    async def slow() -> int:
        try:
            await CLOCK.sleep(100)
        finally:
            await CLOCK.sleep(1)  # its processes end
        return 1

    async def quick() -> int:
        return 2

    given_up = asyncio.create_task(flights.join("same", slow))
    await CLOCK.sleep(1)
    given_up.cancel()
    await CLOCK.sleep(0.5)
    assert await flights.join("same", quick) == 2
    await asyncio.wait([given_up])
    assert len(flights) == 0


async def test_who_is_cancelled_again_waits_too_until_nothing_is_left_of_the_fetch() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    left: list[str] = []

    async def slow() -> int:
        left.append("process")
        try:
            await CLOCK.sleep(100)
        finally:
            await CLOCK.sleep(1)
            left.remove("process")
        return 1

    given_up = asyncio.create_task(flights.join("same", slow))
    await CLOCK.sleep(1)
    for _ in range(2):
        given_up.cancel()
        await CLOCK.sleep(0.1)
    await asyncio.wait([given_up])
    assert (given_up.cancelled(), left) == (True, [])


async def test_what_moves_costs_only_finding_out_where_it_is() -> None:
    shelf = FakeResolver(latest="7")
    engine = engine_of(shelf)
    await engine.resolve(ref(), WEB)
    await engine.resolve(ref(), WEB)
    assert [call for call, _ in shelf.calls] == ["pin", "7", "pin"]
    shelf.latest = "8"
    await engine.resolve(ref(), WEB)
    assert [call for call, _ in shelf.calls[3:]] == ["pin", "8"]


@pytest.mark.parametrize(
    ("operator", "asked", "fetches"),
    [(None, "", 1), (None, "never", 2), (CacheMode.NEVER, "always", 2), (CacheMode.ALWAYS, "never", 1)],
)
async def test_the_operators_mode_of_the_cache_comes_first(
    operator: CacheMode | None, asked: str, fetches: int
) -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf, options=EngineOptions(cache_mode=operator))
    for _ in range(2):
        await engine.resolve(ref(version="7", cache=asked), WEB)
    assert len(shelf.calls) == fetches


async def test_a_failure_of_what_is_kept_is_kept_shortly() -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        raise ResolutionError(Reason.NOT_FOUND, "no such file")

    shelf = FakeResolver(answer)
    engine = engine_of(shelf)
    for _ in range(2):
        assert (await expect_resolution_error(engine, ref(version="7"))).reason is Reason.NOT_FOUND
    assert len(shelf.calls) == 1
    await CLOCK.sleep(16)
    await expect_resolution_error(engine, ref(version="7"))
    assert len(shelf.calls) == 2


async def test_two_hundred_who_want_the_same_at_once_cause_one_fetch() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf)
    found = await asyncio.gather(*(engine.resolve(ref(version="7", seconds="1"), WEB) for _ in range(200)))
    assert {outcome.resolved.data for outcome in found} == {BOX}
    assert len(shelf.calls) == 1


async def test_who_goes_away_leaves_the_others_their_fetch_and_the_last_one_ends_it() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf)
    waiting = [asyncio.create_task(engine.resolve(ref(seconds="5"), WEB)) for _ in range(3)]
    await CLOCK.sleep(1)
    waiting[0].cancel()
    await asyncio.wait([waiting[0]])
    assert shelf.running == 1
    assert (await waiting[1]).resolved.data == BOX
    alone = asyncio.create_task(engine.resolve(ref(seconds="5"), WEB))
    await CLOCK.sleep(1)
    alone.cancel()
    await asyncio.wait([alone])
    assert (shelf.running, len(shelf.calls)) == (0, 2)


async def test_a_remote_that_hangs_holds_up_only_those_who_want_it() -> None:
    shelf = FakeResolver()
    engine = engine_of(shelf, bounds=ConcurrencyLimiter(per_server=2, total=4))
    hung = [
        asyncio.create_task(engine.resolve(ref(f"https://dead.example/{number}", seconds="50"), WEB))
        for number in range(10)
    ]
    await CLOCK.sleep(0.1)
    async with asyncio.timeout(2):
        await asyncio.gather(*(engine.resolve(ref(f"https://a.example/{number}"), WEB) for number in range(50)))
    assert shelf.running == 2
    for task in hung:
        task.cancel()
    await asyncio.wait(hung)
    assert shelf.running == 0


async def test_a_digest_is_compared_with_what_came() -> None:
    engine = engine_of(FakeResolver())
    assert (await engine.resolve(ref(digest=Digest.of(BOX)), WEB)).resolved.data == BOX
    assert (await expect_resolution_error(engine, ref(digest=Digest.of(b"other")))).reason is Reason.DIGEST_MISMATCH


async def test_policies_hold_for_the_place_that_it_came_from_in_the_end() -> None:
    there = Reference("shelf", {"url": "https://a.example/box", "from": "https://b.example/box"})
    allowed = Policy("only-a", sources=(SourcePrefix.parse("https://a.example"),))
    assert (await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed]), there)).reason is Reason.DENIED
    signed = Policy("b", sources=(SourcePrefix.parse("https://b.example"),), signature=SignatureRule())
    error = await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed, signed]), there)
    assert error.reason is Reason.SIGNATURE_INVALID
    strict = Policy("b", sources=(SourcePrefix.parse("https://b.example"),), requires_digest=True)
    assert (
        await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed, strict]), there)
    ).reason is Reason.DENIED


async def test_policies_hold_for_another_path_of_the_same_server() -> None:
    there = Reference("shelf", {"url": "https://a.example/hub/box", "from": "https://a.example/other/box"})
    allowed = Policy("only-hub", sources=(SourcePrefix.parse("https://a.example/hub"),))
    assert (await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed]), there)).reason is Reason.DENIED
    below = Reference("shelf", {"url": "https://a.example/hub/box", "from": "https://a.example/hub/box/1"})
    assert (await engine_of(FakeResolver(), policies=[allowed]).resolve(below, WEB)).policies == ("only-hub",)


async def test_policies_hold_for_where_a_redirect_leads() -> None:
    led = Reference("shelf", {"url": "https://a.example/box", "to": "https://b.example/box"})
    allowed = Policy("a", sources=(SourcePrefix.parse("https://a.example"),))
    error = await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed]), led)
    assert error.reason is Reason.DENIED
    assert (
        "https://a.example/box leads to another address: no policy allows namespace web to fetch https://b.example/box"
        in error.message
    )
    also = Policy("b", sources=(SourcePrefix.parse("https://b.example"),), requires_digest=True)
    assert (
        await expect_resolution_error(engine_of(FakeResolver(), policies=[allowed, also]), led)
    ).reason is Reason.DENIED
    led = Reference(led.resolver, led.params, digest=Digest.of(BOX))
    assert (await engine_of(FakeResolver(), policies=[allowed, also]).resolve(led, WEB)).policies == ("a", "b")


async def test_a_policy_that_asks_for_a_digest_takes_a_pin_too() -> None:
    engine = engine_of(FakeResolver(), policies=[Policy("any"), Policy("strict", requires_digest=True)])
    error = await expect_resolution_error(engine, ref())
    assert error.reason is Reason.DENIED
    assert error.message.startswith("policy strict: requires a digest; add a digest, or parameters")
    for reference in (ref(version="7"), ref(digest=Digest.of(BOX))):
        assert (await engine.resolve(reference, WEB)).policies == ("any", "strict")


async def test_content_that_is_no_definition_is_told_with_its_source_and_none_of_it() -> None:
    error = await expect_resolution_error(engine_of(FakeResolver(lambda fetch, calls: b"hunter2")), ref())
    assert error.message.startswith("https://a.example/box: the content is not a definition: ")
    assert "hunter2" not in error.message


@pytest.mark.slow
async def test_others_go_on_while_large_content_is_read() -> None:
    large = BOX + b"spec: [" + b"a," * 90_000 + b"]"
    turns = 0

    async def go_on() -> None:
        nonlocal turns
        while True:
            await CLOCK.sleep(0)
            turns += 1

    async with asyncio.TaskGroup() as group:
        going = group.create_task(go_on())
        await engine_of(FakeResolver(lambda fetch, calls: large)).resolve(ref(), WEB)
        going.cancel()
    assert turns > 100


async def test_who_is_cancelled_again_keeps_the_place_until_the_thread_that_reads_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def read(data: bytes, kinds: object) -> dict[str, Any]:
        begun.set()
        may_end.wait(10)
        return {}

    monkeypatch.setattr("konverge_resolution._internal.engine.parse_content", read)
    large = ResolvedContent(b"a" * 20_000, Provenance("https://a.example/box", {}))
    given_up = asyncio.create_task(engine_of(FakeResolver()).validate_content(ref(), WEB, large))
    await asyncio.to_thread(begun.wait, 10)
    for _ in range(2):
        given_up.cancel()
        await CLOCK.sleep(0)
    assert not given_up.done()
    may_end.set()
    await asyncio.wait([given_up])
    assert given_up.cancelled()


async def test_what_is_recorded_of_content_is_bounded() -> None:
    error = await expect_resolution_error(
        engine_of(FakeResolver()), Reference("shelf", {"url": "https://a.example", "from": "x" * 40_000})
    )
    assert error.reason is Reason.TOO_LARGE
    assert "expected at most 32768 bytes, found 40" in error.message


async def test_what_is_no_definition_does_not_come_out() -> None:
    shelf = FakeResolver(lambda fetch, calls: b"root:x:0:0\n")
    assert (await expect_resolution_error(engine_of(shelf), ref())).reason is Reason.UNSUPPORTED_CONTENT


async def resolve_and_verify(mode: SignatureMode, *problems: str) -> ResolutionResult:
    message = iter(problems)

    async def verify(resolved: ResolvedContent, obj: object, rule: SignatureRule) -> str:
        return next(message)

    policies = [Policy(f"p{number}", signature=SignatureRule(mode)) for number in range(len(problems))]
    return await engine_of(FakeResolver(), policies=policies, verifier=verify).resolve(ref(), WEB)


async def test_every_policy_that_asks_for_a_signature_has_to_be_met() -> None:
    assert (await resolve_and_verify(SignatureMode.ENFORCE, "", "")).warnings == ()
    with pytest.raises(ResolutionError, match="not signed") as caught:
        await resolve_and_verify(SignatureMode.ENFORCE, "", "it is not signed")
    assert caught.value.reason is Reason.SIGNATURE_INVALID
    assert (await resolve_and_verify(SignatureMode.WARN, "", "it is not signed")).warnings == ("it is not signed",)


async def test_without_anybody_who_verifies_nothing_passes_for_signed() -> None:
    engine = engine_of(FakeResolver(), policies=[Policy("signed", signature=SignatureRule())])
    assert (await expect_resolution_error(engine, ref())).reason is Reason.SIGNATURE_INVALID

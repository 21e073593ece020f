"""Several processes: replicas, processes for some resolvers each, and those that end in the middle."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from typing import Any, cast

import pytest
import yaml
from click.testing import CliRunner

from konverge._internal.client.transport import Response
from konverge.client import Client, Transport
from konverge.clock import SimulatedClock
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
from konverge.runtime import LeaderElection
from konverge_cluster.testing import Cluster
from konverge_resolution import FetchRequest
from konverge_resolution._internal.cli import resolvers as cli_resolvers
from konverge_resolution._internal.requests.namespace_watcher import ResolverAnnouncer
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import EMBEDDED, POLICY, RequestNamespace, decode_data

pytestmark = pytest.mark.anyio

LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")


def replica(desk: RequestNamespace, name: str) -> RunOptions:
    leases = LeaderElection(
        "resolution",
        desk.namespace,
        identity=name,
        lease_duration=timedelta(seconds=3),
        renew_deadline=timedelta(seconds=2),
        retry_period=timedelta(seconds=0.5),
    )
    return RunOptions(namespaces=(desk.namespace,), leases=leases)


def distinct(number: int, **params: str) -> dict[str, str]:
    return {"url": f"https://{number}.example/x", **params}


async def ask(desk: RequestNamespace, names: Mapping[str, str], **params: str) -> None:
    """A request for each name, of its resolver."""
    await asyncio.gather(
        *(
            desk.create_request(name, resolver, params=distinct(number, **params))
            for number, (name, resolver) in enumerate(names.items())
        )
    )


async def all_end(desk: RequestNamespace, names: Mapping[str, str]) -> None:
    for name in names:
        assert decode_data(await desk.wait_until_ended(name)) == BOX


@pytest.mark.slow
async def test_two_replicas_fetch_each_of_a_hundred_requests_once(desk: RequestNamespace) -> None:
    first, second = FakeResolver(), FakeResolver()
    names = {f"request-{number}": "shelf" for number in range(100)}
    async with (
        desk.running_resolvers(first, options=replica(desk, "a")),
        desk.running_resolvers(second, options=replica(desk, "b")),
    ):
        await ask(desk, names)
        await all_end(desk, names)

    assert len(first.calls) + len(second.calls) == 100


@pytest.mark.slow
async def test_a_leader_that_goes_leaves_every_request_to_its_own_resolver(desk: RequestNamespace) -> None:
    names = {f"{resolver}-{number}": resolver for resolver in ("x", "y", "z") for number in range(10)}

    def shelves() -> list[FakeResolver]:
        def answer(fetch: FetchRequest, calls: int) -> bytes:
            return BOX

        return [FakeResolver(answer, name=name) for name in ("x", "y", "z")]

    old, new = shelves(), shelves()
    async with AsyncExitStack() as stack:
        leader = await stack.enter_async_context(AsyncExitStack())
        await leader.enter_async_context(desk.running_resolvers(*old, options=replica(desk, "a")))
        await ask(desk, names, seconds="2")
        await desk.wait_until_pending(*names)
        await stack.enter_async_context(desk.running_resolvers(*new, options=replica(desk, "b")))
        await leader.aclose()
        assert [shelf.running for shelf in old] == [0, 0, 0]
        await all_end(desk, names)

    for shelf in new:
        # Each URL is asked of one resolver only, and once.
        assert len(shelf.calls) == len(set(shelf.calls)) == 10


@pytest.mark.slow
@EMBEDDED
async def test_a_restart_with_fifty_pending_loses_none(desk: RequestNamespace) -> None:
    names = {f"request-{number}": "shelf" for number in range(50)}
    async with desk.running_resolvers(FakeResolver()):
        await ask(desk, names, seconds="5")
        await desk.wait_until_pending(*names)
    again = FakeResolver()
    async with desk.running_resolvers(again):
        await all_end(desk, names)

    assert len(again.calls) == 50
    # What was begun by somebody else may just have been ended by them: the server is asked before it is fetched again.
    asked = [
        request
        for request in desk.cluster.list_requests("konverge-resolution")
        if "/resolutionrequests/" in request.path
    ]
    assert sum(request.verb == "get" for request in asked) == 50


async def test_a_request_whose_process_died_ends_by_its_deadline_all_the_same(desk: RequestNamespace) -> None:
    await desk.set_config_map("konverge-resolution", timeout="3s", attempts="1")
    keeper, dying = FakeResolver(name="keeper"), FakeResolver()
    async with desk.running_resolvers(keeper):
        async with desk.running_resolvers(dying, name="shelf-resolution", keeps_lifecycle=False):
            await until_announced(desk, "shelf-resolution")
            await desk.create_request("a", params={"seconds": "100"})
            await desk.cluster.eventually(lambda: dying.running == 1, describe="it is fetched")
        failure = await desk.wait_for_failure("a", within=5)

    assert failure.reason == "TimedOut"
    assert dying.running == 0


async def test_a_process_for_one_more_resolver_comes_and_goes_without_the_others_noticing(
    desk: RequestNamespace,
) -> None:
    shelf, attic = FakeResolver(), FakeResolver(name="attic")
    async with desk.running_resolvers(shelf):
        await desk.create_request("before", "attic")
        before = await desk.wait_for_failure("before", within=2)
        async with desk.running_resolvers(attic, name="attic-resolution", keeps_lifecycle=False):
            await until_announced(desk, "attic-resolution")
            await desk.create_request("during", "attic")
            await desk.wait_until_ended("during", within=5)
        await desk.create_request("own")
        await desk.wait_until_ended("own", within=2)
        # The lease runs out on its own; what comes then is refused at once again.
        if desk.cluster.name == "embedded":
            await desk.cluster.clock.sleep(61)
            await desk.create_request("after", "attic")
            assert "available: shelf" in (await desk.wait_for_failure("after", within=2)).message

    assert before.reason == "ResolverNotAvailable"
    assert (len(shelf.calls), len(attic.calls)) == (1, 1)
    assert len(desk.status_writes("during")) + len(desk.status_writes("during", "attic-resolution")) <= 3


async def test_a_policy_for_a_resolver_that_does_not_exist_refuses_what_it_concerns(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    async with desk.running_resolvers(shelf), desk.policy("misspelt", resolvers=["gti"], sources=["https://a.example"]):
        said = await policy_says(desk, "misspelt", "Error")
        await desk.create_request("a")
        refused = await desk.wait_for_failure("a")

    message = "spec.resolvers: expected names of resolvers, found 'gti'; available: bundles, cluster, git, http, hub"
    assert said.status == "False"
    assert said.message.startswith(f"{message}, shelf; did you mean 'git'?; requests that it applies to are refused")
    assert refused.reason == "InvalidConfiguration"
    assert f"{desk.namespace}-misspelt is invalid and may forbid this: {message}" in refused.message
    assert shelf.calls == []


@EMBEDDED
async def test_the_resolvers_of_a_package_are_those_that_it_serves(
    desk: RequestNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Operator] = []
    monkeypatch.setattr(cli_resolvers, "run_operator", lambda ctx, operator, **flags: started.append(operator))
    command = ["package", "--image", "a", "--namespace", desk.namespace, "--only", "git,http"]
    printed = CliRunner().invoke(cli_resolvers.resolvers, command, catch_exceptions=False).stdout
    (deployment,) = [each for each in yaml.safe_load_all(printed) if each["kind"] == "Deployment"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    CliRunner().invoke(cli_resolvers.resolvers, container["args"][1:], catch_exceptions=False)
    async with desk.cluster.run_operator(started[0]):
        await desk.cluster.clock.sleep(61)  # in its first minute it waits for a process that may be starting
        await desk.create_request("left-out", "bundles")
        failure = await desk.wait_for_failure("left-out")

    assert failure.reason == "ResolverNotAvailable"
    assert failure.message.startswith("resolver 'bundles' is not installed; available: git, http")


@EMBEDDED
async def test_a_policy_may_name_a_resolver_that_another_process_has_announced(desk: RequestNamespace) -> None:
    async with desk.running_resolvers(FakeResolver()), desk.policy("theirs", resolvers=["attic", "shelf"]):
        assert (await policy_says(desk, "theirs", "Error")).status == "False"
        async with desk.running_resolvers(FakeResolver(name="attic"), name="attic-resolution", keeps_lifecycle=False):
            assert (await policy_says(desk, "theirs", "Readable", within=90)).message == "the policy is active"
            await desk.create_request("a", "attic")
            await desk.wait_until_ended("a", within=5)
        # A process that is gone for a while makes no mistake of it.
        await desk.cluster.clock.sleep(200)
        assert (await policy_says(desk, "theirs", "Readable")).status == "True"
        await desk.create_request("b")
        assert decode_data(await desk.wait_until_ended("b", within=2)) == BOX


async def policy_says(desk: RequestNamespace, name: str, reason: str, *, within: float = 10) -> Condition:
    async def found() -> Condition | None:
        policy = await desk.cluster.client.get(POLICY, ObjectKey("", f"{desk.namespace}-{name}"))
        condition = find_condition(policy, "Ready")
        return condition if condition is not None and condition.reason == reason else None

    return await desk.cluster.eventually(found, timeout_seconds=within, describe=f"policy {name}: {reason}")


class SlowToHangUp:
    """As much of a client as who announces needs: no answer comes, and to hang up takes a second."""

    is_connected = False

    async def apply(self, obj: Object, *, field_manager: str, force: bool) -> None:
        self.is_connected = True
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await SimulatedClock().sleep(1)
            self.is_connected = False


async def test_who_announces_has_hung_up_at_the_end_however_often_it_is_cancelled() -> None:
    client, clock = cast("Any", SlowToHangUp()), SimulatedClock()

    async def announce() -> None:
        async with ResolverAnnouncer(client, "shelf", "system", frozenset({"shelf"}), clock=clock).background_renewal():
            await clock.sleep(100)

    announcing = asyncio.create_task(announce())
    for _ in range(3):
        await clock.sleep(0.1)
        announcing.cancel()
    await asyncio.wait([announcing])
    assert (announcing.cancelled(), client.is_connected) == (True, False)


async def until_announced(desk: RequestNamespace, operator: str) -> None:
    async def is_there() -> bool:
        await desk.cluster.client.get(LEASE, ObjectKey(desk.namespace, f"resolvers-of-{operator}"))
        return True

    await desk.cluster.eventually(is_there, describe="the resolvers are announced")
    await desk.cluster.clock.sleep(1)


class Stumbling:
    """A transport whose server fails the first writes of each status in every way that passes."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.failures: dict[str, list[int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    async def request(self, method: str, path: str, **more: Any) -> Response:
        if method == "PATCH" and path.endswith("/status"):
            left = self.failures.setdefault(path, [409, 500, 429])
            if left:
                return Failed(left.pop(0))
        return await self._transport.request(method, path, **more)


class Failed:
    headers: Mapping[str, str] = {"content-type": "application/json"}

    def __init__(self, status: int) -> None:
        self.status = status
        self.body = b'{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": %d}' % status


@EMBEDDED
async def test_an_api_server_that_stumbles_costs_no_request_and_no_second_fetch(desk: RequestNamespace) -> None:
    shelf = FakeResolver()
    stumbling = Stumbling(desk.cluster.new_transport())
    client = Client(stumbling, user_agent="stumbling", clock=desk.cluster.clock)
    async with running(desk.cluster, desk.operator(shelf), client):
        names = {f"request-{number}": "shelf" for number in range(5)}
        await ask(desk, names)
        await all_end(desk, names)

    assert len(shelf.calls) == 5
    assert all(left == [] for left in stumbling.failures.values())


@asynccontextmanager
async def running(cluster: Cluster, operator: Operator, client: Client) -> AsyncIterator[None]:
    options = RunOptions(namespaces=(cluster.namespace,))
    task = asyncio.create_task(operator.run(client, options, clock=cluster.clock))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

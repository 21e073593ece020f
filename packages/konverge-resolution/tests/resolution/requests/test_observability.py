"""What a run tells of itself, what it never tells, what it may do, and what is left of one that is killed."""

import asyncio
import logging
import signal
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest

from konverge._internal.operator.owner_context import OperatorRun
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge.clock import SystemClock
from konverge.kube import ObjectKey
from konverge.observability import Metrics, ObservabilityOptions
from konverge.operator import RunOptions
from konverge_resolution import REASON_TRAITS, Digest, FetchRequest, Reason, ResolutionError
from konverge_resolution._internal.cluster_services import NamespaceSecrets
from konverge_resolution._internal.requests.api_types import REQUEST
from konverge_resolution._internal.requests.fetch_pool import FetchPool, RequestId
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from tests.operator.sample_operator import find_free_address
from tests.operator.test_permissions_granted import acting_as, granting_permissions, takes_effect
from tests.resolution.fake_resolver import BOX, FakeResolver
from tests.resolution.requests.request_namespace import CONFIG_MAP, EMBEDDED, REAL, RequestNamespace, decode_data

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@EMBEDDED
@pytest.mark.real_time
async def test_requests_are_counted_by_resolver_reason_and_where_the_answer_was(desk: RequestNamespace) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if "missing" in str(fetch.params["url"]):
            raise ResolutionError(Reason.NOT_FOUND, "no")
        return BOX

    operator = desk.operator(FakeResolver(answer))
    runs: list[OperatorRun] = []

    @asynccontextmanager
    async def note(run: OperatorRun, process: Any) -> AsyncIterator[None]:
        runs.append(run)
        yield

    operator.runs_in_background(note)
    options = RunOptions(
        namespaces=(desk.namespace,),
        observability=ObservabilityOptions(metrics_address=find_free_address(), probe_address=find_free_address()),
    )
    async with desk.cluster.run_operator(operator, options):
        for name in ("first", "second"):
            await desk.create_request(name, params={"url": "https://a.example/x", "version": "7"})
            await desk.wait_until_ended(name)
        await desk.create_request("missing")
        await desk.wait_for_failure("missing")
        await desk.create_request("unknown", "somebody-s-secret-name")
        await desk.wait_for_failure("unknown")
        await desk.create_request("pending", params={"seconds": "100"})
        await desk.wait_until_pending("pending")
        await desk.cluster.clock.sleep(1.2)
        assert isinstance(runs[0].metrics, Metrics)
        found = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for metric in runs[0].metrics.collect()
            for sample in metric.samples
            if sample.name.startswith("konverge_resolution")
        }

    total = "konverge_resolution_requests_total"
    assert found[total, "Resolved", "remote", "shelf"] == 1
    assert found[total, "Resolved", "cache", "shelf"] == 1
    assert found[total, "NotFound", "none", "shelf"] == 1
    assert found[total, "ResolverNotAvailable", "none", "unknown"] == 1
    assert found["konverge_resolution_seconds_count", "remote", "shelf"] == 1
    assert found["konverge_resolution_seconds_count", "cache", "shelf"] == 1
    assert found["konverge_resolution_pending", "shelf"] == 1
    assert found["konverge_resolution_oldest_pending_seconds", "shelf"] > 0
    assert found["konverge_resolution_fetches",] == 1
    values = {value for name, *labels in found for value in labels if "bucket" not in name}
    assert values <= {
        "shelf",
        "unknown",
        "remote",
        "cache",
        "none",
        "Resolved",
        *(reason.value for reason in REASON_TRAITS),
    }


async def test_the_log_has_one_line_for_each_request_that_ends(
    desk: RequestNamespace, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(fetch: FetchRequest, calls: int) -> bytes:
        if "missing" in str(fetch.params["url"]):
            raise ResolutionError(Reason.NOT_FOUND, "there is no such box")
        return BOX

    caplog.set_level(logging.INFO, "konverge.resolution")
    async with desk.running_resolvers(FakeResolver(answer)):
        for name in ("first", "second"):
            await desk.create_request(name, params={"url": "https://a.example/x", "version": "7"})
            await desk.wait_until_ended(name)
        await desk.create_request("missing")
        await desk.wait_for_failure("missing")
    records = {
        record.getMessage(): record.__dict__ for record in caplog.records if record.getMessage().endswith("has ended")
    }
    first, second, missing = (
        records[f"request {desk.namespace}/{name} has ended"] for name in ("first", "second", "missing")
    )
    for record, fetched_from, attempts in ((first, "remote", 1), (second, "cache", 0)):
        found = [record[name] for name in ("resolver", "reason", "fetched_from", "attempts", "digest")]
        assert found == ["shelf", "Resolved", fetched_from, attempts, str(Digest.of(BOX))]
        assert record["source"].startswith("https://a.example/x")
        assert 0 <= record["seconds"] < 60
    assert (missing["resolver"], missing["reason"], missing["error"]) == ("shelf", "NotFound", "there is no such box")
    assert len(records) == 3


async def test_nothing_of_a_secret_is_told_anywhere(desk: RequestNamespace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "crown-jewels", "namespace": desk.namespace},
        "data": {"token": "aHVudGVyMg=="},
    }
    await desk.cluster.client.create(secret)
    secrets = NamespaceSecrets(desk.cluster.client, desk.namespace)

    class Careless(FakeResolver):
        async def resolve(self, fetch: FetchRequest) -> Any:
            if fetch.params["url"] == "https://a.example/wrong":
                await secrets.read_value("crown-jewels", "other")
            raise ValueError(await secrets.read_value("crown-jewels", "token"))

    caplog.clear()
    async with desk.running_resolvers(Careless()):
        for name in ("wrong", "careless"):
            await desk.create_request(name)
            await desk.wait_for_failure(name)
        message = [await desk.get("wrong"), await desk.get("careless")]
        events = [
            *await desk.wait_for_events("wrong", "AuthRequired"),
            *await desk.wait_for_events("careless", "Internal"),
        ]

    everything = str(message) + str(events) + caplog.text
    assert "ValueError" in everything
    for word in ("hunter2", "aHVudGVyMg", "crown-jewels"):
        assert word not in everything


@REAL
async def test_the_derived_roles_are_enough_and_give_no_list_of_secrets(desk: RequestNamespace) -> None:
    operator = desk.operator(ClusterResolver(), FakeResolver(), services_for=None, reads_kinds=[CONFIG_MAP])
    permissions = derive_permissions(operator.registered.declaration, RunOptions().runtime_features)
    await desk.set_config_map("definition", a="b")
    # Whatever one reads besides: which namespace is home is the deployment's to say, here the test's own.
    async with (
        granting_permissions(desk.cluster, permissions, desk.namespace),
        acting_as(desk.cluster, "bakery") as client,
    ):
        await takes_effect(desk.cluster, client, permissions, desk.namespace)
        options = RunOptions(namespaces=(desk.namespace,))
        running = asyncio.create_task(operator.run(client, options, clock=desk.cluster.clock))
        try:
            params = {"kind": "configmap", "name": "definition", "namespace": desk.namespace}
            await desk.cluster.client.create(
                {
                    "apiVersion": REQUEST.api_version,
                    "kind": REQUEST.kind,
                    "metadata": {"name": "a", "namespace": desk.namespace},
                    "spec": {"resolver": "cluster", "params": params},
                }
            )
            assert b'"a":"b"' in decode_data(await desk.wait_until_ended("a"))
            await desk.create_request("b", "gti")
            await desk.wait_for_failure("b")
            await desk.wait_for_events("b", "ResolverNotAvailable")
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
    listing = [rule for rule in permissions.rules if "secrets" in rule.resources]
    assert [rule.verbs for rule in listing] == [("get",)]


PROGRAM = """
import asyncio
from pathlib import Path
from konverge.client import Client
from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge.operator import RunOptions
from konverge_resolution.requests import build_resolution_operator
from konverge_resolution._internal.resolver import Services
from konverge.clock import SystemClock
from tests.resolution.fake_resolver import FakeResolver

async def main():
    config = load_kubeconfig(Path({kubeconfig!r}), env={{}})
    def services(requester, admission):
        return Services(http=None, secrets=None, workspaces=None, clock=SystemClock())
    operator = build_resolution_operator([FakeResolver()], home={namespace!r}, services_for=services)
    async with Client(HttpTransport(config), user_agent="konverge-resolution") as client:
        await operator.run(client, RunOptions(namespaces=({namespace!r},)))

asyncio.run(main())
"""


@REAL
async def test_a_process_that_is_killed_in_the_middle_of_a_fetch_leaves_a_request_that_ends(
    desk: RequestNamespace,
) -> None:
    program = textwrap.dedent(PROGRAM).format(
        kubeconfig=str(await desk.cluster.write_kubeconfig()), namespace=desk.namespace
    )
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    try:
        await desk.create_request("a", params={"seconds": "3"})
        await desk.wait_until_pending("a")
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()
    again = FakeResolver()
    async with desk.running_resolvers(again):
        assert decode_data(await desk.wait_until_ended("a")) == BOX
    assert len(again.calls) == 1


async def test_a_fetch_that_is_forgotten_is_cancelled_and_what_came_of_it_is_not_held() -> None:
    clock = SystemClock()
    woken: list[RequestId] = []
    fetches = FetchPool(clock, woken.append, limit=2)
    request = RequestId(REQUEST, ObjectKey("web", "a"), "1")
    cancelled = asyncio.Event()

    async def hang() -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with asyncio.timeout(5), fetches.task_group():
        fetches.start(request, clock.now(), hang)
        fetches.start(RequestId(REQUEST, ObjectKey("web", "b"), "2"), clock.now(), hang)
        await clock.sleep(0)
        assert not fetches.has_slot("web")
        fetches.forget("1")
        await cancelled.wait()
        assert fetches.has_slot("web")
    assert woken == []


async def test_a_namespace_with_all_its_fetches_under_way_waits_for_its_own_to_end_and_is_not_asked_meanwhile() -> None:
    clock = SystemClock()
    woken: list[RequestId] = []
    fetches = FetchPool(clock, woken.append, limit=10, namespace_limit=2)
    greedy = [RequestId(REQUEST, ObjectKey("greedy", str(number)), f"g{number}") for number in range(5)]
    modest = RequestId(REQUEST, ObjectKey("modest", "a"), "m")

    async def hang() -> Any:
        await asyncio.Event().wait()

    async with asyncio.timeout(5), fetches.task_group():
        for request in greedy[:2]:
            fetches.start(request, clock.now() + timedelta(minutes=1), hang)
        assert (fetches.has_slot("greedy"), fetches.has_slot("modest")) == (False, True)
        for request in greedy[2:]:
            fetches.notify_when_free(request)
        fetches.prune({(REQUEST, request.key) for request in (*greedy, modest)})
        assert woken == []
        fetches.forget("g2")  # was deleted while it waited
        fetches.forget("g0")
        assert woken == [greedy[3]]
        fetches.prune({(REQUEST, request.key) for request in (*greedy, modest)})
        assert woken == [greedy[3], greedy[4]]  # nobody has taken the room

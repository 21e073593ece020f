"""The cost of 1,000 requests for 100 definitions, and the time from the creation of a request to its content.

One process fulfills all of them on the embedded cluster. The resolver takes ten milliseconds, so the protocol is
measured: the number of fetches, the API requests for each request, and the time until the last content. Then a hundred
requests run one after another, each watched by its creator. Last, one hanging remote runs beside fifty good ones.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from konverge.client import Client
from konverge.clock import SeededEntropy, SystemClock
from konverge.crd import crd_manifest
from konverge.kube import Object, ObjectKey, find_condition
from konverge_cluster._internal.testing.polling import eventually
from konverge_cluster.embedded import LocalCluster
from konverge_resolution import (
    Digest,
    FetchRequest,
    Parameter,
    Parameters,
    Provenance,
    ResolvedContent,
    Services,
    Setting,
)
from konverge_resolution._internal.engine import Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution.requests import REQUEST, ResolutionPolicy, ResolutionRequest, build_resolution_operator

_REQUESTS = 1_000
_REFERENCES = 100
_ONE_BY_ONE = 100
_REMOTE_SECONDS = 0.01
_AT_MOST_SECONDS = 300
_NAMESPACE = "default"
_AGENT = "konverge-resolution"
_CONTENT = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@dataclass
class _Catalog:
    """Resolves every address after a delay, and one never."""

    name: str = "catalog"
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    settings: Mapping[str, Setting] = field(default_factory=dict)
    fetches: int = 0

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        return params

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        return str(params["url"])

    def is_pinned(self, params: Parameters) -> bool:
        return True

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        return None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        self.fetches += 1
        url = str(fetch.params["url"])
        await asyncio.sleep(3600 if "hangs" in url else _REMOTE_SECONDS)
        return ResolvedContent(_CONTENT, Provenance(url, {"sha256": Digest.of(_CONTENT).hex}))


def _request(name: str, url: str) -> Object:
    return {
        "apiVersion": REQUEST.api_version,
        "kind": REQUEST.kind,
        "metadata": {"name": name, "namespace": _NAMESPACE},
        "spec": {"resolver": "catalog", "params": {"url": url}},
    }


class _EndedRequests:
    """Tracks ended requests by one watch of all."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: dict[str, asyncio.Event] = {}

    def of(self, name: str) -> asyncio.Event:
        return self._waiting.setdefault(name, asyncio.Event())

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        listed = await self._client.list(REQUEST, namespace=_NAMESPACE)
        task = asyncio.create_task(self._watch(listed.resource_version))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _watch(self, resource_version: str) -> None:
        async with self._client.watch(REQUEST, namespace=_NAMESPACE, resource_version=resource_version) as events:
            async for event in events:
                condition = find_condition(event.object, "Succeeded")
                if condition is not None and condition.status == "True":
                    self.of(event.object["metadata"]["name"]).set()


@dataclass(frozen=True)
class RequestMeasurements:
    """The results; times in seconds unless the name has another unit.

    Args:
        fetches: The number of fetches for all requests.
        writes: The number of writes per request.
        seconds: The time for all requests.
        created: The part of that time for their creation.
        median_ms: The time from creation to content.
        p95_ms: The 95th percentile of that time.
        good: The time for 50 good ones beside 50 of a hanging remote.
    """

    fetches: int
    writes: float
    seconds: float
    created: float
    median_ms: float
    p95_ms: float
    good: float


async def _measure() -> RequestMeasurements:
    clock, entropy = SystemClock(), SeededEntropy()
    catalog = _Catalog()
    nothing: Any = None

    def services(requester: Requester, admission: PolicyDecision) -> Services:
        return Services(http=nothing, secrets=nothing, workspaces=nothing, clock=clock)

    operator = build_resolution_operator([catalog], home=_NAMESPACE, services_for=services)
    async with LocalCluster(clock=clock, entropy=entropy) as cluster:
        client = Client(cluster.transport(), user_agent="bench")
        for cls in (ResolutionRequest, ResolutionPolicy):
            await client.apply(crd_manifest(cls), field_manager="bench")

        async def is_served() -> bool:
            await client.list(REQUEST, namespace=_NAMESPACE)
            return True

        await eventually(is_served, clock=clock)
        own = Client(cluster.transport(), user_agent=_AGENT)
        running = asyncio.create_task(operator.run(own))
        ended = _EndedRequests(client)

        def writes() -> int:
            return sum(
                request.user_agent == _AGENT and request.verb in ("create", "patch", "update", "delete")
                for request in cluster.requests
            )

        async with ended.watching():
            await client.create(_request("warm-up", "https://warm.example/up"))
            await ended.of("warm-up").wait()
            fetched, written, began = catalog.fetches, writes(), time.monotonic()
            for number in range(_REQUESTS):
                url = f"https://{number % 10}.example/{number % _REFERENCES}"
                await client.create(_request(f"request-{number}", url))
            created = time.monotonic() - began
            for number in range(_REQUESTS):
                await ended.of(f"request-{number}").wait()
            seconds = time.monotonic() - began
            fetches, each = catalog.fetches - fetched, (writes() - written) / _REQUESTS
            took = []
            for number in range(_ONE_BY_ONE):
                began = time.monotonic()
                await client.create(_request(f"single-{number}", "https://0.example/0"))
                await ended.of(f"single-{number}").wait()
                took.append((time.monotonic() - began) * 1000)
            quantiles = statistics.quantiles(took, n=20)
            began = time.monotonic()
            for number in range(50):
                await client.create(_request(f"hung-{number}", f"https://hangs.example/{number}"))
            for number in range(50):
                await client.create(_request(f"good-{number}", f"https://good-{number}.example/x"))
            for number in range(50):
                await ended.of(f"good-{number}").wait()
            good = time.monotonic() - began
            hung = await client.get(REQUEST, ObjectKey(_NAMESPACE, "hung-0"))
            assert hung["status"]["conditions"][0]["status"] == "Unknown"
        running.cancel()
        await asyncio.wait([running])
    return RequestMeasurements(fetches, each, seconds, created, statistics.median(took), quantiles[-1], good)


@cache
def measure_once() -> RequestMeasurements:
    """Run the measurement once per process: `bench.resolution` uses the same results."""
    return asyncio.run(asyncio.wait_for(_measure(), _AT_MOST_SECONDS))


def measure() -> Iterator[str]:
    """Run the measurement; yield a line for each result."""
    found = measure_once()
    yield (
        f"{_REQUESTS} requests for {_REFERENCES} definitions: {found.fetches} fetches, {found.writes:.2f} writes a "
        f"request (goals: <= 100, <= 3), {found.seconds:.2f} s, including {found.created:.2f} s for their creation"
    )
    yield (
        f"a request from its creation to its content, seen by its creator: {found.median_ms:.1f} ms (goal: < 100), "
        f"p95 {found.p95_ms:.1f} ms"
    )
    yield f"50 good ones beside 50 of a remote that hangs: {found.good:.2f} s (goal: < 2)"

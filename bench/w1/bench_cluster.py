"""The control plane of a measurement: its parents, their readiness, and the recorded requests."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from bench.w1.parents import PARENT, Parent, is_ready, new_parent
from konverge._internal.client.connect import connect
from konverge._internal.client.watch import ADDED, MODIFIED
from konverge.client import Client
from konverge.crd import crd_manifest
from konverge.errors import KonvergeError
from konverge.kube import ObjectKey
from konverge_cluster._internal.testing.audit_requests import AuditedRequest, read_audit_log
from konverge_cluster.controlplane import RealCluster

__all__ = ["BenchCluster", "Readiness"]

_AT_ONCE = 20


class Readiness:
    """The parents that are Ready, from a watch."""

    def __init__(self) -> None:
        self.ready_at: dict[str, float] = {}
        self.first_status_at: float | None = None
        self._changed = asyncio.Event()

    def record(self, parent: dict[str, object], at: float) -> None:
        """Record one event of a parent."""
        if parent.get("status") and self.first_status_at is None:
            self.first_status_at = at
        if is_ready(parent):
            self.ready_at.setdefault(ObjectKey.of(parent).name, at)
        self._changed.set()

    async def wait_for_all_ready(self, count: int, timeout_seconds: float = 900.0) -> float:
        """Wait until `count` parents are Ready; return the time of the last one."""
        await self._until(lambda: len(self.ready_at) >= count, timeout_seconds)
        return max(self.ready_at.values())

    async def wait_for_first_status(self, timeout_seconds: float = 120.0) -> float:
        """Wait until any parent has a status; return the time."""
        await self._until(lambda: self.first_status_at is not None, timeout_seconds)
        assert self.first_status_at is not None
        return self.first_status_at

    async def wait_for_one_ready(self, name: str, timeout_seconds: float = 900.0) -> float:
        """Wait until one parent is Ready; return the time."""
        await self._until(lambda: name in self.ready_at, timeout_seconds)
        return self.ready_at[name]

    async def _until(self, is_so: object, timeout_seconds: float) -> None:
        assert callable(is_so)
        async with asyncio.timeout(timeout_seconds):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()


class BenchCluster:
    """A control plane with the definition of the parents, as an async context manager."""

    def __init__(self) -> None:
        self._closing = AsyncExitStack()
        self._cluster = RealCluster()
        self.client: Client

    async def __aenter__(self) -> BenchCluster:
        await self._closing.enter_async_context(self._cluster)
        connecting = connect(self._cluster.kubeconfig, user_agent="w1-loader", env={})
        self.client = await self._closing.enter_async_context(connecting)
        await self.client.apply(crd_manifest(Parent), field_manager="w1-loader")
        async with asyncio.timeout(30):
            while True:
                with suppress(KonvergeError):
                    await self.client.list(PARENT)
                    return self
                await asyncio.sleep(0.1)

    async def __aexit__(self, *_: object) -> None:
        await self._closing.aclose()

    @property
    def kubeconfig(self) -> str:
        """The kubeconfig for the measured programs."""
        return str(self._cluster.kubeconfig)

    async def load(self, count: int, namespace: str) -> None:
        """Create a namespace with a number of parents."""
        await self.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        waiting = iter(range(count))

        async def work() -> None:
            for number in waiting:
                await self.client.create(new_parent(f"parent-{number:05}", namespace))

        async with asyncio.TaskGroup() as workers:
            for _ in range(_AT_ONCE):
                workers.create_task(work())

    async def touch(self, count: int, namespace: str) -> None:
        """Set an annotation without meaning on each parent."""
        waiting = iter(range(count))
        patch = {"metadata": {"annotations": {"bench.konverge.dev/touched": "yes"}}}

        async def work() -> None:
            for number in waiting:
                key = ObjectKey(namespace, f"parent-{number:05}")
                await self.client.patch(PARENT, key, patch, patch_type="merge")

        async with asyncio.TaskGroup() as workers:
            for _ in range(_AT_ONCE):
                workers.create_task(work())

    @asynccontextmanager
    async def watching(self, namespace: str) -> AsyncIterator[Readiness]:
        """Track the readiness of the parents while the block runs."""
        readiness = Readiness()
        page = await self.client.list_page(PARENT, namespace=namespace, limit=1)
        async with self.client.watch(
            PARENT, namespace=namespace, resource_version=page.resource_version, timeout_seconds=3600
        ) as events:

            async def follow() -> None:
                async for event in events:
                    if event.type in (ADDED, MODIFIED):
                        readiness.record(event.object, time.monotonic())

            task = asyncio.create_task(follow())
            try:
                yield readiness
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @property
    def position(self) -> int:
        """The current end of the audit log."""
        return self._cluster.audit_log.stat().st_size

    def requests(self, user_agent: str, start: int) -> list[AuditedRequest]:
        """Return the requests of a user agent since a position."""
        return [
            request for request in read_audit_log(self._cluster.audit_log, start) if request.user_agent == user_agent
        ]


def count_by_verb(requests: list[AuditedRequest]) -> Counter[str]:
    """Count requests by verb, with status writes, events and failures apart."""
    counted: Counter[str] = Counter()
    for request in requests:
        what = request.verb
        if request.path.endswith("/status"):
            what += " status"
        elif request.path.startswith("/apis/events.k8s.io/"):
            what += " event"
        counted[what if request.code < 400 else f"{what} ({request.code})"] += 1
    return counted

"""Watches of a resolution process on its own namespace, and the announcement of its resolvers.

It watches the ConfigMaps of its namespace, and the Leases with which other processes announce their resolvers. Two
watches of one namespace cause no traffic while nothing changes. A process that does not keep the lifecycle renews a
Lease of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

from konverge._internal.cache import CacheOptions, InformerFactory
from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.kube.metadata import ObjectMeta
from konverge._internal.runtime.background import background_task
from konverge.clock import Clock, Entropy
from konverge.errors import KonvergeError, format_error
from konverge_resolution._internal.requests.resolver_announcements import (
    ANNOUNCES,
    LIFETIME,
    RENEWAL,
    AnnouncementTracker,
    build_announcement,
)

__all__ = ["NamespaceWatcher", "ResolverAnnouncer"]

_log = logging.getLogger("konverge.resolution")

_CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
_LEASE = GroupVersionKind("coordination.k8s.io", "v1", "Lease")


class NamespaceWatcher:
    """Watches of ConfigMaps and Leases in the namespace of the operator.

    Args:
        client: Client of the cluster.
        home: The namespace of the operator.
        names: The names of the relevant ConfigMaps.
        clock: The clock.
        entropy: The source of randomness.
    """

    def __init__(
        self,
        client: Client,
        home: str,
        names: frozenset[str],
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._names = names
        self._clock = clock
        self._announcements = AnnouncementTracker()
        self._has_changed = asyncio.Event()
        self._started: float | None = None
        self._informers = InformerFactory(
            client,
            namespaces=(home,),
            options={
                _CONFIG_MAP: CacheOptions(transform=self._trim_config_map),
                _LEASE: CacheOptions(label_selector=f"{ANNOUNCES}=true"),
            },
            clock=clock,
            entropy=entropy,
        )

    def list_live_resolvers(self) -> frozenset[str]:
        """Return the resolvers that other processes serve now."""
        return self._announcements.list_live(self._clock.monotonic())

    def list_announced_resolvers(self) -> frozenset[str]:
        """Return the resolvers that other processes serve or have served: a policy may name these."""
        return self._announcements.known

    def has_just_started(self) -> bool:
        """Tell whether other processes that started at the same time may not have announced their resolvers yet."""
        return self._started is None or self._clock.monotonic() - self._started < LIFETIME.total_seconds()

    @asynccontextmanager
    async def watch(self, on_config_change: Callable[[Mapping[str, Object]], None]) -> AsyncIterator[None]:
        """Watch within the block; existing objects have been delivered when it begins.

        Args:
            on_config_change: Receives the ConfigMaps by name at the start and after each change.

        Raises:
            konverge.errors.KonvergeError: The watch is not permitted.
        """
        async with self._informers:
            self._informers.subscribe(self._on_change)
            for gvk in (_CONFIG_MAP, _LEASE):
                informer = await self._informers.get_informer(gvk)
                for meta in informer.store.iter_metadata():
                    self._on_change(gvk, None, meta)
            self._deliver(on_config_change)
            self._started = self._clock.monotonic()
            async with background_task(self._deliver_changes(on_config_change), name="configuration of resolution"):
                yield

    def _on_change(self, gvk: GroupVersionKind, old: ObjectMeta | None, new: ObjectMeta | None) -> None:
        meta = new or old
        if gvk == _LEASE:
            self._announcements.on_lease_change(old, new, self._clock.monotonic())
        elif meta is not None and meta.name in self._names:
            self._has_changed.set()

    async def _deliver_changes(self, on_config_change: Callable[[Mapping[str, Object]], None]) -> None:
        while True:
            await self._has_changed.wait()
            self._deliver(on_config_change)

    def _deliver(self, on_config_change: Callable[[Mapping[str, Object]], None]) -> None:
        self._has_changed.clear()
        cached = self._informers.running[_CONFIG_MAP].list()
        on_config_change({obj["metadata"]["name"]: obj for obj in cached if obj["metadata"]["name"] in self._names})

    def _trim_config_map(self, obj: Object) -> Object:
        """Drop the content of irrelevant ConfigMaps; only their metadata stays in the cache."""
        obj["metadata"].pop("managedFields", None)
        if ObjectKey.of(obj).name not in self._names:
            obj.pop("data", None)
            obj.pop("binaryData", None)
        return obj


class ResolverAnnouncer:
    """Announcer of the resolvers of this process to other processes.

    Args:
        client: Client of the cluster; every replica announces, also without the lease.
        operator: The name of the operator.
        home: The namespace of the operator.
        resolvers: The names of the resolvers.
        clock: The clock.
    """

    def __init__(self, client: Client, operator: str, home: str, resolvers: frozenset[str], *, clock: Clock) -> None:
        self._client = client
        self._operator = operator
        self._home = home
        self._resolvers = resolvers
        self._clock = clock

    @asynccontextmanager
    async def background_renewal(self) -> AsyncIterator[None]:
        """Announce within the block. Its end withdraws nothing, because the process may only restart."""
        async with background_task(self._renew_periodically(), name="announcing resolvers"):
            yield

    async def _renew_periodically(self) -> None:
        while True:
            lease = build_announcement(self._operator, self._home, self._resolvers, self._clock.now())
            try:
                await self._client.apply(lease, field_manager=self._operator, force=True)
            except KonvergeError as error:
                _log.warning("cannot announce the resolvers of this process: %s", format_error(error))
            await self._clock.sleep(RENEWAL.total_seconds())

"""The migration of stored objects: each object of a custom resource is rewritten in the storage version.

An empty patch rewrites an object. The server reads the stored object, changes nothing, and stores it again only if its
stored form differs. Thus no write of another client is lost, and a repetition costs no write. `status.storedVersions`
loses the old versions at the end, if every object was rewritten and the definition did not change meanwhile.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from konverge._internal.backoff import Backoff
from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.upgrade.definition_diff import list_stored_versions, list_versions, storage_version
from konverge._internal.upgrade.findings import MigrationReport
from konverge.clock import Clock, Entropy, SystemEntropy
from konverge.errors import (
    ApiError,
    ConflictError,
    ConnectionFailedError,
    ForbiddenError,
    KonvergeError,
    NotFoundError,
    ServerError,
    TooManyRequestsError,
    UnauthorizedError,
    format_error,
)

__all__ = ["StorageMigration"]

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
MAX_FAILURES = 100
"""The number of objects that cannot be rewritten after which a migration stops."""

_FIELD_MANAGER = "konverge-migrate-storage"
_CONCURRENT = 8
_ATTEMPTS = 5
_IN_FORCE_SECONDS = 30.0
_POLL_SECONDS = 0.2
_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=5.0)


@dataclass
class StorageMigration:
    """The migration of one custom resource.

    Args:
        client: The cluster.
        name: The name of the CustomResourceDefinition.
        clock: The time.
        rate: The number of objects per second, at most.
        is_dry_run: True to send the patches as dry runs, and to leave the definition unchanged.
        on_progress: Called with the number of objects that are done and the number of all.
        entropy: The jitter of the delay before a repetition.
    """

    client: Client
    name: str
    clock: Clock
    rate: float = 50.0
    is_dry_run: bool = False
    on_progress: Callable[[int, int], None] = lambda done, total: None
    entropy: Entropy = field(default_factory=SystemEntropy)
    _rewritten: int = field(default=0, init=False)
    _current: int = field(default=0, init=False)
    _deleted: int = field(default=0, init=False)
    _failures: list[str] = field(default_factory=list, init=False)
    _next_start: float = field(default=0.0, init=False)

    async def run(self) -> MigrationReport:
        """Rewrite all objects, then remove the old versions from ``status.storedVersions``.

        Raises:
            konverge.errors.KonvergeError: The definition does not exist, serves no version, is being deleted or changed
                meanwhile, or the cluster cannot be reached or does not permit the requests. The stored versions are as
                before; the migration can be repeated.
        """
        definition = await self._read_definition()
        wanted, stored = storage_version(definition), list_stored_versions(definition)
        if stored == (wanted,):
            return MigrationReport(self.name, wanted, stored, stored, is_dry_run=self.is_dry_run)
        gvk = self._choose_version(definition)
        await self._wait_until_in_force(gvk, wanted)
        objects = [
            (ObjectKey.of(obj), str(obj["metadata"].get("resourceVersion") or ""))
            async for obj in self.client.items(gvk, metadata_only=True)
        ]
        await self._rewrite_all(gvk, objects)
        remaining = stored
        if not self._failures and not self.is_dry_run:
            remaining = await self._remove_old_versions(definition)
        return MigrationReport(
            self.name,
            wanted,
            stored,
            remaining,
            len(objects),
            self._rewritten,
            self._current,
            self._deleted,
            tuple(self._failures),
            self.is_dry_run,
        )

    async def _read_definition(self) -> Object:
        try:
            definition = await self.client.get(DEFINITION, ObjectKey("", self.name))
        except NotFoundError:
            expected = "expected the name of a CustomResourceDefinition, for example apps.example.com, found none"
            raise KonvergeError(f"{self.name}: {expected}") from None
        if definition["metadata"].get("deletionTimestamp"):
            raise KonvergeError(f"{self.name}: the definition is being deleted, with all of its objects")
        return definition

    def _choose_version(self, definition: Object) -> GroupVersionKind:
        """Return a served version; the storage version if possible, because then no conversion can lose a field."""
        served = [str(version["name"]) for version in list_versions(definition) if version.get("served")]
        if not served:
            raise KonvergeError(
                f"{self.name}: expected a served version, found none; serve one until the migration ends"
            )
        wanted = storage_version(definition)
        version = wanted if wanted in served else served[0]
        return GroupVersionKind(definition["spec"]["group"], version, definition["spec"]["names"]["kind"])

    async def _wait_until_in_force(self, gvk: GroupVersionKind, wanted: str) -> None:
        """Wait until the server stores objects in the storage version, which it does shortly after a change of it."""
        expected = _hash_storage_version(GroupVersionKind(gvk.group, wanted, gvk.kind))
        ends = self.clock.monotonic() + _IN_FORCE_SECONDS
        while True:
            found = await self.client.storage_version_hash(gvk)
            if found in ("", expected):
                return
            if self.clock.monotonic() >= ends:
                raise KonvergeError(
                    f"{self.name}: the storage version is {wanted}, but the API server still stores objects in another "
                    f"one after {_IN_FORCE_SECONDS:g} s; repeat the command later"
                )
            await self.clock.sleep(_POLL_SECONDS)

    async def _rewrite_all(self, gvk: GroupVersionKind, objects: list[tuple[ObjectKey, str]]) -> None:
        remaining, done = iter(objects), 0

        async def work() -> None:
            nonlocal done
            for key, resource_version in remaining:
                if len(self._failures) >= MAX_FAILURES:
                    return
                await self._wait_for_turn()
                await self._rewrite(gvk, key, resource_version)
                done += 1
                self.on_progress(done, len(objects))

        try:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(_CONCURRENT):
                    tasks.create_task(work())
        except ExceptionGroup as failures:
            first = failures.exceptions[0]
            raise first from first.__cause__

    async def _wait_for_turn(self) -> None:
        now = self.clock.monotonic()
        start = max(now, self._next_start)
        self._next_start = start + 1.0 / self.rate
        if start > now:
            await self.clock.sleep(start - now)

    async def _rewrite(self, gvk: GroupVersionKind, key: ObjectKey, resource_version: str) -> None:
        for failures in range(1, _ATTEMPTS + 1):
            try:
                written = await self.client.patch(
                    gvk, key, {}, patch_type="merge", field_manager=_FIELD_MANAGER, dry_run=self.is_dry_run
                )
            except NotFoundError:
                self._deleted += 1
                return
            except (ForbiddenError, UnauthorizedError):
                raise
            except (ConflictError, ConnectionFailedError, ServerError, TooManyRequestsError) as error:
                # An empty patch can be repeated, also if the server has acted on it.
                if failures < _ATTEMPTS:
                    await self.clock.sleep(_BACKOFF.compute_delay(failures, self.entropy))
                elif isinstance(error, ConnectionFailedError):
                    raise
                else:
                    self._fail(key, error)
            except ApiError as error:
                self._fail(key, error)
                return
            else:
                is_current = written["metadata"].get("resourceVersion") == resource_version
                self._current += is_current
                self._rewritten += not is_current
                return

    def _fail(self, key: ObjectKey, error: KonvergeError) -> None:
        text = self.client.secret_values.hide(format_error(error))
        self._failures.append(f"{key}: {' '.join(text.split())}")

    async def _remove_old_versions(self, before: Object) -> tuple[str, ...]:
        """Leave only the storage version in ``status.storedVersions``, unless the definition has changed."""
        for _ in range(_ATTEMPTS):
            live = await self._read_definition()
            if changes := list(_iter_changes(before, live)):
                raise KonvergeError(
                    f"{self.name}: the stored versions stay: {', '.join(changes)} changed during the migration, so "
                    "objects may be stored in another version again; repeat the command"
                )
            remaining = (storage_version(live),)
            if list_stored_versions(live) == remaining:
                return remaining
            status = {**live["status"], "storedVersions": list(remaining)}
            try:
                updated = await self.client.update(
                    {**live, "status": status}, subresource="status", field_manager=_FIELD_MANAGER
                )
            except ConflictError:
                continue  # another writer; the next turn decides with the new definition
            return list_stored_versions(updated)
        raise KonvergeError(
            f"{self.name}: the stored versions stay: other clients write the definition; repeat the command"
        )


def _hash_storage_version(gvk: GroupVersionKind) -> str:
    """Return the hash that an API server publishes for a storage version."""
    text = f"{gvk.group}/{gvk.version}/{gvk.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def _iter_changes(before: Object, live: Object) -> Iterator[str]:
    """Yield what has changed in a definition; the generation counts each change of its spec."""
    for name in ("uid", "generation"):
        if before["metadata"].get(name) != live["metadata"].get(name):
            yield f"metadata.{name}"
    if storage_version(before) != storage_version(live):
        yield "the storage version"

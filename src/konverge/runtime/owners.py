"""What surrounds an author's pass over one owner: reading it, noting what is read, and whether to look again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

import msgspec

from konverge.cache import Informer
from konverge.clock import Entropy
from konverge.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge.runtime.cached_client import CachedClient, CachedClients
from konverge.runtime.controller import DEFAULT_TIMEOUT, DEFAULT_WORKERS, FailedPassError, Result
from konverge.runtime.queue import Backoff
from konverge.runtime.reads import Reader

__all__ = ["OwnerKind", "Owners", "ReconcileOwner"]

_encode = msgspec.json.Encoder(order="deterministic").encode

ReconcileOwner: TypeAlias = Callable[[Object, CachedClient], Awaitable[Result | None]]
"""One pass: the owner as it was read, and the client to read and write with."""


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """A kind whose objects are reconciled.

    Args:
        name: What its controller is called in logs.
        gvk: The kind.
        reconcile: One pass.
        workers: How many owners at once.
        timeout: How long a pass may take.
    """

    name: str
    gvk: GroupVersionKind
    reconcile: ReconcileOwner
    workers: int = DEFAULT_WORKERS
    timeout: timedelta = DEFAULT_TIMEOUT


class Owners:
    """The passes over the owners of one kind.

    Args:
        kind: The kind and its reconcile.
        clients: Make the client of each pass.
        entropy: Draws the jitter of pauses.
    """

    def __init__(self, kind: OwnerKind, clients: CachedClients, entropy: Entropy) -> None:
        self.kind = kind
        self._clients = clients
        self._entropy = entropy
        self._backoff = Backoff()
        self._restless: dict[ObjectKey, int] = {}

    def existing(self) -> list[ObjectKey]:
        """The keys of all owners that there are."""
        return [meta.key for meta in self._informer.store.all_metadata()]

    async def reconcile(self, key: ObjectKey) -> Result | None:
        """One pass over the owner of that key, if there is one and it is not on its way out.

        Raises:
            FailedPassError: It failed, also for good, and is to be looked at again all the same.
        """
        reader = Reader(self.kind.gvk, key)
        reads = self._clients.reads
        owner = self._informer.store.get(key)
        if owner is None or is_deleting(owner):
            reads.forget(reader)
            self._restless.pop(key, None)
            return None
        version, outlook = owner["metadata"]["resourceVersion"], _outlook(owner)
        result: Result | None = None
        failure: Exception | None = None
        is_complete = False
        reads.begin(reader)
        self._clients.take_overtaken(reader)
        try:
            result = await self.kind.reconcile(owner, self._clients.for_owner(reader))
            is_complete = True
        except FailedPassError as error:
            result, failure = Result(requeue_after=error.requeue_after), error.failure
        except Exception as error:  # noqa: BLE001  # raised below: what the pass did until then may call for a look
            failure = error
        finally:
            reads.finish(reader, complete=is_complete)
        if self._needs_another_look(reader, version, outlook):
            result = self._sooner(key, result)
        else:
            self._restless.pop(key, None)
        if failure is None:
            return result
        if result is None or result.requeue_after is None:
            raise failure
        raise FailedPassError(failure, result.requeue_after) from failure

    @property
    def _informer(self) -> Informer:
        return self._clients.informers.running[self.kind.gvk]

    def _needs_another_look(self, reader: Reader, version_before: str, outlook_before: object) -> bool:
        """Tell whether the pass has itself changed what an earlier step of it went by.

        Own writes wake nobody who made them, so another pass is what lets a component that stands before its
        prerequisite go on.
        """
        if self._clients.take_overtaken(reader):
            return True
        store = self._informer.store
        meta = store.metadata(reader.key)
        if meta is None or meta.resource_version == version_before:
            return False
        owner = store.get(reader.key)
        return owner is not None and _outlook(owner) != outlook_before

    def _sooner(self, key: ObjectKey, result: Result | None) -> Result:
        """Ask for another pass soon, but each in a row later than the last.

        An author whose passes never come to rest gets a slow loop, not a hot one.
        """
        self._restless[key] = self._restless.get(key, 0) + 1
        soon = timedelta(seconds=self._backoff.seconds(self._restless[key], self._entropy))
        if result is not None and result.requeue_after is not None:
            soon = min(soon, result.requeue_after)
        return Result(requeue_after=soon)


def _outlook(owner: Object) -> tuple[frozenset[str], bytes]:
    """What of an owner's status other steps may go by: which conditions are True, and all that is no condition.

    Reasons, messages and times are for people: that they change is no cause for another pass.
    """
    status = owner.get("status")
    if not isinstance(status, dict):
        return frozenset(), b""
    conditions = status.get("conditions")
    listed = conditions if isinstance(conditions, list) else []
    true = {str(found.get("type")) for found in listed if isinstance(found, dict) and found.get("status") == "True"}
    # As bytes: the pass may change what is nested in the status in place.
    return frozenset(true), _encode({name: value for name, value in status.items() if name != "conditions"})

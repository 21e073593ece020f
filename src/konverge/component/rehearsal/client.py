"""A client that writes nothing: what would be written is noted, and an apply is a dry run of the server's.

So admission, defaults, conversion and the rules about who owns a field are the server's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from konverge.component.client import Applied
from konverge.component.rehearsal.comparing import contests, field_changes, ownership_changed, wanted_fields
from konverge.component.rehearsal.values import Change, Contest
from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping, identity
from konverge.kube.secret_values import SecretValues
from konverge.mutation import json_copy

__all__ = ["DryRunServer", "RehearsingClient"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")

_Which = tuple[GroupVersionKind, ObjectKey]


class DryRunServer(Protocol):
    """What a rehearsal asks of a cluster; `konverge.client.Client` is one."""

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """As `konverge.component.Client.mapping`."""

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """As `konverge.component.Client.get`."""

    async def apply(self, obj: Object, *, field_manager: str, dry_run: bool = False) -> Applied:
        """Server-side apply with force; with `dry_run` the server says what it would store, without storing it."""


@dataclass(frozen=True, slots=True)
class _WouldBe:
    """The answer to a server-side apply (`konverge.component.Applied`)."""

    object: Object
    created: bool


class RehearsingClient:
    """A `konverge.component.Client` over another one, which gets reads and dry runs alone.

    What would be written is what later reads find, so that a rehearsal goes on as the pass would.

    Args:
        server: The cluster.

    Attributes:
        changes: What would be written, in order; the status of an owner is not among it.
        found: What was there, by kind and key, None for what was not; as it was read first.
        secret_values: The values of the Secrets that were read or would be written.
    """

    def __init__(self, server: DryRunServer) -> None:
        self._server = server
        self.changes: list[Change] = []
        self.found: dict[_Which, Object | None] = {}
        self.secret_values = SecretValues()
        self._would_be: dict[_Which, Object | None] = {}
        self._contests: dict[_Which, tuple[Contest, ...]] = {}

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        """Where the kind is served, asked of the server."""
        return await self._server.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """The object as it would be by now.

        Raises:
            konverge.errors.NotFoundError: There is none, or it would be deleted.
        """
        which = gvk, key
        if which in self._would_be:
            found = self._would_be[which]
            if found is None:
                raise NotFoundError(f'{gvk.kind} "{key.name}" would be deleted')
            return _copy(found)
        try:
            found = await self._server.get(gvk, key, live=live)
        except (NotFoundError, KindNotServedError) as error:
            if not isinstance(error, KindUnreachableError):
                self.found.setdefault(which, None)
            raise
        self.found.setdefault(which, found)
        self.secret_values.add(found)
        return _copy(found)

    async def apply(self, obj: Object, *, field_manager: str) -> Applied:
        """What the server would store."""
        gvk, key = which = GroupVersionKind.of(obj), ObjectKey.of(obj)
        live = await self._find(gvk, key)
        self.secret_values.add(obj)
        try:
            after = (await self._server.apply(obj, field_manager=field_manager, dry_run=True)).object
        except NotFoundError:
            # No server tells what it would store in a namespace that this very pass would make.
            if live is not None or self.found.get((_NAMESPACE, ObjectKey("", key.namespace)), obj) is not None:
                raise
            after = _copy(obj)
        told = identity(gvk, key)
        if live is None:
            self.changes.append(Change("create", told, wanted_fields(obj, self.secret_values)))
            after["metadata"].setdefault("uid", "")
        else:
            fields = field_changes(live, after, field_manager, self.secret_values)
            self._contests[which] = contests(self.found.get(which) or live, after, field_manager, self.secret_values)
            if fields or ownership_changed(live, after, field_manager):
                self.changes.append(Change("update", told, fields))
                # A dry run leaves the version as it is; who compares versions is to see that it would be another one.
                after["metadata"].pop("resourceVersion", None)
        self._would_be[which] = after
        return _WouldBe(_copy(after), live is None)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Note the update; that of a status is for nobody to see."""
        which = gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        answer = _copy(obj)
        answer["metadata"].setdefault("resourceVersion", "")  # that of an object that is nowhere yet
        if subresource:
            return answer
        live = await self._find(gvk, key) or {"metadata": {}}
        after = {**obj, "metadata": {**obj["metadata"], "managedFields": _managed(live)}}
        fields = field_changes(live, after, "", self.secret_values)
        is_release = bool(fields) and all(change.path.startswith(".metadata.ownerReferences") for change in fields)
        self.changes.append(Change("release" if is_release else "update", identity(gvk, key), fields))
        self._would_be[which] = _copy(obj)
        return answer

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> Object | None:
        """Note the deletion; from now on there is no such object."""
        self.changes.append(Change("delete", identity(gvk, key)))
        self._would_be[gvk, key] = None
        return None

    def would_be(self, gvk: GroupVersionKind) -> dict[ObjectKey, Object | None]:
        """What objects of a kind would have become by now, None for those that would be deleted."""
        return {
            key: None if found is None else _copy(found) for (kind, key), found in self._would_be.items() if kind == gvk
        }

    def contests(self, gvk: GroupVersionKind, key: ObjectKey, field_manager: str) -> tuple[Contest, ...]:
        """Who else writes what the manager applies of this object."""
        which = gvk, key
        if which in self._contests:
            return self._contests[which]
        live = self.found.get(which)
        return () if live is None else contests(live, live, field_manager, self.secret_values)

    async def _find(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        try:
            return await self.get(gvk, key)
        except NotFoundError:
            return None


def _managed(obj: Object) -> Any:
    return obj["metadata"].get("managedFields")


def _copy(obj: Object) -> Object:
    copied: Object = json_copy(obj)
    return copied

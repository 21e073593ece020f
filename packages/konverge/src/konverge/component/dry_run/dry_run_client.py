"""A client that writes nothing: what would be written is noted, and an apply is a dry run of the server's.

So admission, defaults, conversion and the rules about who owns a field are the server's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from konverge.component.client_protocol import ApplyResult
from konverge.component.dry_run.field_diff import (
    find_field_changes,
    find_ownership_conflicts,
    has_ownership_change,
    list_desired_fields,
)
from konverge.component.dry_run.report import ObjectChange, OwnershipConflict
from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping, format_identity
from konverge.kube.secret_values import SecretValues
from konverge.mutation import copy_json

__all__ = ["DryRunClient", "DryRunServer"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")

_ObjectId = tuple[GroupVersionKind, ObjectKey]


class DryRunServer(Protocol):
    """What a rehearsal asks of a cluster; `konverge.client.Client` is one."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """As `konverge.component.ComponentClient.mapping`."""

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """As `konverge.component.ComponentClient.get`."""

    async def apply(self, obj: Object, *, field_manager: str, dry_run: bool = False) -> ApplyResult:
        """Server-side apply with force; with `dry_run` the server says what it would store, without storing it."""


@dataclass(frozen=True, slots=True)
class _PredictedApply:
    """The answer to a server-side apply (`konverge.component.ApplyResult`)."""

    object: Object
    created: bool


class DryRunClient:
    """A `konverge.component.ComponentClient` over another one, which gets reads and dry runs alone.

    What would be written is what later reads find, so that a rehearsal goes on as the pass would.

    Args:
        server: The cluster.

    Attributes:
        changes: What would be written, in order; the status of an owner is not among it.
        objects: What was there, by kind and key, None for what was not; as it was read first.
        secret_values: The values of the Secrets that were read or would be written.
    """

    def __init__(self, server: DryRunServer) -> None:
        self._server = server
        self.changes: list[ObjectChange] = []
        self.objects: dict[_ObjectId, Object | None] = {}
        self.secret_values = SecretValues()
        self._would_be: dict[_ObjectId, Object | None] = {}
        self._contests: dict[_ObjectId, tuple[OwnershipConflict, ...]] = {}

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
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
            return _copy_object(found)
        try:
            found = await self._server.get(gvk, key, live=live)
        except (NotFoundError, KindNotServedError) as error:
            if not isinstance(error, KindUnreachableError):
                self.objects.setdefault(which, None)
            raise
        self.objects.setdefault(which, found)
        self.secret_values.add(found)
        return _copy_object(found)

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResult:
        """What the server would store."""
        gvk, key = which = GroupVersionKind.of(obj), ObjectKey.of(obj)
        live = await self._find(gvk, key)
        self.secret_values.add(obj)
        try:
            after = (await self._server.apply(obj, field_manager=field_manager, dry_run=True)).object
        except NotFoundError:
            # No server tells what it would store in a namespace that this very pass would make.
            if live is not None or self.objects.get((_NAMESPACE, ObjectKey("", key.namespace)), obj) is not None:
                raise
            after = _copy_object(obj)
        told = format_identity(gvk, key)
        if live is None:
            self.changes.append(ObjectChange("create", told, list_desired_fields(obj, self.secret_values)))
            after["metadata"].setdefault("uid", "")
        else:
            fields = find_field_changes(live, after, field_manager, self.secret_values)
            self._contests[which] = find_ownership_conflicts(
                self.objects.get(which) or live, after, field_manager, self.secret_values
            )
            if fields or has_ownership_change(live, after, field_manager):
                self.changes.append(ObjectChange("update", told, fields))
                # A dry run leaves the version as it is; who compares versions is to see that it would be another one.
                after["metadata"].pop("resourceVersion", None)
        self._would_be[which] = after
        return _PredictedApply(_copy_object(after), live is None)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Note the update; that of a status is for nobody to see."""
        which = gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        answer = _copy_object(obj)
        answer["metadata"].setdefault("resourceVersion", "")  # that of an object that is nowhere yet
        if subresource:
            return answer
        live = await self._find(gvk, key) or {"metadata": {}}
        after = {**obj, "metadata": {**obj["metadata"], "managedFields": _read_managed_fields(live)}}
        fields = find_field_changes(live, after, "", self.secret_values)
        is_release = bool(fields) and all(change.path.startswith(".metadata.ownerReferences") for change in fields)
        self.changes.append(ObjectChange("release" if is_release else "update", format_identity(gvk, key), fields))
        self._would_be[which] = _copy_object(obj)
        return answer

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str) -> Object | None:
        """Note the deletion; from now on there is no such object."""
        self.changes.append(ObjectChange("delete", format_identity(gvk, key)))
        self._would_be[gvk, key] = None
        return None

    def list_predicted(self, gvk: GroupVersionKind) -> dict[ObjectKey, Object | None]:
        """What objects of a kind would have become by now, None for those that would be deleted."""
        return {
            key: None if found is None else _copy_object(found)
            for (kind, key), found in self._would_be.items()
            if kind == gvk
        }

    def find_ownership_conflicts(
        self, gvk: GroupVersionKind, key: ObjectKey, field_manager: str
    ) -> tuple[OwnershipConflict, ...]:
        """Who else writes what the manager applies of this object."""
        which = gvk, key
        if which in self._contests:
            return self._contests[which]
        live = self.objects.get(which)
        return () if live is None else find_ownership_conflicts(live, live, field_manager, self.secret_values)

    async def _find(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        try:
            return await self.get(gvk, key)
        except NotFoundError:
            return None


def _read_managed_fields(obj: Object) -> Any:
    return obj["metadata"].get("managedFields")


def _copy_object(obj: Object) -> Object:
    copied: Object = copy_json(obj)
    return copied

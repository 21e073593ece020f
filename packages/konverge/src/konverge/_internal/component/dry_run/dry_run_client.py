"""A client that writes nothing: it records writes, and an apply is a dry run on the server.

Therefore admission, defaults, conversion and field ownership are those of the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from konverge._internal.component.client_protocol import ApplyResult
from konverge._internal.component.dry_run.field_diff import (
    find_field_changes,
    find_ownership_conflicts,
    has_ownership_change,
    list_desired_fields,
)
from konverge._internal.component.dry_run.report import ObjectChange, OwnershipConflict
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping, format_identity
from konverge._internal.kube.secret_values import SecretValues
from konverge._internal.mutation import copy_json
from konverge.errors import KindNotServedError, KindUnreachableError, NotFoundError

__all__ = ["DryRunClient", "DryRunServer"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")

_ObjectId = tuple[GroupVersionKind, ObjectKey]


class DryRunServer(Protocol):
    """The cluster access of a dry run; `konverge.client.Client` implements it."""

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the path and scope of a kind, as `konverge.component.ComponentClient.mapping`."""

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object, as `konverge.component.ComponentClient.get`."""

    async def apply(self, obj: Object, *, field_manager: str, dry_run: bool = False) -> ApplyResult:
        """Apply with force; with `dry_run`, the server returns the object that it would store and stores nothing."""


@dataclass(frozen=True, slots=True)
class _PredictedApply:
    """The response to a server-side apply (`konverge.component.ApplyResult`)."""

    object: Object
    created: bool


class DryRunClient:
    """A `konverge.component.ComponentClient` over another client, which gets only reads and dry runs.

    Later reads return the predicted objects, so that a dry run continues as the reconcile would.

    Args:
        server: The cluster.

    Attributes:
        changes: The writes in order, without the status of an owner.
        objects: The objects as they were read first, by kind and key; None for an object that did not exist.
        secret_values: The values of the Secrets that were read or would be written.
    """

    def __init__(self, server: DryRunServer) -> None:
        self._server = server
        self.changes: list[ObjectChange] = []
        self.objects: dict[_ObjectId, Object | None] = {}
        self.secret_values: SecretValues = SecretValues()
        self._predicted: dict[_ObjectId, Object | None] = {}
        self._conflicts: dict[_ObjectId, tuple[OwnershipConflict, ...]] = {}

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the path and scope of a kind from the server."""
        return await self._server.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Return the object as the recorded writes leave it.

        Raises:
            konverge.errors.NotFoundError: The object does not exist or would be deleted.
        """
        object_id = gvk, key
        if object_id in self._predicted:
            predicted = self._predicted[object_id]
            if predicted is None:
                raise NotFoundError(f'{gvk.kind} "{key.name}" would be deleted')
            return _copy_object(predicted)
        try:
            current = await self._server.get(gvk, key, live=live)
        except (NotFoundError, KindNotServedError) as error:
            if not isinstance(error, KindUnreachableError):
                self.objects.setdefault(object_id, None)
            raise
        self.objects.setdefault(object_id, current)
        self.secret_values.add(current)
        return _copy_object(current)

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResult:
        """Return the object that the server would store."""
        gvk, key = object_id = GroupVersionKind.of(obj), ObjectKey.of(obj)
        live = await self._find(gvk, key)
        self.secret_values.add(obj)
        try:
            after = (await self._server.apply(obj, field_manager=field_manager, dry_run=True)).object
        except NotFoundError:
            # A server cannot dry-run an apply in a namespace that only this reconcile would create.
            if live is not None or self.objects.get((_NAMESPACE, ObjectKey("", key.namespace)), obj) is not None:
                raise
            after = _copy_object(obj)
        identity = format_identity(gvk, key)
        if live is None:
            self.changes.append(ObjectChange("create", identity, list_desired_fields(obj, self.secret_values)))
            after["metadata"].setdefault("uid", "")
        else:
            fields = find_field_changes(live, after, field_manager, self.secret_values)
            self._conflicts[object_id] = find_ownership_conflicts(
                self.objects.get(object_id) or live, after, field_manager, self.secret_values
            )
            if fields or has_ownership_change(live, after, field_manager):
                self.changes.append(ObjectChange("update", identity, fields))
                # A dry run keeps the resource version; without it, a comparison of versions shows the change.
                after["metadata"].pop("resourceVersion", None)
        self._predicted[object_id] = after
        return _PredictedApply(_copy_object(after), live is None)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Record an update, except one of a status."""
        object_id = gvk, key = GroupVersionKind.of(obj), ObjectKey.of(obj)
        response = _copy_object(obj)
        response["metadata"].setdefault("resourceVersion", "")  # missing on an object that does not exist yet
        if subresource:
            return response
        live = await self._find(gvk, key) or {"metadata": {}}
        after = {**obj, "metadata": {**obj["metadata"], "managedFields": _read_managed_fields(live)}}
        fields = find_field_changes(live, after, "", self.secret_values)
        is_release = bool(fields) and all(change.path.startswith(".metadata.ownerReferences") for change in fields)
        self.changes.append(ObjectChange("release" if is_release else "update", format_identity(gvk, key), fields))
        self._predicted[object_id] = _copy_object(obj)
        return response

    async def delete(
        self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: str = "Background"
    ) -> Object | None:
        """Record a deletion; later reads do not find the object."""
        self.changes.append(ObjectChange("delete", format_identity(gvk, key)))
        self._predicted[gvk, key] = None
        return None

    def list_predicted(self, gvk: GroupVersionKind) -> dict[ObjectKey, Object | None]:
        """Return the objects of a kind as the recorded writes leave them; None for deleted ones."""
        return {
            key: None if predicted is None else _copy_object(predicted)
            for (kind, key), predicted in self._predicted.items()
            if kind == gvk
        }

    def find_ownership_conflicts(
        self, gvk: GroupVersionKind, key: ObjectKey, field_manager: str
    ) -> tuple[OwnershipConflict, ...]:
        """Return the fields of the object that the manager applies and another manager writes too."""
        object_id = gvk, key
        if object_id in self._conflicts:
            return self._conflicts[object_id]
        live = self.objects.get(object_id)
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

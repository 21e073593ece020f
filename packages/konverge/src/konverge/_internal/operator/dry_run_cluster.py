"""`OwnerContext.cluster` of a dry run: reads work, writes are recorded or refused.

Reads go to the server instead of shared caches. Every result contains the writes that are recorded so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from konverge._internal.client import ApplyResponse, Client
from konverge._internal.component.dry_run import DryRunClient
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge._internal.kube.selectors import LabelSelector
from konverge._internal.mutation import copy_json
from konverge.errors import KonvergeError

__all__ = ["DryRunCluster", "Indexes"]

Indexes = Mapping[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]]
"""The indexes of an operator, by kind and name."""


class DryRunCluster:
    """The replacement of a `konverge.runtime.CachedClient` in a dry run.

    Args:
        server: The cluster; it gets only reads.
        client: The client that records writes.
        indexes: The indexes of the operator.
    """

    def __init__(self, server: Client, client: DryRunClient, indexes: Indexes) -> None:
        self._server = server
        self._client = client
        self._indexes = indexes

    def without_read_tracking(self) -> DryRunCluster:
        """Return the same client: a dry run tracks no reads."""
        return self

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """Return the path and scope of a kind, as `konverge.runtime.CachedClient.mapping`."""
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """Read one object with the recorded writes, as `konverge.runtime.CachedClient.get`."""
        return await self._client.get(gvk, key, live=live)

    async def list_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[Object]:
        """List objects by an index, as `konverge.runtime.CachedClient.list_by_index`."""
        values_of = self._indexes[gvk, index]
        return [obj for obj in await self.list(gvk) if value in values_of(obj)]

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Record an apply, and return the object that the server would store."""
        predicted = await self._client.apply(obj, field_manager=field_manager)
        return ApplyResponse(predicted.object, predicted.created)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Record an update of the object."""
        return await self._client.update(obj, subresource=subresource)

    async def delete(
        self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: str = "Background"
    ) -> Object | None:
        """Record a deletion of the object."""
        return await self._client.delete(gvk, key, uid=uid)

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: ObjectKey,
        body: Any,
        *,
        patch_type: str,
        subresource: str = "",
        field_manager: str = "",
    ) -> Object:
        """Record a merge patch; other patches are refused.

        Raises:
            konverge.errors.KonvergeError: The patch has another type.
        """
        if patch_type != "merge" or subresource:
            _refuse(f"patch of the type {patch_type}")
        return await self._client.update(_apply_merge_patch(await self.get(gvk, key), body))

    async def create(self, obj: Object) -> Object:
        """Refuse a create: only the server knows the name and the defaults of the new object."""
        _refuse("create")

    @property
    def live(self) -> Client:
        """The client without a cache, which a dry run refuses."""
        _refuse("live")

    # The last method: after it, `list` in an annotation would be this method.
    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """List objects with the recorded writes, as `konverge.runtime.CachedClient.list`."""
        if isinstance(labels, Mapping):
            labels = LabelSelector.from_labels(labels)
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else labels
        listed = await self._server.list(gvk, namespace=namespace, label_selector=str(selector))
        objects: dict[ObjectKey, Object | None] = {ObjectKey.of(obj): obj for obj in listed.items}
        for item in listed.items:
            self._client.secret_values.add(item)
        for key, obj in self._client.list_predicted(gvk).items():
            if namespace in ("", key.namespace):
                is_listed = obj is not None and selector.matches(obj["metadata"].get("labels") or {})
                objects[key] = obj if is_listed else None
        return [obj for _, obj in sorted(objects.items()) if obj is not None]


def _refuse(operation: str) -> NoReturn:
    raise KonvergeError(
        f"the reconcile function uses {operation} of ctx.cluster, which a dry run cannot predict: expected a read, "
        "apply, update, delete or a merge patch"
    )


def _apply_merge_patch(obj: Any, body: Any) -> Any:
    """Apply a merge patch (RFC 7386)."""
    if not isinstance(body, dict):
        return copy_json(body)
    patched = dict(obj) if isinstance(obj, dict) else {}
    for name, value in body.items():
        if value is None:
            patched.pop(name, None)
        else:
            patched[name] = _apply_merge_patch(patched.get(name), value)
    return patched

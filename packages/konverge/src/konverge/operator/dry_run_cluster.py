"""`OwnerContext.cluster` of a rehearsal: reads are answered, writes are noted or refused, nothing is written.

What passes read from shared caches is read from the server here, once a kind and pass. What they would have written so
far is part of every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from konverge.client import ApplyResponse, Client
from konverge.component.dry_run import DryRunClient
from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge.kube.selectors import LabelSelector
from konverge.mutation import copy_json

__all__ = ["DryRunCluster", "Indexes"]

Indexes = Mapping[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]]
"""The indexes of an operator, by kind and name."""


class DryRunCluster:
    """Takes the place of a `konverge.runtime.CachedClient` in a pass that may write nothing.

    Args:
        server: The cluster; it gets reads alone.
        client: Notes what would be written.
        indexes: The operator's.
    """

    def __init__(self, server: Client, client: DryRunClient, indexes: Indexes) -> None:
        self._server = server
        self._client = client
        self._indexes = indexes

    def without_read_tracking(self) -> DryRunCluster:
        """The same: a rehearsal wakes nobody."""
        return self

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        """As `konverge.runtime.CachedClient.mapping`."""
        return await self._client.mapping(gvk)

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        """As `konverge.runtime.CachedClient.get`; the object as it would be by now."""
        return await self._client.get(gvk, key, live=live)

    async def list_by_index(self, gvk: GroupVersionKind, index: str, value: str) -> list[Object]:
        """As `konverge.runtime.CachedClient.list_by_index`."""
        values_of = self._indexes[gvk, index]
        return [obj for obj in await self.list(gvk) if value in values_of(obj)]

    async def apply(self, obj: Object, *, field_manager: str) -> ApplyResponse:
        """Note what would become of the object."""
        would_be = await self._client.apply(obj, field_manager=field_manager)
        return ApplyResponse(would_be.object, would_be.created)

    async def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Note the update."""
        return await self._client.update(obj, subresource=subresource)

    async def delete(
        self, gvk: GroupVersionKind, key: ObjectKey, *, uid: str, propagation: str = "Background"
    ) -> Object | None:
        """Note the deletion."""
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
        """Note a merge patch; others are refused.

        Raises:
            konverge.errors.KonvergeError: It is of another type.
        """
        if patch_type != "merge" or subresource:
            _refuse(f"patch of the type {patch_type}")
        return await self._client.update(_apply_merge_patch(await self.get(gvk, key), body))

    async def create(self, obj: Object) -> Object:
        """Refused: only the server knows the name and the defaults of what it makes."""
        _refuse("create")

    @property
    def live(self) -> Client:
        """Refused."""
        _refuse("live")

    # Last: below it, `list` would mean this method in annotations.
    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        """As `konverge.runtime.CachedClient.list`; the objects as they would be by now."""
        if isinstance(labels, Mapping):
            labels = LabelSelector.from_labels(labels)
        selector = LabelSelector.parse(labels) if isinstance(labels, str) else labels
        listed = await self._server.list(gvk, namespace=namespace, label_selector=str(selector))
        found: dict[ObjectKey, Object | None] = {ObjectKey.of(obj): obj for obj in listed.items}
        for item in listed.items:
            self._client.secret_values.add(item)
        for key, obj in self._client.list_predicted(gvk).items():
            if namespace in ("", key.namespace):
                is_listed = obj is not None and selector.matches(obj["metadata"].get("labels") or {})
                found[key] = obj if is_listed else None
        return [obj for _, obj in sorted(found.items()) if obj is not None]


def _refuse(operation: str) -> NoReturn:
    raise KonvergeError(
        f"the reconcile function uses {operation} of ctx.cluster, and that cannot be rehearsed: "
        "nobody can tell what the "
        "server would make of it. Reads, apply, update, delete and merge patches can"
    )


def _apply_merge_patch(obj: Any, body: Any) -> Any:
    """A merge patch (RFC 7386)."""
    if not isinstance(body, dict):
        return copy_json(body)
    found = dict(obj) if isinstance(obj, dict) else {}
    for name, value in body.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _apply_merge_patch(found.get(name), value)
    return found

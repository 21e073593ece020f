"""The verbs of an API server over the store: synchronous, without I/O, one call at a time.

Every method raises the `konverge.errors.ApiError` that the real server would answer with. Objects that go in may be
kept or changed by the server; objects that come out belong to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, BadRequestError
from konverge.kube import Object, ObjectKey, format_time, is_deleting
from konverge.kube.selectors import FieldSelector, LabelSelector, SelectorSyntaxError
from konverge.localcluster import failures
from konverge.localcluster.builtin import builtin_resources
from konverge.localcluster.resources import Kind, Resource, Resources
from konverge.localcluster.storage import Change, Storage, Stored
from konverge.localcluster.strategies import prepare_create, prepare_update

__all__ = ["ApiServer"]

_START_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class ApiServer:
    """An API server without I/O.

    Args:
        clock: Gives the timestamps.
        entropy: Gives UIDs and generated names.
        history: How many changes are remembered for watches and paged lists.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, history: int = 20_000) -> None:
        self._clock = clock
        self._entropy = entropy
        self.storage = Storage(history=history)
        self.resources = Resources.of(builtin_resources())
        namespaces = self.resources.at("", "v1", "namespaces")
        assert namespaces is not None, "the core group has namespaces"
        self._namespaces = namespaces
        for name in _START_NAMESPACES:
            self.create(namespaces.gvk, {"metadata": {"name": name}})

    def get(self, kind: Kind, key: ObjectKey) -> Object:
        """Read one object.

        Raises:
            NotFoundError: There is none.
        """
        return self._stored(self.resources.of_kind(kind), key).copy()

    def find(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Read one object; None when there is none."""
        stored = self.storage.get(self.resources.of_kind(kind).storage, key)
        return None if stored is None else stored.copy()

    def list(
        self, kind: Kind, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Read all objects of the kind, or of one namespace, that match the selectors, in the order of their keys.

        Raises:
            BadRequestError: A selector cannot be read, or names a field that the resource does not offer.
        """
        resource = self.resources.of_kind(kind)
        try:
            labels, fields = LabelSelector.parse(label_selector), FieldSelector.parse(field_selector)
        except SelectorSyntaxError as mistake:
            raise BadRequestError(str(mistake)) from None
        return [
            stored.copy()
            for stored in self.storage.items(resource.storage, namespace)
            if labels.matches(stored.object["metadata"].get("labels") or {})
            and fields.matches(lambda path, obj=stored.object: _read(obj, path))  # type: ignore[misc]
        ]

    def create(self, kind: Kind, obj: Object, *, manager: str = "", dry_run: bool = False) -> Object:
        """Store a new object under its name, or under one made from its ``generateName``.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: The namespace does not exist.
            ForbiddenError: The namespace is being deleted.
            InvalidError: The object breaks a rule of its kind.
        """
        resource = self.resources.of_kind(kind)
        obj = _copied(obj) | {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
        metadata = obj.setdefault("metadata", {})
        if metadata.get("resourceVersion"):
            raise ApiError("resourceVersion should not be set on objects to be created", reason="", code=500)
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._free_name(resource, metadata["generateName"], metadata.get("namespace", ""))
        key = ObjectKey.of(obj)
        if resource.mapping.namespaced:
            self._admit_into(resource, key)
        prepare_create(resource, obj)
        metadata["uid"] = self._entropy.uid()
        metadata["creationTimestamp"] = format_time(self._clock.now())
        if self.storage.get(resource.storage, key) is not None:
            raise failures.already_exists(resource, key.name)
        if dry_run:
            return obj
        return self.storage.put(resource.storage, obj).copy()

    def update(
        self, kind: Kind, obj: Object, *, subresource: str = "", manager: str = "", dry_run: bool = False
    ) -> Object:
        """Replace the object, or its status; a write that changes nothing keeps the resourceVersion.

        Raises:
            NotFoundError: There is none.
            ConflictError: Its resourceVersion or UID is another.
            InvalidError: The object breaks a rule of its kind.
        """
        resource = self.resources.of_kind(kind)
        obj = _copied(obj) | {"apiVersion": resource.gvk.api_version, "kind": resource.gvk.kind}
        stored = self._stored(resource, ObjectKey.of(obj))
        metadata, before = obj["metadata"], stored.object["metadata"]
        if metadata.get("uid") and metadata["uid"] != before["uid"]:
            raise failures.stored_uid_differs(resource, stored.key.name, metadata["uid"], before["uid"])
        if metadata.get("resourceVersion") and metadata["resourceVersion"] != before["resourceVersion"]:
            raise failures.modified(resource, stored.key.name)
        prepare_update(resource, stored.object, obj, subresource=subresource)
        metadata["resourceVersion"] = before["resourceVersion"]
        if dry_run:
            return obj
        if is_deleting(obj) and not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
            return self.storage.remove(resource.storage, stored.key, obj).copy()
        if obj == stored.object:
            return stored.copy()
        return self.storage.put(resource.storage, obj).copy()

    def delete(
        self,
        kind: Kind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str | None = None,
        grace_period_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete the object, or mark it when finalizers or its grace hold it; answer its last state.

        Args:
            kind: Of what kind it is.
            key: Which one.
            uid: Only if it still is the one of this UID.
            resource_version: Only if it has not changed since.
            propagation: ``Background``, ``Foreground`` or ``Orphan``; None for the kind's default.
            grace_period_seconds: For pods: how long they may take; zero deletes at once.
            dry_run: Only tell what would happen.

        Raises:
            NotFoundError: There is none.
            ConflictError: A precondition does not hold.
        """
        resource = self.resources.of_kind(kind)
        stored = self._stored(resource, key)
        metadata = stored.object["metadata"]
        if uid and uid != metadata["uid"]:
            raise failures.mismatched_uid(resource, key.name, uid, metadata["uid"])
        if resource_version and resource_version != metadata["resourceVersion"]:
            raise failures.mismatched_resource_version(
                resource, key.name, resource_version, metadata["resourceVersion"]
            )
        if not metadata.get("finalizers"):
            return self.storage.remove(resource.storage, key).copy()
        marked = stored.copy()
        marked["metadata"]["deletionTimestamp"] = format_time(self._clock.now())
        marked["metadata"]["deletionGracePeriodSeconds"] = 0
        return self.storage.put(resource.storage, marked).copy()

    def subscribe(self, subscriber: Callable[[Change], None]) -> Callable[[], None]:
        """Have each stored change told, synchronously and in order; the answer ends it.

        The change's objects are shared: a subscriber changes nothing in them, and does not write.
        """
        return self.storage.subscribe(subscriber)

    def changes(self, from_revision: int) -> Sequence[Change]:
        """The changes after a revision.

        Raises:
            ExpiredError: They are no longer remembered.
        """
        return self.storage.changes(from_revision)

    def _stored(self, resource: Resource, key: ObjectKey) -> Stored:
        stored = self.storage.get(resource.storage, key)
        if stored is None:
            raise failures.not_found(resource, key.name)
        return stored

    def _admit_into(self, resource: Resource, key: ObjectKey) -> None:
        namespace = self._stored(self._namespaces, ObjectKey("", key.namespace))
        if is_deleting(namespace.object):
            raise failures.terminating_namespace(resource, key.name, key.namespace)

    def _free_name(self, resource: Resource, prefix: str, namespace: str) -> str:
        while True:
            name = prefix[:58] + self._entropy.name_suffix()
            if self.storage.get(resource.storage, ObjectKey(namespace, name)) is None:
                return name


def _copied(obj: Object) -> Object:
    copied: Object = msgspec.json.decode(msgspec.json.encode(obj))
    return copied


def _read(obj: Any, path: str) -> str:
    for step in path.split("."):
        obj = obj.get(step) if isinstance(obj, dict) else None
    return "" if obj is None else str(obj)

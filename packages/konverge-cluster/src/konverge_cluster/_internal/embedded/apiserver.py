"""The verbs of an API server over its storage: synchronous, without I/O, one call at a time.

Every method raises the `konverge.errors.ApiError` of the real server. Input objects are not changed; returned objects
belong to the caller. A call that needs a webhook raises `WebhookCallNeededError`, since these methods cannot wait; the
verbs in `verbs` can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from konverge._internal.kube import Object, ObjectKey
from konverge.clock import Clock, Entropy
from konverge.errors import ExpiredError
from konverge_cluster._internal.embedded.bootstrap_objects import build_bootstrap_objects
from konverge_cluster._internal.embedded.builtin_resources import list_builtin_resources
from konverge_cluster._internal.embedded.deletion import DeleteOptions, Propagation
from konverge_cluster._internal.embedded.list_pages import ListPage, read_page
from konverge_cluster._internal.embedded.object_decoding import IGNORED, FieldValidation
from konverge_cluster._internal.embedded.object_patch import PatchType
from konverge_cluster._internal.embedded.resource_registry import Kind, ResourceRegistry, ServedResource
from konverge_cluster._internal.embedded.scale import build_scale
from konverge_cluster._internal.embedded.selection import Selection
from konverge_cluster._internal.embedded.server_watch import ServerWatch
from konverge_cluster._internal.embedded.storage import Storage, StorageChange
from konverge_cluster._internal.embedded.verbs import ServerVerbs
from konverge_cluster._internal.embedded.webhooks.pending_calls import run_without_calls
from konverge_cluster._internal.embedded.write_options import WriteOptions

__all__ = ["ApiServer"]


class ApiServer:
    """An API server without I/O.

    Args:
        clock: The clock for timestamps.
        entropy: The source of UIDs, generated names and addresses.
        history: The number of changes kept for watches and paged lists.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, history: int = 20_000) -> None:
        self.storage: Storage = Storage(history=history)
        self.resources: ResourceRegistry = ResourceRegistry.from_resources(list_builtin_resources())
        self.verbs: ServerVerbs = ServerVerbs(self.storage, self.resources, clock=clock, entropy=entropy)
        for gvk, obj in build_bootstrap_objects():
            self.create(gvk, obj, manager="kube-apiserver")

    def get(self, kind: Kind, key: ObjectKey) -> Object:
        """Return one object.

        Raises:
            NotFoundError: The object does not exist.
        """
        return run_without_calls(self.verbs.get(self.resources.get_by_kind(kind), key))

    def find(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Return one object; None if it does not exist."""
        resource = self.resources.get_by_kind(kind)
        stored = self.storage.get(resource.storage, key)
        return None if stored is None else run_without_calls(self.verbs.conversions.to_served(resource, stored.copy()))

    def list(
        self, kind: Kind, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Return all objects of the kind, or of one namespace, that match the selectors, in the order of their keys.

        Raises:
            BadRequestError: A selector is invalid, or names a field that the resource does not support.
        """
        resource = self.resources.get_by_kind(kind)
        selection = Selection.parse(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )
        served = self.verbs.conversions.to_served
        return [
            run_without_calls(served(resource, stored.copy())) for stored in self.list_page(resource, selection).items
        ]

    def list_page(
        self,
        resource: ServedResource,
        selection: Selection,
        *,
        limit: int = 0,
        token: str = "",
        revision: int | None = None,
    ) -> ListPage:
        """Return one page of a list in the stored form; see `list_pages.read_page`."""
        return read_page(self.storage, resource.storage, selection, limit=limit, token=token, revision=revision)

    def watch(
        self, resource: ServedResource, selection: Selection, *, after: int | None, limit: int = 10_000
    ) -> ServerWatch:
        """Start a watch, which receives events until it is closed.

        Args:
            resource: The resource to watch.
            selection: The selection of objects.
            after: Return changes after this revision; None to return the current objects first.
            limit: The maximum number of waiting events.

        Raises:
            ExpiredError: The changes after that revision are no longer available.
        """
        watch = ServerWatch(resource, selection, limit=limit)
        if after is None:
            watch.start(self.storage.list_objects(resource.storage, selection.namespace), (), self.storage.revision)
        elif after < (beginning := self.verbs.find_beginning(resource)):
            raise ExpiredError(f"too old resource version: {after} ({beginning})")
        else:
            watch.start((), self.storage.list_changes(after), max(after, self.storage.revision))
        watch.set_unsubscribe(self.storage.subscribe(watch.record))
        return watch

    def create(
        self,
        kind: Kind,
        obj: Object,
        *,
        manager: str = "",
        dry_run: bool = False,
        fields: FieldValidation = IGNORED,
    ) -> Object:
        """Store a new object under its name, or under a name generated from its ``generateName``.

        Raises:
            AlreadyExistsError: The name is already in use.
            NotFoundError: The namespace does not exist.
            ForbiddenError: The namespace is being deleted.
            InvalidError: The object violates a rule of its kind.
        """
        return run_without_calls(
            self.verbs.create(self.resources.get_by_kind(kind), obj, WriteOptions(manager, dry_run, fields))
        )

    def update(
        self,
        kind: Kind,
        obj: Object,
        *,
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
        fields: FieldValidation = IGNORED,
    ) -> Object:
        """Replace the object, or one subresource of it; a write without changes keeps the resourceVersion.

        Args:
            kind: The kind of the object.
            obj: The new object; a Scale for the ``scale`` subresource. Its resourceVersion and its UID, if present, are
                preconditions.
            subresource: ``status``, ``scale``, ``finalize``, ``binding``, or empty for the object itself.
            manager: The field manager.
            dry_run: Return the result without storing it.
            fields: The handling of unknown fields.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: The stored object has another resourceVersion or UID.
            InvalidError: The object violates a rule of its kind.
        """
        write = WriteOptions(manager, dry_run, fields)
        return run_without_calls(self.verbs.update(self.resources.get_by_kind(kind), obj, write, subresource))

    def patch(
        self,
        kind: Kind,
        key: ObjectKey,
        patch: Any,
        *,
        patch_type: PatchType = "merge",
        subresource: str = "",
        manager: str = "",
        dry_run: bool = False,
        fields: FieldValidation = IGNORED,
    ) -> Object:
        """Apply a patch to the object, or to one subresource of it.

        Raises:
            NotFoundError: The object does not exist.
            BadRequestError: The patch does not have the format of its type.
            ConflictError: The patch contains a resourceVersion or a UID that differs from the stored one.
            InvalidError: The patched object violates a rule of its kind.
        """
        write = WriteOptions(manager, dry_run, fields)
        return run_without_calls(
            self.verbs.patch(self.resources.get_by_kind(kind), key, patch, patch_type, write, subresource)
        )

    def apply(
        self,
        kind: Kind,
        obj: Object,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        dry_run: bool = False,
        fields: FieldValidation = IGNORED,
    ) -> Object:
        """Server-side apply: create the object, or merge the configuration into it.

        Raises:
            ApplyConflictError: Other managers own fields that the configuration changes, and `force` is off.
            NotFoundError: The object of the subresource does not exist.
            InvalidError: The merged object violates a rule of its kind.
        """
        write = WriteOptions(manager, dry_run, fields)
        return run_without_calls(
            self.verbs.apply(self.resources.get_by_kind(kind), obj, write, subresource, force=force)
        )

    def delete(
        self,
        kind: Kind,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete the object, or mark it if finalizers or a grace period delay the deletion; return its last state.

        Args:
            kind: The kind of the object.
            key: The namespace and name.
            uid: Delete only an object with this UID.
            resource_version: Delete only an object with this resourceVersion.
            propagation: The handling of dependents; None for the default of the kind.
            grace_seconds: The grace period of a pod in seconds; zero deletes at once.
            dry_run: Return the result without storing it.

        Raises:
            NotFoundError: The object does not exist.
            ConflictError: A precondition is not met.
        """
        resource, options = self.resources.get_by_kind(kind), DeleteOptions(propagation, grace_seconds)
        write = WriteOptions(dry_run=dry_run)
        return run_without_calls(
            self.verbs.delete(resource, key, options, write, uid=uid, resource_version=resource_version)
        )

    def get_scale(self, kind: Kind, key: ObjectKey) -> Object:
        """Return the Scale of an object.

        Raises:
            NotFoundError: The object does not exist.
        """
        return build_scale(self.resources.get_by_kind(kind), self.get(kind, key))

    def subscribe(self, subscriber: Callable[[StorageChange], None]) -> Callable[[], None]:
        """Call a function for each stored change, synchronously and in order; the returned function ends this.

        The objects of the change are shared: a subscriber must not modify them and must not write.
        """
        return self.storage.subscribe(subscriber)

    def list_changes(self, from_revision: int) -> Sequence[StorageChange]:
        """Return the changes after a revision.

        Raises:
            ExpiredError: These changes are no longer available.
        """
        return self.storage.list_changes(from_revision)

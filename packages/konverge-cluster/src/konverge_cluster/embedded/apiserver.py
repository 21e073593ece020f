"""The verbs of an API server over the store: synchronous, without I/O, one call at a time.

Every method raises the `konverge.errors.ApiError` that the real server would answer with. Objects that go in are not
changed; objects that come out belong to the caller. Where a webhook has to be asked the methods here cannot wait for it
(`WebhookCallNeededError`); `verbs` has those that can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from konverge.clock import Clock, Entropy
from konverge.kube import Object, ObjectKey
from konverge_cluster.embedded.bootstrap_objects import build_bootstrap_objects
from konverge_cluster.embedded.builtin_resources import list_builtin_resources
from konverge_cluster.embedded.deletion import DeleteOptions, Propagation
from konverge_cluster.embedded.list_pages import ListPage, read_page
from konverge_cluster.embedded.object_decoding import IGNORED, FieldValidation
from konverge_cluster.embedded.object_patch import PatchType
from konverge_cluster.embedded.resource_registry import Kind, ResourceRegistry, ServedResource
from konverge_cluster.embedded.scale import build_scale
from konverge_cluster.embedded.selection import Selection
from konverge_cluster.embedded.server_watch import ServerWatch
from konverge_cluster.embedded.storage import Storage, StorageChange
from konverge_cluster.embedded.verbs import ServerVerbs
from konverge_cluster.embedded.webhooks.pending_calls import run_without_calls
from konverge_cluster.embedded.write_options import WriteOptions

__all__ = ["ApiServer"]


class ApiServer:
    """An API server without I/O.

    Args:
        clock: Gives the timestamps.
        entropy: Gives UIDs, generated names, addresses.
        history: How many changes are remembered for watches and paged lists.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, history: int = 20_000) -> None:
        self.storage = Storage(history=history)
        self.resources = ResourceRegistry.from_resources(list_builtin_resources())
        self.verbs = ServerVerbs(self.storage, self.resources, clock=clock, entropy=entropy)
        for gvk, obj in build_bootstrap_objects():
            self.create(gvk, obj, manager="kube-apiserver")

    def get(self, kind: Kind, key: ObjectKey) -> Object:
        """Read one object.

        Raises:
            NotFoundError: There is none.
        """
        return run_without_calls(self.verbs.get(self.resources.get_by_kind(kind), key))

    def find(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Read one object; None when there is none."""
        resource = self.resources.get_by_kind(kind)
        stored = self.storage.get(resource.storage, key)
        return None if stored is None else run_without_calls(self.verbs.conversions.to_served(resource, stored.copy()))

    def list(
        self, kind: Kind, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Read all objects of the kind, or of one namespace, that match the selectors, in the order of their keys.

        Raises:
            BadRequestError: A selector cannot be read, or names a field that the resource does not offer.
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
        """One page of a list, in the stored form; see `konverge_cluster.embedded.list_pages.page_of`."""
        return read_page(self.storage, resource.storage, selection, limit=limit, token=token, revision=revision)

    def watch(
        self, resource: ServedResource, selection: Selection, *, after: int | None, limit: int = 10_000
    ) -> ServerWatch:
        """Start a watch; it fills until it is ended.

        Args:
            resource: What to watch.
            selection: Which objects.
            after: Tell the changes after this revision; None to tell the present state first.
            limit: How many events may wait for the watcher.

        Raises:
            ExpiredError: The changes after that revision are no longer known.
        """
        watch = ServerWatch(resource, selection, limit=limit)
        if after is None:
            watch.start(self.storage.list_objects(resource.storage, selection.namespace), (), self.storage.revision)
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
        """Store a new object under its name, or under one made from its ``generateName``.

        Raises:
            AlreadyExistsError: The name is taken.
            NotFoundError: The namespace does not exist.
            ForbiddenError: The namespace is being deleted.
            InvalidError: The object breaks a rule of its kind.
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
        """Replace the object, or one subresource of it; a write that changes nothing keeps the resourceVersion.

        Args:
            kind: Of what kind it is.
            obj: What it is to be; for the ``scale`` subresource a Scale. Its resourceVersion and its UID, if it has
                them, guard the write.
            subresource: ``status``, ``scale``, ``finalize``, ``binding``, or empty for the object itself.
            manager: The field manager.
            dry_run: Only tell what would be stored.
            fields: What becomes of unknown fields.

        Raises:
            NotFoundError: There is none.
            ConflictError: It has another resourceVersion or UID.
            InvalidError: The object breaks a rule of its kind.
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
        """Change the object, or one subresource of it, as a patch says.

        Raises:
            NotFoundError: There is none.
            BadRequestError: The patch has another form.
            ConflictError: The patch names a resourceVersion or a UID, and it is another.
            InvalidError: What comes out breaks a rule of its kind.
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
            ApplyConflictError: Other managers own fields that it changes, and `force` is off.
            NotFoundError: There is no such object to apply a subresource to.
            InvalidError: What comes out breaks a rule of its kind.
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
        """Delete the object, or mark it when finalizers or its grace hold it; answer its last state.

        Args:
            kind: Of what kind it is.
            key: Which one.
            uid: Only if it still is the one of this UID.
            resource_version: Only if it has not changed since.
            propagation: What becomes of its dependents; None for what is usual for the kind.
            grace_seconds: For pods: how long they may take; zero deletes at once.
            dry_run: Only tell what would happen.

        Raises:
            NotFoundError: There is none.
            ConflictError: A precondition does not hold.
        """
        resource, options = self.resources.get_by_kind(kind), DeleteOptions(propagation, grace_seconds)
        write = WriteOptions(dry_run=dry_run)
        return run_without_calls(
            self.verbs.delete(resource, key, options, write, uid=uid, resource_version=resource_version)
        )

    def get_scale(self, kind: Kind, key: ObjectKey) -> Object:
        """The Scale of an object.

        Raises:
            NotFoundError: There is none.
        """
        return build_scale(self.resources.get_by_kind(kind), self.get(kind, key))

    def subscribe(self, subscriber: Callable[[StorageChange], None]) -> Callable[[], None]:
        """Have each stored change told, synchronously and in order; the answer ends it.

        The change's objects are shared: a subscriber changes nothing in them, and does not write.
        """
        return self.storage.subscribe(subscriber)

    def list_changes(self, from_revision: int) -> Sequence[StorageChange]:
        """The changes after a revision.

        Raises:
            ExpiredError: They are no longer remembered.
        """
        return self.storage.list_changes(from_revision)

"""The verbs of an API server over the store: synchronous, without I/O, one call at a time.

Every method raises the `konverge.errors.ApiError` that the real server would answer with. Objects that go in are not
changed; objects that come out belong to the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge.localcluster import addresses, deletion, failures, writes
from konverge.localcluster.builtin import builtin_resources
from konverge.localcluster.customresources import DEFINITIONS, storage_name
from konverge.localcluster.definitions import ServedDefinitions
from konverge.localcluster.deletion import DeleteOptions, Propagation
from konverge.localcluster.first_objects import IMMORTAL_NAMESPACES, first_objects
from konverge.localcluster.incoming import IGNORED, FieldValidation, read_body, read_patched
from konverge.localcluster.listing import Page, page_of
from konverge.localcluster.patching import PatchType, check_identity, patched
from konverge.localcluster.resources import Kind, Resource, Resources
from konverge.localcluster.scale import scale_of, with_replicas
from konverge.localcluster.selection import Selection
from konverge.localcluster.storage import Change, Storage, Stored
from konverge.localcluster.watching import Watch
from konverge.localcluster.writes import Author

__all__ = ["ApiServer"]

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")


class ApiServer:
    """An API server without I/O.

    Args:
        clock: Gives the timestamps.
        entropy: Gives UIDs, generated names, addresses.
        history: How many changes are remembered for watches and paged lists.
    """

    def __init__(self, *, clock: Clock, entropy: Entropy, history: int = 20_000) -> None:
        self._clock = clock
        self._entropy = entropy
        self.storage = Storage(history=history)
        self.resources = Resources.of(builtin_resources())
        self._definitions = ServedDefinitions(self.storage, self.resources)
        for gvk, obj in first_objects():
            self.create(gvk, obj, manager="kube-apiserver")

    def get(self, kind: Kind, key: ObjectKey) -> Object:
        """Read one object.

        Raises:
            NotFoundError: There is none.
        """
        resource = self.resources.of_kind(kind)
        return resource.served(self._stored(resource, key).copy())

    def find(self, kind: Kind, key: ObjectKey) -> Object | None:
        """Read one object; None when there is none."""
        resource = self.resources.of_kind(kind)
        stored = self.storage.get(resource.storage, key)
        return None if stored is None else resource.served(stored.copy())

    def list(
        self, kind: Kind, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> list[Object]:
        """Read all objects of the kind, or of one namespace, that match the selectors, in the order of their keys.

        Raises:
            BadRequestError: A selector cannot be read, or names a field that the resource does not offer.
        """
        resource = self.resources.of_kind(kind)
        selection = Selection.parse(
            resource, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )
        return [resource.served(stored.copy()) for stored in self.page(resource, selection).items]

    def page(
        self, resource: Resource, selection: Selection, *, limit: int = 0, token: str = "", revision: int | None = None
    ) -> Page:
        """One page of a list, in the stored form; see `konverge.localcluster.listing.page_of`."""
        return page_of(self.storage, resource.storage, selection, limit=limit, token=token, revision=revision)

    def watch(self, resource: Resource, selection: Selection, *, after: int | None, limit: int = 10_000) -> Watch:
        """Start a watch; it fills until it is ended.

        Args:
            resource: What to watch.
            selection: Which objects.
            after: Tell the changes after this revision; None to tell the present state first.
            limit: How many events may wait for the watcher.

        Raises:
            ExpiredError: The changes after that revision are no longer known.
        """
        watch = Watch(resource, selection, limit=limit)
        if after is None:
            watch.start(self.storage.items(resource.storage, selection.namespace), (), self.storage.revision)
        else:
            watch.start((), self.storage.changes(after), max(after, self.storage.revision))
        watch.follow(self.storage.subscribe(watch.note))
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
        resource = self.resources.of_kind(kind)
        return self._create(resource, read_body(resource, obj, fields), manager, dry_run=dry_run)

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
        resource = self.resources.of_kind(kind)
        if subresource == "scale":
            old = resource.served(self._stored(resource, ObjectKey.of(obj)).object)
            scaled = self._update(resource, with_replicas(resource, old, obj), manager, "scale", dry_run=dry_run)
            return scale_of(resource, scaled)
        body = read_body(resource, obj, fields)
        if not subresource and resource.creates_on_update:
            metadata, key = body["metadata"], ObjectKey.of(body)
            if not metadata.get("resourceVersion") and self.storage.get(resource.storage, key) is None:
                return self._create(resource, body, manager, dry_run=dry_run)
        return self._update(resource, body, manager, subresource, dry_run=dry_run)

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
        resource = self.resources.of_kind(kind)
        old = resource.served(self._stored(resource, key).copy())
        if subresource == "scale":
            scale = patched(resource, scale_of(resource, old), patch, patch_type)
            scaled = self._update(resource, with_replicas(resource, old, scale), manager, "scale", dry_run=dry_run)
            return scale_of(resource, scaled)
        changed = patched(resource, old, patch, patch_type)
        check_identity(changed, key)
        try:
            body = read_patched(resource, changed, fields)
        except BadRequestError as mistake:
            raise failures.unreadable_patch(mistake.message) from None
        return self._update(resource, body, manager, subresource, dry_run=dry_run, is_patch=True)

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
            ApplyConflict: Other managers own fields that it changes, and `force` is off.
            NotFoundError: There is no such object to apply a subresource to.
            InvalidError: What comes out breaks a rule of its kind.
        """
        resource = self.resources.of_kind(kind)
        key = ObjectKey.of(obj)
        stored = self.storage.get(resource.storage, key)
        if stored is None and subresource:
            raise failures.not_found(resource, key.name)
        old = None if stored is None else resource.served(stored.object)
        author = self._author(manager)
        self._check_guards(resource, key, obj, stored, is_patch=True)
        body = writes.applied(resource, old, obj, author, fields, force=force, subresource=subresource)
        if stored is None or old is None:
            body["metadata"] = {**body["metadata"], **_named(key)}
            return self._create(resource, body, manager, dry_run=dry_run, is_tracked=True)
        settled = writes.settled(resource, old, body, subresource=subresource)
        return self._store(resource, stored, settled, dry_run=dry_run)

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
        resource = self.resources.of_kind(kind)
        stored = self._stored(resource, key)
        metadata = stored.object["metadata"]
        if uid and uid != metadata["uid"]:
            raise failures.mismatched_uid(resource, key.name, uid, metadata["uid"])
        if resource.storage == "namespaces" and key.name in IMMORTAL_NAMESPACES:
            raise failures.immortal_namespace(key.name)
        if resource_version and resource_version != metadata["resourceVersion"]:
            held = metadata["resourceVersion"]
            raise failures.mismatched_resource_version(resource, key.name, resource_version, held)
        obj = stored.copy()
        if resource.storage == DEFINITIONS:
            self._definitions.hold(obj)
        stays = deletion.mark(resource, obj, DeleteOptions(propagation, grace_seconds), self._clock.now())
        if not stays and resource.storage != "pods":
            # Only pods are seen on their way out when nothing holds them.
            obj = stored.copy()
        if dry_run:
            return resource.served(obj)
        if not stays:
            return resource.served(self._remove(resource, stored, obj).copy())
        if obj == stored.object:
            return resource.served(obj)
        marked = self.storage.put(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._delete_instances(marked.object)
        return resource.served(marked.copy())

    def scale(self, kind: Kind, key: ObjectKey) -> Object:
        """The Scale of an object.

        Raises:
            NotFoundError: There is none.
        """
        return scale_of(self.resources.of_kind(kind), self.get(kind, key))

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

    def _author(self, manager: str) -> Author:
        return Author(manager, self._clock.now())

    def _stored(self, resource: Resource, key: ObjectKey) -> Stored:
        stored = self.storage.get(resource.storage, key)
        if stored is None:
            raise failures.not_found(resource, key.name)
        return stored

    def _create(
        self, resource: Resource, body: Object, manager: str, *, dry_run: bool, is_tracked: bool = False
    ) -> Object:
        metadata = body["metadata"]
        if metadata.get("resourceVersion") and not dry_run:
            raise ApiError("resourceVersion should not be set on objects to be created", reason="", code=500)
        if not metadata.get("name") and metadata.get("generateName"):
            body["metadata"] = metadata = {**metadata, "name": self._free_name(resource, metadata)}
        key = ObjectKey.of(body)
        if resource.mapping.namespaced:
            self._admit_into(resource, key)
        uid, author = self._entropy.uid(), self._author(manager)
        obj = writes.created(resource, body, author, uid=uid, is_tracked=is_tracked)
        if resource.storage == "services":
            addresses.allocate(obj, self._other_services(key), self._entropy)
        if resource.storage == DEFINITIONS:
            self._definitions.judge(obj, author.now)
        if self.storage.get(resource.storage, key) is not None:
            raise failures.already_exists(resource, key.name)
        if dry_run:
            return obj
        stored = self.storage.put(resource.storage, resource.stored(obj))
        if resource.storage == DEFINITIONS:
            self._definitions.serve(stored.object)
        return resource.served(stored.copy())

    def _update(
        self,
        resource: Resource,
        body: Object,
        manager: str,
        subresource: str,
        *,
        dry_run: bool,
        is_patch: bool = False,
    ) -> Object:
        key = ObjectKey.of(body)
        stored = self._stored(resource, key)
        self._check_guards(resource, key, body, stored, is_patch=is_patch)
        if not body["metadata"].get("resourceVersion") and not resource.unconditional_update:
            raise failures.unversioned_update(resource, key.name)
        old = resource.served(stored.object)
        obj = writes.updated(resource, old, body, self._author(manager), subresource=subresource)
        return self._store(resource, stored, obj, dry_run=dry_run)

    def _store(self, resource: Resource, stored: Stored, obj: Object, *, dry_run: bool) -> Object:
        """Store what an update made of an object, unless it is the same."""
        if resource.storage == "services" and obj["spec"] != stored.object["spec"]:
            addresses.allocate(obj, self._other_services(stored.key), self._entropy)
        if resource.storage == DEFINITIONS:
            self._definitions.judge(obj, self._clock.now())
        if dry_run:
            return obj
        obj = resource.stored(obj)
        if deletion.is_released(obj):
            return resource.served(self._remove(resource, stored, obj).copy())
        if obj == stored.object:
            return resource.served(stored.copy())
        after = self.storage.put(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._definitions.serve(after.object)
        return resource.served(after.copy())

    def _check_guards(
        self, resource: Resource, key: ObjectKey, body: Object, stored: Stored | None, *, is_patch: bool = False
    ) -> None:
        """The UID and the resourceVersion that a write names must be the stored ones."""
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if stored is None:
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise failures.conflict(resource, key.name, why)
            return
        held = stored.object["metadata"]
        # A patch that changes the UID is told that it cannot, like any other immutable field.
        if uid and uid != held["uid"] and not is_patch:
            raise failures.stored_uid_differs(resource, key.name, uid, held["uid"])
        if version and version != held["resourceVersion"]:
            raise failures.modified(resource, key.name)

    def _admit_into(self, resource: Resource, key: ObjectKey) -> None:
        namespace = self._stored(self.resources.of_kind(_NAMESPACE), ObjectKey("", key.namespace))
        if is_deleting(namespace.object):
            raise failures.terminating_namespace(resource, key.name, key.namespace)
        if resource.is_custom:
            definition = self.storage.get(DEFINITIONS, ObjectKey("", resource.storage))
            if definition is not None and is_deleting(definition.object):
                raise failures.terminating_definition()

    def _free_name(self, resource: Resource, metadata: Object) -> str:
        while True:
            name = str(metadata["generateName"])[:58] + self._entropy.name_suffix()
            if self.storage.get(resource.storage, ObjectKey(metadata.get("namespace") or "", name)) is None:
                return name

    def _other_services(self, key: ObjectKey) -> Sequence[Object]:
        return [each.object["spec"] for each in self.storage.each("services") if each.key != key]

    def _remove(self, resource: Resource, stored: Stored, last: Object) -> Stored:
        gone = self.storage.remove(resource.storage, stored.key, last)
        if resource.storage == DEFINITIONS:
            self._definitions.withdraw(last)
            self.storage.forget(storage_name(last))
        elif resource.is_custom:
            self._finish_definition(resource.storage)
        return gone

    def _delete_instances(self, definition: Object) -> None:
        """Delete the objects of a definition that is being deleted; with the last of them it goes itself."""
        for resource, key in self._definitions.instances(definition):
            if self.storage.get(resource.storage, key) is not None:
                self.delete(resource.mapping, key, propagation="Background")
        self._finish_definition(storage_name(definition))

    def _finish_definition(self, own: str) -> None:
        released = self._definitions.released(own)
        if released is not None:
            stored, obj = released
            self._store(self.resources.stored_as(DEFINITIONS)[0], stored, obj, dry_run=False)


def _named(key: ObjectKey) -> Object:
    return {"name": key.name, "namespace": key.namespace} if key.namespace else {"name": key.name}

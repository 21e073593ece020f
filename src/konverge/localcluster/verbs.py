"""The verbs that change objects, step by step: read, admit, prepare, check, store.

Each may have to ask a webhook on its way, so each is a generator (`konverge.localcluster.webhooks.consulting`). While
it waits, others write: whatever was read before is compared with what is stored before anything is stored, and the
verb begins anew when it has changed, as on the real server.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, BadRequestError
from konverge.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge.localcluster import addresses, deletion, failures, writes
from konverge.localcluster.customresources import DEFINITIONS, storage_name
from konverge.localcluster.definitions import ServedDefinitions
from konverge.localcluster.deletion import DeleteOptions
from konverge.localcluster.first_objects import IMMORTAL_NAMESPACES
from konverge.localcluster.incoming import read_body, read_patched
from konverge.localcluster.patching import PatchType, check_identity, patched
from konverge.localcluster.resources import Resource, Resources
from konverge.localcluster.scale import scale_of, with_replicas
from konverge.localcluster.storage import Storage, Stored
from konverge.localcluster.webhooks.admission import AdmissionWebhooks
from konverge.localcluster.webhooks.configurations import Operation
from konverge.localcluster.webhooks.consulting import Consulting
from konverge.localcluster.webhooks.conversion import Conversions
from konverge.localcluster.webhooks.reviews import Admission
from konverge.localcluster.writes import Author
from konverge.localcluster.writing import Write

__all__ = ["Verbs"]

T = TypeVar("T")

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_ATTEMPTS = 5
_OPTIONS: dict[Operation, str] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class _MovedError(Exception):
    """Somebody else has written the object in the meantime."""


class Verbs:
    """The verbs over one store.

    Args:
        storage: The store.
        resources: What is served.
        clock: Gives the timestamps.
        entropy: Gives UIDs, generated names, addresses.
    """

    def __init__(self, storage: Storage, resources: Resources, *, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._resources = resources
        self._clock = clock
        self._entropy = entropy
        self._definitions = ServedDefinitions(storage, resources)
        self.conversions = Conversions(entropy, self._find_service)
        self._webhooks = AdmissionWebhooks(storage, resources, self.conversions, entropy, self._find_service)

    def get(self, resource: Resource, key: ObjectKey) -> Consulting[Object]:
        """Read one object.

        Raises:
            NotFoundError: There is none.
        """
        return (yield from self.conversions.served(resource, self._stored(resource, key).copy()))

    def create(self, resource: Resource, obj: Object, write: Write) -> Consulting[Object]:
        """Store a new object; see `konverge.localcluster.ApiServer.create`."""
        return (yield from self._create(resource, read_body(resource, obj, write.fields), write))

    def update(self, resource: Resource, obj: Object, write: Write, subresource: str = "") -> Consulting[Object]:
        """Replace an object or a part of it; see `konverge.localcluster.ApiServer.update`."""
        return (yield from self._settled(resource, obj, lambda: self._updated(resource, obj, write, subresource)))

    def patch(
        self,
        resource: Resource,
        key: ObjectKey,
        patch: Any,
        patch_type: PatchType,
        write: Write,
        subresource: str = "",
    ) -> Consulting[Object]:
        """Change an object or a part of it; see `konverge.localcluster.ApiServer.patch`."""

        def attempt() -> Consulting[Object]:
            stored = self._stored(resource, key)
            old = yield from self.conversions.served(resource, stored.copy())
            if subresource == "scale":
                scale = patched(resource, scale_of(resource, old), patch, patch_type)
                return (yield from self._scaled(resource, stored, old, scale, write))
            changed = patched(resource, old, patch, patch_type)
            check_identity(changed, key)
            try:
                body = read_patched(resource, changed, write.fields)
            except BadRequestError as mistake:
                raise failures.unreadable_patch(mistake.message) from None
            return (yield from self._update(resource, stored, body, write, subresource, is_patch=True))

        return (yield from self._settled(resource, {"metadata": {"name": key.name}}, attempt))

    def apply(
        self, resource: Resource, obj: Object, write: Write, subresource: str = "", *, force: bool = False
    ) -> Consulting[Object]:
        """Server-side apply; see `konverge.localcluster.ApiServer.apply`."""
        key = ObjectKey.of(obj)

        def attempt() -> Consulting[Object]:
            stored = self._storage.get(resource.storage, key)
            if stored is None and subresource:
                raise failures.not_found(resource, key.name)
            old = None
            if stored is not None:
                old = yield from self.conversions.served(resource, stored.object)
            author = self._author(write)
            self._check_guards(resource, key, obj, stored, is_patch=True)
            body = writes.applied(resource, old, obj, author, write.fields, force=force, subresource=subresource)
            if stored is None or old is None:
                body["metadata"] = {**body["metadata"], **_named(key)}
                return (yield from self._create(resource, body, write, is_tracked=True))
            return (yield from self._admitted(resource, stored, old, body, write, subresource))

        return (yield from self._settled(resource, obj, attempt))

    def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        options: DeleteOptions,
        write: Write,
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> Consulting[Object]:
        """Delete an object or mark it; see `konverge.localcluster.ApiServer.delete`."""

        def attempt() -> Consulting[Object]:
            stored = self._stored(resource, key)
            metadata = stored.object["metadata"]
            if uid and uid != metadata["uid"]:
                raise failures.mismatched_uid(resource, key.name, uid, metadata["uid"])
            if resource.storage == "namespaces" and key.name in IMMORTAL_NAMESPACES:
                raise failures.immortal_namespace(key.name)
            if resource_version and resource_version != metadata["resourceVersion"]:
                held = metadata["resourceVersion"]
                raise failures.mismatched_resource_version(resource, key.name, resource_version, held)
            old = yield from self.conversions.served(resource, stored.object)
            admission = self._admission("DELETE", resource, key, None, old, "", write)
            yield from self._webhooks.mutated(admission)
            yield from self._webhooks.validate(admission)
            self._check_unmoved(resource, stored)
            last = self._delete(resource, stored, options, dry_run=write.dry_run)
            return (yield from self.conversions.served(resource, last))

        return (yield from self._settled(resource, {"metadata": {"name": key.name}}, attempt))

    def _delete(self, resource: Resource, stored: Stored, options: DeleteOptions, *, dry_run: bool) -> Object:
        """Delete the stored object, or mark it; its last state, as it is stored."""
        obj = stored.copy()
        if resource.storage == DEFINITIONS:
            self._definitions.hold(obj)
        stays = deletion.mark(resource, obj, options, self._clock.now())
        if not stays and resource.storage != "pods":
            # Only pods are seen on their way out when nothing holds them.
            obj = stored.copy()
        if dry_run:
            return obj
        if not stays:
            return self._remove(resource, stored, obj).copy()
        if obj == stored.object:
            return obj
        marked = self._storage.put(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._delete_instances(marked.object)
        return marked.copy()

    def _settled(self, resource: Resource, obj: Object, attempt: Callable[[], Consulting[T]]) -> Consulting[T]:
        """What an attempt comes to that nobody else interferes with."""
        for _ in range(_ATTEMPTS):
            try:
                return (yield from attempt())
            except _MovedError:
                continue
        raise failures.modified(resource, ObjectKey.of(obj).name)

    def _check_unmoved(self, resource: Resource, stored: Stored) -> None:
        if self._storage.get(resource.storage, stored.key) is not stored:
            raise _MovedError

    def _author(self, write: Write) -> Author:
        return Author(write.manager, self._clock.now())

    def _stored(self, resource: Resource, key: ObjectKey) -> Stored:
        stored = self._storage.get(resource.storage, key)
        if stored is None:
            raise failures.not_found(resource, key.name)
        return stored

    def _create(
        self, resource: Resource, body: Object, write: Write, *, is_tracked: bool = False
    ) -> Consulting[Object]:
        metadata = body["metadata"]
        if metadata.get("resourceVersion") and not write.dry_run:
            raise ApiError("resourceVersion should not be set on objects to be created", reason="", code=500)
        key = ObjectKey.of(body)
        if resource.mapping.namespaced:
            self._admit_into(resource, key)
        obj: Object | None = writes.begun(resource, body, self._author(write), is_tracked=is_tracked)
        obj = yield from self._webhooks.mutated(self._admission("CREATE", resource, key, obj, None, "", write))
        obj = obj or body
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            obj["metadata"] = {**metadata, "name": self._free_name(resource, metadata)}
        key = ObjectKey.of(obj)
        obj = writes.created(resource, obj, uid=self._entropy.uid(), now=self._clock.now())
        if resource.storage == "services":
            addresses.allocate(obj, self._other_services(key), self._entropy)
        yield from self._webhooks.validate(self._admission("CREATE", resource, key, obj, None, "", write))
        if resource.storage == DEFINITIONS:
            self._definitions.judge(obj, self._clock.now())
        if self._storage.get(resource.storage, key) is not None:
            raise failures.already_exists(resource, key.name)
        if write.dry_run:
            return obj
        form = yield from self.conversions.stored(resource, obj)
        if self._storage.get(resource.storage, key) is not None:
            raise failures.already_exists(resource, key.name)
        stored = self._storage.put(resource.storage, form)
        if resource.storage == DEFINITIONS:
            self._definitions.serve(stored.object)
        return (yield from self.conversions.served(resource, stored.copy()))

    def _updated(self, resource: Resource, obj: Object, write: Write, subresource: str) -> Consulting[Object]:
        if subresource == "scale":
            stored = self._stored(resource, ObjectKey.of(obj))
            old = yield from self.conversions.served(resource, stored.object)
            return (yield from self._scaled(resource, stored, old, obj, write))
        body = read_body(resource, obj, write.fields)
        key = ObjectKey.of(body)
        if not subresource and resource.creates_on_update:
            metadata = body["metadata"]
            if not metadata.get("resourceVersion") and self._storage.get(resource.storage, key) is None:
                return (yield from self._create(resource, body, write))
        return (yield from self._update(resource, self._stored(resource, key), body, write, subresource))

    def _scaled(self, resource: Resource, stored: Stored, old: Object, scale: Any, write: Write) -> Consulting[Object]:
        body = with_replicas(resource, old, scale)
        return scale_of(resource, (yield from self._update(resource, stored, body, write, "scale")))

    def _update(
        self,
        resource: Resource,
        stored: Stored,
        body: Object,
        write: Write,
        subresource: str,
        *,
        is_patch: bool = False,
    ) -> Consulting[Object]:
        key = stored.key
        self._check_guards(resource, key, body, stored, is_patch=is_patch)
        if not body["metadata"].get("resourceVersion") and not resource.unconditional_update:
            raise failures.unversioned_update(resource, key.name)
        old = yield from self.conversions.served(resource, stored.object)
        obj = writes.changed(resource, old, body, self._author(write), subresource=subresource)
        return (yield from self._admitted(resource, stored, old, obj, write, subresource))

    def _admitted(
        self, resource: Resource, stored: Stored, old: Object, obj: Object, write: Write, subresource: str
    ) -> Consulting[Object]:
        """Store what a write makes of an object, if the webhooks and the rules let it pass."""
        asked = self._admission("UPDATE", resource, stored.key, obj, old, subresource, write)
        obj = (yield from self._webhooks.mutated(asked)) or obj
        obj = writes.settled(resource, old, obj, subresource=subresource)
        if resource.storage == "services" and obj["spec"] != stored.object["spec"]:
            addresses.allocate(obj, self._other_services(stored.key), self._entropy)
        asked = self._admission("UPDATE", resource, stored.key, obj, old, subresource, write)
        yield from self._webhooks.validate(asked)
        form = yield from self.conversions.stored(resource, obj)
        self._check_unmoved(resource, stored)
        if resource.storage == DEFINITIONS:
            self._definitions.judge(obj, self._clock.now())
        if write.dry_run:
            return obj
        return (yield from self.conversions.served(resource, self._store(resource, stored, form)))

    def _store(self, resource: Resource, stored: Stored, obj: Object) -> Object:
        """Store what an update made of an object, unless it is the same; what is there then, for a caller to keep."""
        if deletion.is_released(obj):
            return self._remove(resource, stored, obj).copy()
        if obj == stored.object:
            return stored.copy()
        after = self._storage.put(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._definitions.serve(after.object)
        return after.copy()

    def _admission(
        self,
        operation: Operation,
        resource: Resource,
        key: ObjectKey,
        obj: Object | None,
        old: Object | None,
        subresource: str,
        write: Write,
    ) -> Admission:
        return Admission(
            operation=operation,
            resource=resource,
            namespace=key.namespace,
            name=key.name if write.names_object else "",
            object=obj,
            old=old,
            subresource=subresource,
            user=write.user,
            options=write.options_of(_OPTIONS[operation]),
            dry_run=write.dry_run,
            told=write.told,
        )

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
        namespace = self._stored(self._resources.of_kind(_NAMESPACE), ObjectKey("", key.namespace))
        if is_deleting(namespace.object):
            raise failures.terminating_namespace(resource, key.name, key.namespace)
        if resource.is_custom:
            definition = self._storage.get(DEFINITIONS, ObjectKey("", resource.storage))
            if definition is not None and is_deleting(definition.object):
                raise failures.terminating_definition()

    def _free_name(self, resource: Resource, metadata: Object) -> str:
        while True:
            name = str(metadata["generateName"])[:58] + self._entropy.name_suffix()
            if self._storage.get(resource.storage, ObjectKey(metadata.get("namespace") or "", name)) is None:
                return name

    def _find_service(self, key: ObjectKey) -> Object | None:
        stored = self._storage.get("services", key)
        return None if stored is None else stored.object

    def _other_services(self, key: ObjectKey) -> Sequence[Object]:
        return [each.object["spec"] for each in self._storage.each("services") if each.key != key]

    def _remove(self, resource: Resource, stored: Stored, last: Object) -> Stored:
        gone = self._storage.remove(resource.storage, stored.key, last)
        if resource.storage == DEFINITIONS:
            self._definitions.withdraw(last)
            self._storage.forget(storage_name(last))
        elif resource.is_custom:
            self._finish_definition(resource.storage)
        return gone

    def _delete_instances(self, definition: Object) -> None:
        """Delete the objects of a definition that is being deleted; with the last of them it goes itself.

        No webhook is asked: that is the real server's own finalizer at work.
        """
        for resource, key in self._definitions.instances(definition):
            stored = self._storage.get(resource.storage, key)
            if stored is not None:
                self._delete(resource, stored, DeleteOptions("Background"), dry_run=False)
        self._finish_definition(storage_name(definition))

    def _finish_definition(self, own: str) -> None:
        released = self._definitions.released(own)
        if released is not None:
            stored, obj = released
            self._store(self._resources.stored_as(DEFINITIONS)[0], stored, obj)


def _named(key: ObjectKey) -> Object:
    return {"name": key.name, "namespace": key.namespace} if key.namespace else {"name": key.name}

"""The verbs that change objects, step by step: read, admit, prepare, validate, store.

A verb may need to call a webhook, so each verb is a generator (`webhooks.pending_calls`).
Other clients write while it waits. Before a verb stores an object it compares the earlier read with the stored object,
and starts again if that has changed, as the real server does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, is_deleting
from konverge.clock import Clock, Entropy
from konverge.errors import ApiError, BadRequestError
from konverge_cluster._internal.embedded import api_errors, deletion, service_addresses, write_pipeline
from konverge_cluster._internal.embedded.access.escalation import check_escalation
from konverge_cluster._internal.embedded.admission_plugins import check_expansion, check_single_default
from konverge_cluster._internal.embedded.bootstrap_objects import UNDELETABLE_NAMESPACES
from konverge_cluster._internal.embedded.custom_resources import DEFINITIONS, get_storage_name
from konverge_cluster._internal.embedded.deletion import DeleteOptions
from konverge_cluster._internal.embedded.limitations.ignored_fields import list_ignored_fields
from konverge_cluster._internal.embedded.object_decoding import read_body, read_patch_result
from konverge_cluster._internal.embedded.object_patch import PatchType, apply_patch, check_identity
from konverge_cluster._internal.embedded.pod_security import check_pod_security
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource
from konverge_cluster._internal.embedded.scale import (
    apply_scale,
    build_scale,
    check_patched_type,
    check_type,
    with_replicas,
    without_owners,
)
from konverge_cluster._internal.embedded.served_definitions import ServedDefinitions
from konverge_cluster._internal.embedded.storage import Storage, StoredObject
from konverge_cluster._internal.embedded.validation.object_warnings import list_warnings
from konverge_cluster._internal.embedded.webhooks.admission import AdmissionWebhooks
from konverge_cluster._internal.embedded.webhooks.admission_reviews import AdmissionAttributes
from konverge_cluster._internal.embedded.webhooks.configurations import Operation
from konverge_cluster._internal.embedded.webhooks.pending_calls import CallGenerator
from konverge_cluster._internal.embedded.webhooks.webhook_converter import WebhookConverter
from konverge_cluster._internal.embedded.write_options import WriteOptions
from konverge_cluster._internal.embedded.write_pipeline import WriteAuthor

__all__ = ["ServerVerbs"]

T = TypeVar("T")

_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_ATTEMPTS = 5
_OPTIONS: dict[Operation, str] = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class _ConcurrentWriteError(Exception):
    """Another client has written the object in the meantime."""


class ServerVerbs:
    """The verbs over one storage.

    Args:
        storage: The storage.
        resources: The served resources.
        clock: The clock for timestamps.
        entropy: The source of UIDs, generated names and addresses.
    """

    def __init__(self, storage: Storage, resources: ResourceRegistry, *, clock: Clock, entropy: Entropy) -> None:
        self._storage = storage
        self._resources = resources
        self._clock = clock
        self._entropy = entropy
        self._definitions = ServedDefinitions(storage, resources)
        self.conversions: WebhookConverter = WebhookConverter(entropy, self._find_service)
        self._webhooks = AdmissionWebhooks(storage, resources, self.conversions, entropy, self._find_service)

    def find_beginning(self, resource: ServedResource) -> int:
        """Return the revision at which the history of a resource begins; zero for built-in kinds."""
        return self._definitions.find_beginning(resource.storage)

    def get(self, resource: ServedResource, key: ObjectKey) -> CallGenerator[Object]:
        """Return one object.

        Raises:
            NotFoundError: The object does not exist.
        """
        return (yield from self.conversions.to_served(resource, self._get_stored(resource, key).copy()))

    def create(self, resource: ServedResource, obj: Object, write: WriteOptions) -> CallGenerator[Object]:
        """Store a new object; see `konverge_cluster.embedded.ApiServer.create`."""
        return (yield from self._create(resource, read_body(resource, obj, write.fields), write))

    def update(
        self, resource: ServedResource, obj: Object, write: WriteOptions, subresource: str = ""
    ) -> CallGenerator[Object]:
        """Replace an object or a part of it; see `konverge_cluster.embedded.ApiServer.update`."""
        return (
            yield from self._retry_concurrent_writes(
                resource, obj, lambda: self._update_or_create(resource, obj, write, subresource)
            )
        )

    def patch(
        self,
        resource: ServedResource,
        key: ObjectKey,
        patch: Any,
        patch_type: PatchType,
        write: WriteOptions,
        subresource: str = "",
    ) -> CallGenerator[Object]:
        """Change an object or a part of it; see `konverge_cluster.embedded.ApiServer.patch`."""

        def attempt() -> CallGenerator[Object]:
            stored = self._get_stored(resource, key)
            old = yield from self.conversions.to_served(resource, stored.copy())
            if subresource == "scale":
                scale = apply_patch(resource, build_scale(resource, old), patch, patch_type)
                check_patched_type(resource, scale, key.name)
                return (yield from self._update_scale(resource, stored, old, scale, write))
            changed = apply_patch(resource, old, patch, patch_type)
            check_identity(changed, key)
            try:
                body = read_patch_result(resource, changed, write.fields)
            except BadRequestError as error:
                raise api_errors.new_unreadable_patch(error.message) from None
            return (yield from self._update(resource, stored, body, write, subresource, is_patch=True))

        return (yield from self._retry_concurrent_writes(resource, {"metadata": {"name": key.name}}, attempt))

    def apply(
        self, resource: ServedResource, obj: Object, write: WriteOptions, subresource: str = "", *, force: bool = False
    ) -> CallGenerator[Object]:
        """Apply a configuration server-side; see `konverge_cluster.embedded.ApiServer.apply`."""
        key = ObjectKey.of(obj)

        def attempt() -> CallGenerator[Object]:
            stored = self._storage.get(resource.storage, key)
            if stored is None and subresource:
                raise api_errors.new_not_found(resource, key.name)
            old = None
            if stored is not None:
                old = yield from self.conversions.to_served(resource, stored.object)
            author = self._build_author(write)
            self._check_preconditions(resource, key, obj, stored, is_patch=True)
            if subresource == "scale" and stored is not None and old is not None:
                scaled = apply_scale(resource, old, obj, manager=author.manager, force=force)
                return build_scale(
                    resource, (yield from self._admit_and_store(resource, stored, old, scaled, write, subresource))
                )
            body = write_pipeline.begin_apply(
                resource, old, obj, author, write.fields, force=force, subresource=subresource
            )
            if stored is None or old is None:
                body["metadata"] = {**body["metadata"], **_build_name_metadata(key)}
                body["metadata"].pop("resourceVersion", None)  # without a uid, the server creates the object
                return (yield from self._create(resource, body, write, is_tracked=True))
            return (yield from self._admit_and_store(resource, stored, old, body, write, subresource))

        return (yield from self._retry_concurrent_writes(resource, obj, attempt))

    def delete(
        self,
        resource: ServedResource,
        key: ObjectKey,
        options: DeleteOptions,
        write: WriteOptions,
        *,
        uid: str = "",
        resource_version: str = "",
    ) -> CallGenerator[Object]:
        """Delete an object or mark it; see `konverge_cluster.embedded.ApiServer.delete`."""

        def attempt() -> CallGenerator[Object]:
            stored = self._get_stored(resource, key)
            metadata = stored.object["metadata"]
            if uid and uid != metadata["uid"]:
                raise api_errors.new_uid_precondition_failed(resource, key.name, uid, metadata["uid"])
            if resource.storage == "namespaces" and key.name in UNDELETABLE_NAMESPACES:
                raise api_errors.new_undeletable_namespace(key.name)
            if resource_version and resource_version != metadata["resourceVersion"]:
                held = metadata["resourceVersion"]
                raise api_errors.new_resource_version_precondition_failed(resource, key.name, resource_version, held)
            old = yield from self.conversions.to_served(resource, stored.object)
            admission = self._build_admission("DELETE", resource, key, None, old, "", write)
            yield from self._webhooks.mutate(admission)
            yield from self._webhooks.validate(admission)
            self._check_not_overwritten(resource, stored)
            last = self._delete(resource, stored, options, dry_run=write.dry_run)
            return (yield from self.conversions.to_served(resource, last))

        return (yield from self._retry_concurrent_writes(resource, {"metadata": {"name": key.name}}, attempt))

    def _delete(
        self, resource: ServedResource, stored: StoredObject, options: DeleteOptions, *, dry_run: bool
    ) -> Object:
        """Delete the stored object, or mark it; return its last stored state."""
        obj = stored.copy()
        if resource.storage == DEFINITIONS:
            self._definitions.add_cleanup_finalizer(obj)
        stays = deletion.mark_deleting(resource, obj, options, self._clock.now())
        if not stays and resource.storage != "pods":
            # Only pods stay visible during deletion without a finalizer.
            obj = stored.copy()
        if dry_run:
            return obj
        if not stays:
            return self._remove(resource, stored, obj).copy()
        if obj == stored.object:
            return obj
        marked = self._storage.store(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._delete_instances(marked.object)
        return marked.copy()

    def _retry_concurrent_writes(
        self, resource: ServedResource, obj: Object, attempt: Callable[[], CallGenerator[T]]
    ) -> CallGenerator[T]:
        """Repeat an attempt until no other client interferes, and return its result."""
        for _ in range(_ATTEMPTS):
            try:
                return (yield from attempt())
            except _ConcurrentWriteError:
                continue
        raise api_errors.new_modified(resource, ObjectKey.of(obj).name)

    def _check_not_overwritten(self, resource: ServedResource, stored: StoredObject) -> None:
        if self._storage.get(resource.storage, stored.key) is not stored:
            raise _ConcurrentWriteError

    def _build_author(self, write: WriteOptions) -> WriteAuthor:
        return WriteAuthor(write.manager, self._clock.now())

    def _get_stored(self, resource: ServedResource, key: ObjectKey) -> StoredObject:
        stored = self._storage.get(resource.storage, key)
        if stored is None:
            raise api_errors.new_not_found(resource, key.name)
        return stored

    def _create(
        self, resource: ServedResource, body: Object, write: WriteOptions, *, is_tracked: bool = False
    ) -> CallGenerator[Object]:
        metadata = body["metadata"]
        if metadata.get("resourceVersion") and not write.dry_run:
            raise ApiError("resourceVersion should not be set on objects to be created", reason="", code=500)
        key = ObjectKey.of(body)
        if resource.mapping.namespaced:
            self._check_namespace(resource, key)
        obj: Object | None = write_pipeline.begin_create(
            resource, body, self._build_author(write), self._storage, is_tracked=is_tracked
        )
        obj = yield from self._webhooks.mutate(self._build_admission("CREATE", resource, key, obj, None, "", write))
        obj = obj or body
        metadata = obj["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            obj["metadata"] = {**metadata, "name": self._generate_name(resource, metadata)}
        key = ObjectKey.of(obj)
        self._check_escalation(resource, obj, write)
        obj = write_pipeline.finish_create(
            resource, obj, write.warnings, uid=self._entropy.uid(), now=self._clock.now()
        )
        if resource.storage == "services":
            service_addresses.allocate_addresses(obj, self._list_other_services(key), self._entropy)
        write.warnings.extend([*list_warnings(resource, obj), *list_ignored_fields(resource, obj, None)])
        check_single_default(resource, obj, self._storage)
        write.warnings.extend(check_pod_security(resource, obj, None, "", self._storage))
        yield from self._webhooks.validate(self._build_admission("CREATE", resource, key, obj, None, "", write))
        if resource.storage == DEFINITIONS:
            self._definitions.accept_names(obj, self._clock.now())
        if self._storage.get(resource.storage, key) is not None:
            raise api_errors.new_already_exists(resource, key.name)
        if write.dry_run:
            return obj
        form = yield from self.conversions.to_stored(resource, obj)
        if self._storage.get(resource.storage, key) is not None:
            raise api_errors.new_already_exists(resource, key.name)
        stored = self._storage.store(resource.storage, form)
        if resource.storage == DEFINITIONS:
            self._definitions.serve(stored.object)
        return (yield from self.conversions.to_served(resource, stored.copy()))

    def _update_or_create(
        self, resource: ServedResource, obj: Object, write: WriteOptions, subresource: str
    ) -> CallGenerator[Object]:
        if subresource == "scale":
            stored = self._get_stored(resource, ObjectKey.of(obj))
            old = yield from self.conversions.to_served(resource, stored.object)
            check_type(resource, obj)
            return (yield from self._update_scale(resource, stored, old, obj, write))
        body = read_body(resource, obj, write.fields)
        key = ObjectKey.of(body)
        if not subresource and resource.creates_on_update:
            metadata = body["metadata"]
            if not metadata.get("resourceVersion") and self._storage.get(resource.storage, key) is None:
                return (yield from self._create(resource, body, write))
        return (yield from self._update(resource, self._get_stored(resource, key), body, write, subresource))

    def _update_scale(
        self, resource: ServedResource, stored: StoredObject, old: Object, scale: Any, write: WriteOptions
    ) -> CallGenerator[Object]:
        body = with_replicas(resource, old, scale)
        if resource.is_custom and not scale.get("apiVersion"):
            body = without_owners(resource, body)
        return build_scale(resource, (yield from self._update(resource, stored, body, write, "scale")))

    def _update(
        self,
        resource: ServedResource,
        stored: StoredObject,
        body: Object,
        write: WriteOptions,
        subresource: str,
        *,
        is_patch: bool = False,
    ) -> CallGenerator[Object]:
        key = stored.key
        self._check_preconditions(resource, key, body, stored, is_patch=is_patch)
        if not body["metadata"].get("resourceVersion") and not resource.unconditional_update:
            raise api_errors.new_unversioned_update(resource, key.name)
        old = yield from self.conversions.to_served(resource, stored.object)
        obj = write_pipeline.begin_update(resource, old, body, self._build_author(write), subresource=subresource)
        return (yield from self._admit_and_store(resource, stored, old, obj, write, subresource))

    def _admit_and_store(
        self,
        resource: ServedResource,
        stored: StoredObject,
        old: Object,
        obj: Object,
        write: WriteOptions,
        subresource: str,
    ) -> CallGenerator[Object]:
        """Store the result of a write if webhooks and validation accept it."""
        admission = self._build_admission("UPDATE", resource, stored.key, obj, old, subresource, write)
        obj = (yield from self._webhooks.mutate(admission)) or obj
        self._check_escalation(resource, obj, write)
        obj = write_pipeline.finish_update(
            resource, old, obj, write.warnings, subresource=subresource, now=self._clock.now()
        )
        if resource.storage == "services" and obj["spec"] != stored.object["spec"]:
            service_addresses.allocate_addresses(obj, self._list_other_services(stored.key), self._entropy)
        if not subresource:
            write.warnings.extend([*list_warnings(resource, obj), *list_ignored_fields(resource, obj, old)])
        check_single_default(resource, obj, self._storage)
        check_expansion(resource, old, obj, subresource, self._storage)
        write.warnings.extend(check_pod_security(resource, obj, old, subresource, self._storage))
        admission = self._build_admission("UPDATE", resource, stored.key, obj, old, subresource, write)
        yield from self._webhooks.validate(admission)
        form = yield from self.conversions.to_stored(resource, obj)
        self._check_not_overwritten(resource, stored)
        if resource.storage == DEFINITIONS:
            self._definitions.accept_names(obj, self._clock.now())
        if write.dry_run:
            return obj
        return (yield from self.conversions.to_served(resource, self._store(resource, stored, form)))

    def _check_escalation(self, resource: ServedResource, obj: Object, write: WriteOptions) -> None:
        if write.authorizer is not None:
            check_escalation(resource, obj, write.user, write.authorizer, self._storage)

    def _store(self, resource: ServedResource, stored: StoredObject, obj: Object) -> Object:
        """Store the result of an update unless nothing changed; return a copy of the stored object."""
        if deletion.is_released(obj):
            return self._remove(resource, stored, obj).copy()
        if obj == stored.object:
            return stored.copy()
        after = self._storage.store(resource.storage, obj)
        if resource.storage == DEFINITIONS:
            self._definitions.serve(after.object)
        return after.copy()

    def _build_admission(
        self,
        operation: Operation,
        resource: ServedResource,
        key: ObjectKey,
        obj: Object | None,
        old: Object | None,
        subresource: str,
        write: WriteOptions,
    ) -> AdmissionAttributes:
        return AdmissionAttributes(
            operation=operation,
            resource=resource,
            namespace=key.namespace,
            name=key.name if write.names_object else "",
            object=obj,
            old=old,
            subresource=subresource,
            user=write.user,
            options=write.to_options_object(_OPTIONS[operation]),
            dry_run=write.dry_run,
            warnings=write.warnings,
        )

    def _check_preconditions(
        self,
        resource: ServedResource,
        key: ObjectKey,
        body: Object,
        stored: StoredObject | None,
        *,
        is_patch: bool = False,
    ) -> None:
        """Compare the UID and the resourceVersion of a write with the stored ones."""
        metadata = body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        if stored is None:
            if uid:
                why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise api_errors.new_conflict(resource, key.name, why)
            return
        held = stored.object["metadata"]
        # A patch of the UID fails as a change of any other immutable field.
        if uid and uid != held["uid"] and not is_patch:
            raise api_errors.new_uid_mismatch(resource, key.name, uid, held["uid"])
        if version and version != held["resourceVersion"]:
            raise api_errors.new_modified(resource, key.name)

    def _check_namespace(self, resource: ServedResource, key: ObjectKey) -> None:
        namespace = self._get_stored(self._resources.get_by_kind(_NAMESPACE), ObjectKey("", key.namespace))
        if is_deleting(namespace.object):
            raise api_errors.new_terminating_namespace(resource, key.name, key.namespace)
        if resource.is_custom:
            definition = self._storage.get(DEFINITIONS, ObjectKey("", resource.storage))
            if definition is not None and is_deleting(definition.object):
                raise api_errors.new_terminating_definition()

    def _generate_name(self, resource: ServedResource, metadata: Object) -> str:
        while True:
            name = str(metadata["generateName"])[:58] + self._entropy.name_suffix()
            if self._storage.get(resource.storage, ObjectKey(metadata.get("namespace") or "", name)) is None:
                return name

    def _find_service(self, key: ObjectKey) -> Object | None:
        stored = self._storage.get("services", key)
        return None if stored is None else stored.object

    def _list_other_services(self, key: ObjectKey) -> Sequence[Object]:
        return [stored.object["spec"] for stored in self._storage.iter_objects("services") if stored.key != key]

    def _remove(self, resource: ServedResource, stored: StoredObject, last: Object) -> StoredObject:
        gone = self._storage.remove(resource.storage, stored.key, last)
        if resource.storage == DEFINITIONS:
            self._definitions.withdraw(last)
            self._definitions.forget(last)
            self._storage.remove_resource(get_storage_name(last))
        elif resource.is_custom:
            self._finish_definition(resource.storage)
        return gone

    def _delete_instances(self, definition: Object) -> None:
        """Delete the objects of a definition that is being deleted; the definition is removed after the last object.

        This is the finalizer of the real server itself, so no webhook is called.
        """
        for resource, key in self._definitions.list_instances(definition):
            stored = self._storage.get(resource.storage, key)
            if stored is not None:
                self._delete(resource, stored, DeleteOptions("Background"), dry_run=False)
        self._finish_definition(get_storage_name(definition))

    def _finish_definition(self, own: str) -> None:
        released = self._definitions.find_released(own)
        if released is not None:
            stored, obj = released
            self._store(self._resources.list_by_storage(DEFINITIONS)[0], stored, obj)


def _build_name_metadata(key: ObjectKey) -> Object:
    return {"name": key.name, "namespace": key.namespace} if key.namespace else {"name": key.name}

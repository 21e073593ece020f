"""The CustomResourceDefinitions at work: what is served follows what is stored."""

from __future__ import annotations

from datetime import datetime

from konverge.kube import Object, ObjectKey, is_deleting
from konverge_cluster.embedded.custom_resources import (
    CLEANUP_FINALIZER,
    DEFINITIONS,
    accept_names,
    build_resources,
    get_storage_name,
)
from konverge_cluster.embedded.resource_registry import ResourceRegistry, ServedResource
from konverge_cluster.embedded.storage import Storage, StoredObject

__all__ = ["ServedDefinitions"]


class ServedDefinitions:
    """Adds the resources of definitions to the registry, and takes them out again.

    Args:
        storage: Where definitions and their objects are.
        resources: The registry.
    """

    def __init__(self, storage: Storage, resources: ResourceRegistry) -> None:
        self._storage = storage
        self._resources = resources

    def accept_names(self, definition: Object, now: datetime) -> None:
        """Write into a definition's status what becomes of it beside the others of its group, in place."""
        own, group = get_storage_name(definition), definition["spec"]["group"]
        others = [each for each in self._resources if each.gvk.group == group and each.storage != own]
        accept_names(definition, others, now)

    def serve(self, definition: Object) -> None:
        """Serve what a definition says from now on."""
        self.withdraw(definition)
        for each in build_resources(definition):
            self._resources.add(each)

    def withdraw(self, definition: Object) -> None:
        """Serve nothing of a definition any more."""
        own = get_storage_name(definition)
        self._resources.remove(lambda each: each.is_custom and each.storage == own)

    def add_cleanup_finalizer(self, definition: Object) -> None:
        """Have a definition that is about to be deleted wait for its objects, in place."""
        if not is_deleting(definition):
            finalizers = definition["metadata"].get("finalizers") or []
            definition["metadata"]["finalizers"] = [*finalizers, CLEANUP_FINALIZER]

    def list_instances(self, definition: Object) -> list[tuple[ServedResource, ObjectKey]]:
        """The objects of a definition, each with a resource that serves it."""
        own = get_storage_name(definition)
        serving = self._resources.list_by_storage(own)[:1]
        return [(resource, stored.key) for resource in serving for stored in self._storage.list_objects(own)]

    def find_released(self, own: str) -> tuple[StoredObject, Object] | None:
        """The definition of that storage name that waits for objects which are all gone: as stored, and let go."""
        stored = self._storage.get(DEFINITIONS, ObjectKey("", own))
        if stored is None or not is_deleting(stored.object) or self._storage.list_objects(own):
            return None
        obj = stored.copy()
        finalizers = obj["metadata"].get("finalizers") or []
        if CLEANUP_FINALIZER not in finalizers:
            return None
        obj["metadata"]["finalizers"] = [each for each in finalizers if each != CLEANUP_FINALIZER]
        return stored, obj

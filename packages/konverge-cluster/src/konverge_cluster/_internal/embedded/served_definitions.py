"""The established CustomResourceDefinitions: the served resources follow the stored definitions."""

from __future__ import annotations

from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, is_deleting
from konverge_cluster._internal.embedded.custom_resources import (
    CLEANUP_FINALIZER,
    DEFINITIONS,
    accept_names,
    build_resources,
    get_storage_name,
)
from konverge_cluster._internal.embedded.resource_registry import ResourceRegistry, ServedResource
from konverge_cluster._internal.embedded.storage import Storage, StoredObject

__all__ = ["ServedDefinitions"]


class ServedDefinitions:
    """Adds the resources of definitions to the registry, and removes them.

    Args:
        storage: The storage of definitions and their objects.
        resources: The registry of served resources.
    """

    def __init__(self, storage: Storage, resources: ResourceRegistry) -> None:
        self._storage = storage
        self._resources = resources
        self._beginnings: dict[str, int] = {}

    def accept_names(self, definition: Object, now: datetime) -> None:
        """Update a definition's status according to the names of other definitions in its group, in place."""
        own, group = get_storage_name(definition), definition["spec"]["group"]
        others = [resource for resource in self._resources if resource.gvk.group == group and resource.storage != own]
        accept_names(definition, others, now)

    def serve(self, definition: Object) -> None:
        """Serve the resources of a definition from now on."""
        self.withdraw(definition)
        for served in build_resources(definition):
            self._beginnings.setdefault(served.storage, self._storage.revision)
            self._resources.add(served)

    def find_beginning(self, own: str) -> int:
        """Return the revision at which the history of a definition's objects begins; zero for built-in kinds."""
        return self._beginnings.get(own, 0)

    def forget(self, definition: Object) -> None:
        """Forget the history of a definition that is gone."""
        self._beginnings.pop(get_storage_name(definition), None)

    def withdraw(self, definition: Object) -> None:
        """Stop serving the resources of a definition."""
        own = get_storage_name(definition)
        self._resources.remove(lambda served: served.is_custom and served.storage == own)

    def add_cleanup_finalizer(self, definition: Object) -> None:
        """Add the finalizer with which a definition waits for the deletion of its objects, in place."""
        if not is_deleting(definition):
            finalizers = definition["metadata"].get("finalizers") or []
            definition["metadata"]["finalizers"] = [*finalizers, CLEANUP_FINALIZER]

    def list_instances(self, definition: Object) -> list[tuple[ServedResource, ObjectKey]]:
        """Return the objects of a definition, each with a resource that serves it."""
        own = get_storage_name(definition)
        serving = self._resources.list_by_storage(own)[:1]
        return [(resource, stored.key) for resource in serving for stored in self._storage.list_objects(own)]

    def find_released(self, own: str) -> tuple[StoredObject, Object] | None:
        """Return a deleted definition without remaining objects: as stored, and without its finalizer."""
        stored = self._storage.get(DEFINITIONS, ObjectKey("", own))
        if stored is None or not is_deleting(stored.object) or self._storage.list_objects(own):
            return None
        obj = stored.copy()
        finalizers = obj["metadata"].get("finalizers") or []
        if CLEANUP_FINALIZER not in finalizers:
            return None
        obj["metadata"]["finalizers"] = [entry for entry in finalizers if entry != CLEANUP_FINALIZER]
        return stored, obj

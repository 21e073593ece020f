"""Writes of controllers: the verbs of the API server, with one field manager and preconditions from the read object."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.errors import ForbiddenError
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.deletion import Propagation

__all__ = ["ControllerClient", "is_namespace_terminating_error"]


def is_namespace_terminating_error(error: Exception) -> bool:
    """Return True if a create failed because the namespace is being deleted: a retry cannot succeed."""
    return isinstance(error, ForbiddenError) and "NamespaceTerminating" in {cause.reason for cause in error.causes}


class ControllerClient:
    """A client of the API server for one controller.

    Arguments can share parts with stored objects: the server copies its input.

    Args:
        api: The API server.
        manager: The field manager of the writes.
    """

    def __init__(self, api: ApiServer, manager: str) -> None:
        self._api = api
        self._manager = manager

    def create(self, obj: Object) -> Object:
        """Create an object and return it."""
        return self._api.create(GroupVersionKind.of(obj), obj, manager=self._manager)

    def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object if its stored resourceVersion is still that of `obj`."""
        return self._api.update(GroupVersionKind.of(obj), obj, manager=self._manager, subresource=subresource)

    def update_status(self, obj: Object, status: Object) -> Object:
        """Replace the object's status, and its annotations if the kind permits that."""
        return self.update({**obj, "status": status}, subresource="status")

    def apply(self, obj: Object) -> Object:
        """Apply a configuration; the controller takes its fields from other managers."""
        return self._api.apply(GroupVersionKind.of(obj), obj, manager=self._manager, force=True)

    def delete(self, obj: Object, *, propagation: Propagation | None = None, grace_seconds: int | None = None) -> None:
        """Delete the object if its UID is still the same."""
        self._api.delete(
            GroupVersionKind.of(obj),
            ObjectKey.of(obj),
            uid=obj["metadata"]["uid"],
            propagation=propagation,
            grace_seconds=grace_seconds,
        )

    def bind(self, pod: Object, node_name: str, condition: Object) -> Object:
        """Assign a pod to a node; `condition` is the ``PodScheduled`` condition."""
        status = {**(pod.get("status") or {}), "conditions": [condition]}
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}
        return self.update(bound, subresource="binding")

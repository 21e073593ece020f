"""How players write: the verbs of the API server, under one field manager, guarded by what was read."""

from __future__ import annotations

from konverge.errors import ForbiddenError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.embedded.apiserver import ApiServer
from konverge_cluster.embedded.deletion import Propagation

__all__ = ["ControllerClient", "is_namespace_terminating_error"]


def is_namespace_terminating_error(error: Exception) -> bool:
    """Tell whether a create failed because the namespace is being deleted: it cannot succeed, and need not."""
    return isinstance(error, ForbiddenError) and "NamespaceTerminating" in {cause.reason for cause in error.causes}


class ControllerClient:
    """The API server as one of its users sees it.

    Objects that are handed in may share parts with stored ones: the server copies what it is given.

    Args:
        api: The server.
        manager: The field manager under which the writes are recorded.
    """

    def __init__(self, api: ApiServer, manager: str) -> None:
        self._api = api
        self._manager = manager

    def create(self, obj: Object) -> Object:
        """Create the object."""
        return self._api.create(GroupVersionKind.of(obj), obj, manager=self._manager)

    def update(self, obj: Object, *, subresource: str = "") -> Object:
        """Replace the object, if it still is at the resourceVersion that `obj` carries."""
        return self._api.update(GroupVersionKind.of(obj), obj, manager=self._manager, subresource=subresource)

    def update_status(self, obj: Object, status: Object) -> Object:
        """Replace the object's status; annotations of `obj` go with it, as kinds allow."""
        return self.update({**obj, "status": status}, subresource="status")

    def delete(self, obj: Object, *, propagation: Propagation | None = None, grace_seconds: int | None = None) -> None:
        """Delete the object, if it still is the one of that UID."""
        self._api.delete(
            GroupVersionKind.of(obj),
            ObjectKey.of(obj),
            uid=obj["metadata"]["uid"],
            propagation=propagation,
            grace_seconds=grace_seconds,
        )

    def bind(self, pod: Object, node_name: str, condition: Object) -> Object:
        """Put a pod on a node; `condition` is the ``PodScheduled`` that says so."""
        status = {**(pod.get("status") or {}), "conditions": [condition]}
        bound = {**pod, "spec": {**pod["spec"], "nodeName": node_name}, "status": status}
        return self.update(bound, subresource="binding")

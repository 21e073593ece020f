"""The simulated namespace controllers: they create the default objects of a namespace, and empty a deleted one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import datetime

from konverge._internal.kube import Object, ObjectKey, format_time, is_deleting
from konverge.clock import Clock
from konverge_cluster._internal.embedded.controllers.builtin_kinds import CONFIG_MAP, NAMESPACE, POD, SERVICE_ACCOUNT
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView, GroupKind, ViewItem
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.workload_conditions import find_condition

__all__ = ["NamespaceController", "NamespaceDefaultsController", "build_deletion_status"]

_FINALIZER = "kubernetes"
_ROOT_CA = "kube-root-ca.crt"
_ROOT_CA_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class NamespaceDefaultsController:
    """The controller that creates the default ServiceAccount and root certificates. Its keys are namespace names."""

    name = "serviceaccount-controller"
    watches = frozenset({NAMESPACE.group_kind, SERVICE_ACCOUNT.group_kind, CONFIG_MAP.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer

    def keys_for(self, notice: ClusterChange) -> Iterable[str]:
        """Return the name of a namespace, or of the one whose default objects were deleted."""
        if notice.kind == NAMESPACE.group_kind:
            return () if notice.type == "DELETED" else (notice.key.name,)
        return (notice.key.namespace,) if notice.type == "DELETED" and notice.key.name in ("default", _ROOT_CA) else ()

    def reconcile(self, key: Hashable) -> float | None:
        """Create the absent default objects."""
        assert isinstance(key, str)
        namespace = self._view.get(NAMESPACE, ObjectKey("", key))
        if namespace is None or is_deleting(namespace):
            return None
        if self._view.get(CONFIG_MAP, ObjectKey(key, _ROOT_CA)) is None:
            annotations = {"kubernetes.io/description": _ROOT_CA_DESCRIPTION}
            metadata = {"name": _ROOT_CA, "namespace": key, "annotations": annotations}
            self._writer.create(
                {"apiVersion": "v1", "kind": CONFIG_MAP.kind, "metadata": metadata, "data": {"ca.crt": ""}}
            )
        if self._view.get(SERVICE_ACCOUNT, ObjectKey(key, "default")) is None:
            metadata = {"name": "default", "namespace": key}
            self._writer.create({"apiVersion": "v1", "kind": SERVICE_ACCOUNT.kind, "metadata": metadata})
        return None


class NamespaceController:
    """The controller that empties a namespace under deletion, pods first. Its keys are names of namespaces."""

    name = "namespace-controller"
    watches: frozenset[GroupKind] | None = None

    def __init__(
        self, view: ClusterView, writer: ControllerClient, clock: Clock, plural_of: Callable[[GroupKind], str]
    ) -> None:
        self._view = view
        self._writer = writer
        self._clock = clock
        self._plural_of = plural_of
        self._emptying: set[str] = set()

    def keys_for(self, notice: ClusterChange) -> Iterable[str]:
        """Return the name of a namespace under deletion, or of one that has lost an object meanwhile."""
        if notice.kind == NAMESPACE.group_kind:
            if notice.type == "DELETED" or not is_deleting(notice.new):
                self._emptying.discard(notice.key.name)
                return ()
            self._emptying.add(notice.key.name)
            return (notice.key.name,)
        return (notice.key.namespace,) if notice.key.namespace in self._emptying else ()

    def reconcile(self, key: Hashable) -> float | None:
        """Delete the remaining objects, report the obstacles, and finalize the namespace once it is empty."""
        assert isinstance(key, str)
        namespace = self._view.get(NAMESPACE, ObjectKey("", key))
        if namespace is None or not is_deleting(namespace):
            return None
        remaining_objects = self._view.list_namespace(key)
        pods = [item for item in remaining_objects if item.kind == POD.group_kind]
        for item in pods or remaining_objects:
            if not is_deleting(item.object):
                self._writer.delete(item.object, propagation="Background")
        remaining_objects = self._view.list_namespace(key)
        status = build_deletion_status(namespace, remaining_objects, self._plural_of, self._clock.now())
        if status != namespace.get("status"):
            namespace = self._writer.update_status(namespace, status)
        finalizers = namespace["spec"].get("finalizers") or []
        if not remaining_objects and _FINALIZER in finalizers:
            other_finalizers = [entry for entry in finalizers if entry != _FINALIZER]
            self._writer.update(
                {**namespace, "spec": {**namespace["spec"], "finalizers": other_finalizers}}, subresource="finalize"
            )
        return None


def build_deletion_status(
    namespace: Object, remaining_objects: Sequence[ViewItem], plural_of: Callable[[GroupKind], str], now: datetime
) -> Object:
    """Return the status of a namespace with remaining objects.

    Args:
        namespace: The stored namespace.
        remaining_objects: The remaining objects.
        plural_of: Returns the plural of a served kind.
        now: The time of the reconcile.
    """
    before = namespace.get("status") or {}
    kinds = Counter(item.kind for item in remaining_objects)
    finalizer_counts = Counter(
        entry for item in remaining_objects for entry in item.object["metadata"].get("finalizers") or ()
    )
    # The real message also contains the dot for the core group.
    remaining = sorted(f"{plural_of(kind)}.{kind[0]} has {count} resource instances" for kind, count in kinds.items())
    finalizers = sorted(f"{name} in {count} resource instances" for name, count in finalizer_counts.items())
    expected_conditions = {
        "NamespaceDeletionDiscoveryFailure": (
            False,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        "NamespaceDeletionGroupVersionParsingFailure": (
            False,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        "NamespaceDeletionContentFailure": (
            False,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        "NamespaceContentRemaining": (
            bool(remaining_objects),
            "SomeResourcesRemain" if remaining_objects else "ContentRemoved",
            f"Some resources are remaining: {', '.join(remaining)}"
            if remaining_objects
            else "All content successfully removed",
        ),
        "NamespaceFinalizersRemaining": (
            bool(finalizer_counts),
            "SomeFinalizersRemain" if finalizer_counts else "ContentHasNoFinalizers",
            f"Some content in the namespace has finalizers remaining: {', '.join(finalizers)}"
            if finalizer_counts
            else "All content-preserving finalizers finished",
        ),
    }
    conditions = []
    for name, (is_true, reason, message) in expected_conditions.items():
        status = "True" if is_true else "False"
        earlier = find_condition(before.get("conditions") or (), name)
        same = earlier is not None and earlier["status"] == status
        conditions.append(
            {
                "type": name,
                "status": status,
                "lastTransitionTime": earlier["lastTransitionTime"]
                if earlier is not None and same
                else format_time(now),
                "reason": reason,
                "message": message,
            }
        )
    return {**before, "phase": "Terminating", "conditions": conditions}

"""StatefulSet: a workload whose pods have stable identities and their own volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import EditCategory, EditFunction, StatefulSetSpecEditor, WorkloadMutator
from konverge._internal.mutation.field_editing import ensure_mapping, remove_items, set_item
from konverge._internal.primitives.field_access import read_integer, read_text
from konverge._internal.primitives.kind_categories import WorkloadKind
from konverge._internal.primitives.replica_health import (
    ReplicaCounts,
    evaluate_convergence,
    evaluate_grace,
    evaluate_suspension,
    read_desired_replicas,
)
from konverge._internal.primitives.resource_protocol import Convergence, Grace, Operation, Suspension

__all__ = ["StatefulSet", "StatefulSetMutator"]


class StatefulSet(WorkloadKind["StatefulSetMutator"]):
    """An ``apps/v1`` StatefulSet. Suspension scales it to zero; its volumes stay."""

    gvk: GroupVersionKind = GroupVersionKind("apps", "v1", "StatefulSet")

    def create_mutator(self) -> StatefulSetMutator:
        """Return a new mutator for the callback of one mutation."""
        return StatefulSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Healthy when all replicas are ready and the rollout is as far as its strategy permits."""
        return evaluate_convergence(live, operation, _count_replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Down if no replica is ready, and Degraded if only some are."""
        return evaluate_grace(live, _count_replicas(live))

    @staticmethod
    def default_suspend(mutator: StatefulSetMutator) -> None:
        """Scale the desired object to zero replicas."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended when no replica is left."""
        return evaluate_suspension(live, "StatefulSet")


def _count_replicas(live: Object) -> ReplicaCounts:
    return ReplicaCounts(
        "StatefulSet",
        read_desired_replicas(live),
        read_integer(live, "status", "readyReplicas"),
        _describe_rollout(live),
    )


def _describe_rollout(live: Object) -> str:
    desired = read_desired_replicas(live)
    surplus = read_integer(live, "status", "replicas") - desired
    if surplus > 0:
        return f"Waiting for rollout: {surplus} old replicas pending termination"
    # With OnDelete, a pod is updated only after its deletion, which may never happen.
    if read_text(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    updated = read_integer(live, "status", "updatedReplicas")
    partition = read_integer(live, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition > 0:
        due = desired - partition
        return "" if updated >= due else f"Waiting for rollout: {updated}/{due} replicas updated"
    if updated != desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    # The controller changes the current revision when the update is complete.
    if read_text(live, "status", "currentRevision") != read_text(live, "status", "updateRevision"):
        return "Waiting for rollout: update revision is not current yet"
    return ""


class StatefulSetMutator(WorkloadMutator):
    """Records edits of a StatefulSet."""

    def edit_stateful_set_spec(self, edit: EditFunction[StatefulSetSpecEditor] | None) -> None:
        """Record an edit of the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, StatefulSetSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set the desired number of pods."""
        self.edit_stateful_set_spec(lambda spec: spec.set(replicas=replicas))

    def ensure_volume_claim_template(self, template: Mapping[str, Any]) -> None:
        """Replace the volume claim template of the same name, else append it.

        The templates of an existing StatefulSet are immutable: the edit skips an object with a resourceVersion.

        Raises:
            ValueError: The template has no name.
        """
        name = read_text(template, "metadata", "name")
        if not name:
            raise ValueError("volume claim template: metadata.name: expected a name, found none")
        self._edit_templates(lambda spec: set_item(spec, "volumeClaimTemplates", template, _match_template_name(name)))

    def remove_volume_claim_template(self, name: str) -> None:
        """Remove the volume claim template of this name, unless the object has a resourceVersion."""
        self._edit_templates(lambda spec: remove_items(spec, "volumeClaimTemplates", _match_template_name(name)))

    def _edit_templates(self, change: Callable[[Object], None]) -> None:
        def change_unless_stored(obj: Object) -> None:
            if not read_text(obj, "metadata", "resourceVersion"):
                change(ensure_mapping(obj, "spec"))

        self._record(EditCategory.VOLUME_CLAIM_TEMPLATES, change_unless_stored)


def _match_template_name(name: str) -> Callable[[Any], bool]:
    return lambda template: isinstance(template, dict) and read_text(template, "metadata", "name") == name

"""StatefulSet: a workload whose pods have an identity and their own volumes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from konverge.kube import GroupVersionKind, Object
from konverge.mutation import Category, Edit, StatefulSetSpecEditor, WorkloadMutator
from konverge.mutation.fields import mapping_at, put_item, remove_items
from konverge.primitives.categories import WorkloadKind
from konverge.primitives.lifecycle import Convergence, Grace, Operation, Suspension
from konverge.primitives.reading import integer_at, text_at
from konverge.primitives.replicas import (
    Replicas,
    replicas_converging_status,
    replicas_grace_status,
    replicas_suspension_status,
    wanted_replicas,
)

__all__ = ["StatefulSet", "StatefulSetMutator"]


class StatefulSet(WorkloadKind["StatefulSetMutator"]):
    """An ``apps/v1`` StatefulSet. Suspension scales it to zero; its volumes stay."""

    gvk = GroupVersionKind("apps", "v1", "StatefulSet")

    def new_mutator(self) -> StatefulSetMutator:
        """What the callbacks of this kind's mutations get."""
        return StatefulSetMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Healthy when all replicas are ready and the rollout has come as far as its strategy lets it."""
        return replicas_converging_status(live, operation, _replicas(live))

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Down when no replica is ready, Degraded when some are."""
        return replicas_grace_status(live, _replicas(live))

    @staticmethod
    def default_suspend(mutator: StatefulSetMutator) -> None:
        """Scale to zero."""
        mutator.ensure_replicas(0)

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended when no replica is left."""
        return replicas_suspension_status(live, "StatefulSet")


def _replicas(live: Object) -> Replicas:
    return Replicas(
        "StatefulSet", wanted_replicas(live), integer_at(live, "status", "readyReplicas"), _pending_rollout(live)
    )


def _pending_rollout(live: Object) -> str:
    desired = wanted_replicas(live)
    surplus = integer_at(live, "status", "replicas") - desired
    if surplus > 0:
        return f"Waiting for rollout: {surplus} old replicas pending termination"
    # With OnDelete the pods are updated when somebody deletes them, which may be never.
    if text_at(live, "spec", "updateStrategy", "type") == "OnDelete":
        return ""
    updated = integer_at(live, "status", "updatedReplicas")
    partition = integer_at(live, "spec", "updateStrategy", "rollingUpdate", "partition")
    if partition > 0:
        due = desired - partition
        return "" if updated >= due else f"Waiting for rollout: {updated}/{due} replicas updated"
    if updated != desired:
        return f"Waiting for rollout: {updated}/{desired} replicas updated"
    # The controller moves the current revision when it declares the update complete.
    if text_at(live, "status", "currentRevision") != text_at(live, "status", "updateRevision"):
        return "Waiting for rollout: update revision is not current yet"
    return ""


class StatefulSetMutator(WorkloadMutator):
    """Records edits of a StatefulSet."""

    def edit_stateful_set_spec(self, edit: Edit[StatefulSetSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(Category.CONTENT, StatefulSetSpecEditor, ("spec",), edit)

    def ensure_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self.edit_stateful_set_spec(lambda spec: spec.set_replicas(replicas))

    def ensure_volume_claim_template(self, template: Mapping[str, Any]) -> None:
        """Replace the volume claim template of that name, else append it.

        An existing StatefulSet cannot change its templates: on an object that carries a resourceVersion the edit is
        left out.
        """
        name = text_at(template, "metadata", "name")
        if not name:
            raise ValueError("a volume claim template needs metadata.name")
        self._edit_templates(lambda spec: put_item(spec, "volumeClaimTemplates", template, _template_named(name)))

    def remove_volume_claim_template(self, name: str) -> None:
        """Remove the volume claim template of that name, unless the object carries a resourceVersion."""
        self._edit_templates(lambda spec: remove_items(spec, "volumeClaimTemplates", _template_named(name)))

    def _edit_templates(self, change: Callable[[Object], None]) -> None:
        def change_unless_stored(obj: Object) -> None:
            if not text_at(obj, "metadata", "resourceVersion"):
                change(mapping_at(obj, "spec"))

        self._record(Category.VOLUME_CLAIM_TEMPLATES, change_unless_stored)


def _template_named(name: str) -> Callable[[Any], bool]:
    return lambda found: isinstance(found, dict) and text_at(found, "metadata", "name") == name

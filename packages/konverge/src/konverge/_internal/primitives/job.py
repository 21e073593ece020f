"""Job: a task that is complete when enough of its pods have succeeded."""

from __future__ import annotations

from konverge._internal.kube import Condition, GroupVersionKind, Object, find_condition
from konverge._internal.mutation import EditCategory, EditFunction, JobSpecEditor, PodTemplateMutator
from konverge._internal.primitives.field_access import read_boolean, read_integer
from konverge._internal.primitives.kind_categories import TaskKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = ["Job", "JobMutator"]


class Job(TaskKind["JobMutator"]):
    """A ``batch/v1`` Job. Suspension stops its pods and deletes it: after a resume it runs again, even if it completed.

    It has no grace status: a Job may take any time.
    """

    gvk: GroupVersionKind = GroupVersionKind("batch", "v1", "Job")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> JobMutator:
        """Return a new mutator for the callback of one mutation."""
        return JobMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Completed or TaskFailing by the Job's conditions; until then TaskRunning while pods are active."""
        if _find_true_condition(live, "Complete"):
            return Convergence(ConvergingStatus.COMPLETED, "Job completed")
        if failed := _find_true_condition(live, "Failed"):
            return Convergence(ConvergingStatus.TASK_FAILING, f"Job failed: {failed.message or failed.reason}")
        if (active := read_integer(live, "status", "active")) > 0:
            return Convergence(ConvergingStatus.TASK_RUNNING, f"Job has {active} active pod(s)")
        return Convergence(ConvergingStatus.TASK_PENDING, "Job has no active pods")

    @staticmethod
    def default_suspend(mutator: JobMutator) -> None:
        """Stop the pods of the Job."""
        mutator.edit_job_spec(lambda spec: spec.raw().update(suspend=True))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended when ``spec.suspend`` is true and no pod is active."""
        if not read_boolean(live, "spec", "suspend"):
            return Suspension(SuspensionStatus.SUSPENDING, "Waiting for Job to be suspended")
        if (active := read_integer(live, "status", "active")) > 0:
            return Suspension(SuspensionStatus.SUSPENDING, f"Waiting for {active} active pod(s) to stop")
        return Suspension(SuspensionStatus.SUSPENDED, "Job suspended")


def _find_true_condition(live: Object, condition_type: str) -> Condition | None:
    condition = find_condition(live, condition_type)
    return condition if condition is not None and condition.status == "True" else None


class JobMutator(PodTemplateMutator):
    """Records edits of a Job."""

    def edit_job_spec(self, edit: EditFunction[JobSpecEditor] | None) -> None:
        """Record an edit of the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, JobSpecEditor, ("spec",), edit)

"""Job: a task whose pods run until enough of them have succeeded."""

from __future__ import annotations

from konverge.kube import Condition, GroupVersionKind, Object, find_condition
from konverge.mutation import EditCategory, EditFunction, JobSpecEditor, PodTemplateMutator
from konverge.primitives.field_access import read_boolean, read_integer
from konverge.primitives.kind_categories import TaskKind
from konverge.primitives.resource_protocol import Convergence, ConvergingStatus, Operation, Suspension, SuspensionStatus

__all__ = ["Job", "JobMutator"]


class Job(TaskKind["JobMutator"]):
    """A ``batch/v1`` Job. Suspension stops its pods, then deletes it: resumed, it runs anew, also when it was complete.

    It is not graded: a Job may take as long as it takes.
    """

    gvk = GroupVersionKind("batch", "v1", "Job")
    deletes_on_suspend_by_default = True

    def create_mutator(self) -> JobMutator:
        """What the callbacks of this kind's mutations get."""
        return JobMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Completed or TaskFailing by the Job's own verdict; until then TaskRunning while pods run."""
        if _find_true_condition(live, "Complete"):
            return Convergence(ConvergingStatus.COMPLETED, "Job completed")
        if failed := _find_true_condition(live, "Failed"):
            return Convergence(ConvergingStatus.TASK_FAILING, f"Job failed: {failed.message or failed.reason}")
        if (active := read_integer(live, "status", "active")) > 0:
            return Convergence(ConvergingStatus.TASK_RUNNING, f"Job has {active} active pod(s)")
        return Convergence(ConvergingStatus.TASK_PENDING, "Job has no active pods")

    @staticmethod
    def default_suspend(mutator: JobMutator) -> None:
        """Stop the pods."""
        mutator.edit_job_spec(lambda spec: spec.raw().update(suspend=True))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Suspended when the Job is told to be and no pod is active."""
        if not read_boolean(live, "spec", "suspend"):
            return Suspension(SuspensionStatus.SUSPENDING, "Waiting for Job to be suspended")
        if (active := read_integer(live, "status", "active")) > 0:
            return Suspension(SuspensionStatus.SUSPENDING, f"Waiting for {active} active pod(s) to stop")
        return Suspension(SuspensionStatus.SUSPENDED, "Job suspended")


def _find_true_condition(live: Object, condition_type: str) -> Condition | None:
    found = find_condition(live, condition_type)
    return found if found is not None and found.status == "True" else None


class JobMutator(PodTemplateMutator):
    """Records edits of a Job."""

    def edit_job_spec(self, edit: EditFunction[JobSpecEditor] | None) -> None:
        """Edit the spec outside the pod template."""
        self._edit(EditCategory.CONTENT, JobSpecEditor, ("spec",), edit)

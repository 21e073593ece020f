"""CronJob: an integration that creates Jobs by a schedule."""

from __future__ import annotations

from typing import ClassVar

from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.mutation import CronJobSpecEditor, EditCategory, EditFunction, JobSpecEditor, PodTemplateMutator
from konverge._internal.primitives.field_access import read_boolean, read_items
from konverge._internal.primitives.kind_categories import IntegrationKind
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    ConvergingStatus,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = ["CronJob", "CronJobMutator"]


class CronJob(IntegrationKind["CronJobMutator"]):
    """A ``batch/v1`` CronJob. Suspension stops the creation of Jobs and waits for the running ones."""

    gvk: GroupVersionKind = GroupVersionKind("batch", "v1", "CronJob")

    def create_mutator(self) -> CronJobMutator:
        """Return a new mutator for the callback of one mutation."""
        return CronJobMutator()

    @staticmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return Operational: existence is enough, because the next run may be a year away."""
        return Convergence(ConvergingStatus.OPERATIONAL, "CronJob is scheduled")

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return Healthy in every state."""
        return Grace(GraceStatus.HEALTHY, "CronJob is scheduled")

    @staticmethod
    def default_suspend(mutator: CronJobMutator) -> None:
        """Stop the creation of Jobs."""
        mutator.edit_cron_job_spec(lambda spec: spec.raw().update(suspend=True))

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return Suspended when ``spec.suspend`` is true and no Job is active."""
        if not read_boolean(live, "spec", "suspend"):
            return Suspension(SuspensionStatus.SUSPENDING, "Waiting for CronJob to be suspended")
        if active := len(read_items(live, "status", "active")):
            return Suspension(SuspensionStatus.SUSPENDING, f"Waiting for {active} active Job(s) to finish")
        return Suspension(SuspensionStatus.SUSPENDED, "CronJob suspended")


class CronJobMutator(PodTemplateMutator):
    """Records edits of a CronJob."""

    pod_spec: ClassVar[tuple[str, ...]] = ("spec", "jobTemplate", "spec", "template", "spec")

    def edit_cron_job_spec(self, edit: EditFunction[CronJobSpecEditor] | None) -> None:
        """Record an edit of the spec outside the job template."""
        self._edit(EditCategory.CONTENT, CronJobSpecEditor, ("spec",), edit)

    def edit_job_spec(self, edit: EditFunction[JobSpecEditor] | None) -> None:
        """Record an edit of the spec of the Jobs, outside their pod template."""
        self._edit(EditCategory.JOB_SPEC, JobSpecEditor, ("spec", "jobTemplate", "spec"), edit)

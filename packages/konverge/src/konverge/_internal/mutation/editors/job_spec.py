"""Editor of the spec of a Job, or of the Jobs that a CronJob creates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import batch_v1, meta_v1

__all__ = ["JobSpecEditor", "JobSpecFields"]


class JobSpecFields(TypedDict, total=False):
    """Fields of a ``batch/v1`` JobSpec outside the pod template, without ``suspend``."""

    activeDeadlineSeconds: int | None
    backoffLimit: int | None
    backoffLimitPerIndex: int | None
    completionMode: Literal["Indexed", "NonIndexed"] | None
    completions: int | None
    managedBy: str | None
    manualSelector: bool | None
    maxFailedIndexes: int | None
    parallelism: int | None
    podFailurePolicy: batch_v1.PodFailurePolicy | None
    podReplacementPolicy: Literal["Failed", "TerminatingOrFailed"] | None
    selector: meta_v1.LabelSelector | None
    successPolicy: batch_v1.SuccessPolicy | None
    ttlSecondsAfterFinished: int | None


class JobSpecEditor(Editor):
    """Edits a Job's ``spec`` outside the pod template.

    `set` does not accept ``suspend``: the suspension of the component controls that field.
    """

    __slots__ = ()

    def set(self, **fields: Unpack[JobSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        ``completionMode`` is immutable after creation, and ``completions`` too unless the Job is indexed.

        The cluster deletes a finished Job after ``ttlSecondsAfterFinished``. A component that still contains the
        Job then creates it again, and it runs again.
        """
        self._set_fields(fields, JobSpecFields.__optional_keys__)

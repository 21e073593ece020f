"""The spec of a Job, or of the Jobs that a CronJob makes."""

from __future__ import annotations

from konverge.mutation.editors.editor import Editor

__all__ = ["JobSpecEditor"]


class JobSpecEditor(Editor):
    """Edits a Job's ``spec`` outside the pod template."""

    __slots__ = ()

    def set_completions(self, completions: int) -> None:
        """Set how many pods must succeed; immutable once created, unless the Job is indexed."""
        self._fields["completions"] = completions

    def set_parallelism(self, parallelism: int) -> None:
        """Set how many pods may run at a time."""
        self._fields["parallelism"] = parallelism

    def set_backoff_limit(self, limit: int) -> None:
        """Set after how many failed pods the Job is given up."""
        self._fields["backoffLimit"] = limit

    def set_active_deadline_seconds(self, seconds: int) -> None:
        """Set how long the Job may take, its retries included."""
        self._fields["activeDeadlineSeconds"] = seconds

    def set_ttl_seconds_after_finished(self, seconds: int) -> None:
        """Set how long a finished Job is kept before the cluster deletes it.

        A component that still wants the Job makes and runs it again then.
        """
        self._fields["ttlSecondsAfterFinished"] = seconds

    def set_completion_mode(self, mode: str) -> None:
        """``NonIndexed`` or ``Indexed``; immutable once created."""
        self._fields["completionMode"] = mode

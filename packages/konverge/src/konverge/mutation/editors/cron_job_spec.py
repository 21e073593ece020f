"""The spec of a CronJob."""

from __future__ import annotations

from konverge.mutation.editors.editor import Editor

__all__ = ["CronJobSpecEditor"]


class CronJobSpecEditor(Editor):
    """Edits a CronJob's ``spec`` outside the job template.

    ``suspend`` has no method: it belongs to the component's suspension.
    """

    __slots__ = ()

    def set_schedule(self, schedule: str) -> None:
        """Set when Jobs are made, as five fields: ``"0 3 * * 1-5"``."""
        self._fields["schedule"] = schedule

    def set_concurrency_policy(self, policy: str) -> None:
        """``Allow``, ``Forbid`` or ``Replace``: what becomes of a Job that still runs when the next is due."""
        self._fields["concurrencyPolicy"] = policy

    def set_starting_deadline_seconds(self, seconds: int) -> None:
        """Set how late a Job may start; one that is later counts as missed."""
        self._fields["startingDeadlineSeconds"] = seconds

    def set_successful_jobs_history_limit(self, limit: int) -> None:
        """Set how many succeeded Jobs are kept."""
        self._fields["successfulJobsHistoryLimit"] = limit

    def set_failed_jobs_history_limit(self, limit: int) -> None:
        """Set how many failed Jobs are kept."""
        self._fields["failedJobsHistoryLimit"] = limit

    def set_time_zone(self, zone: str) -> None:
        """Set the time zone of the schedule: ``Europe/Berlin``."""
        self._fields["timeZone"] = zone

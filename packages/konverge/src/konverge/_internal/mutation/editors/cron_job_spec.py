"""Editor of the spec of a CronJob."""

from __future__ import annotations

from typing import Literal, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

__all__ = ["CronJobSpecEditor", "CronJobSpecFields"]


class CronJobSpecFields(TypedDict, total=False):
    """Fields of a ``batch/v1`` CronJobSpec outside the job template, without ``suspend``."""

    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"] | None
    failedJobsHistoryLimit: int | None
    schedule: str
    startingDeadlineSeconds: int | None
    successfulJobsHistoryLimit: int | None
    timeZone: str | None


class CronJobSpecEditor(Editor):
    """Edits a CronJob's ``spec`` outside the job template.

    `set` does not accept ``suspend``: the suspension of the component controls that field.
    """

    __slots__ = ()

    def set(self, **fields: Unpack[CronJobSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field.

        ``schedule`` has five fields: ``"0 3 * * 1-5"``. A Job that would start later than ``startingDeadlineSeconds``
        counts as missed.
        """
        self._set_fields(fields, CronJobSpecFields.__optional_keys__)

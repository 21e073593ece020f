"""Editor of the spec of a Deployment."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor

if TYPE_CHECKING:
    from konverge.types import apps_v1, meta_v1

__all__ = ["DeploymentSpecEditor", "DeploymentSpecFields"]


class DeploymentSpecFields(TypedDict, total=False):
    """Fields of an ``apps/v1`` DeploymentSpec outside the pod template."""

    minReadySeconds: int | None
    paused: bool | None
    progressDeadlineSeconds: int | None
    replicas: int | None
    revisionHistoryLimit: int | None
    selector: meta_v1.LabelSelector
    strategy: apps_v1.DeploymentStrategy | None


class DeploymentSpecEditor(Editor):
    """Edits a Deployment's ``spec`` outside the pod template."""

    __slots__ = ()

    def set(self, **fields: Unpack[DeploymentSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, DeploymentSpecFields.__optional_keys__)

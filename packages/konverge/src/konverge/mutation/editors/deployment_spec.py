"""The spec of a Deployment."""

from __future__ import annotations

from konverge.mutation.editors.editor import Editor

__all__ = ["DeploymentSpecEditor"]


class DeploymentSpecEditor(Editor):
    """Edits a Deployment's ``spec`` outside the pod template."""

    __slots__ = ()

    def set_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self._fields["replicas"] = replicas

    def set_paused(self, paused: bool) -> None:
        """Hold or resume rollouts."""
        self._fields["paused"] = paused

    def set_min_ready_seconds(self, seconds: int) -> None:
        """Set how long a pod must be ready before it counts as available."""
        self._fields["minReadySeconds"] = seconds

    def set_revision_history_limit(self, limit: int) -> None:
        """Set how many old ReplicaSets are kept."""
        self._fields["revisionHistoryLimit"] = limit

    def set_progress_deadline_seconds(self, seconds: int) -> None:
        """Set how long a rollout may stand still before the Deployment reports it."""
        self._fields["progressDeadlineSeconds"] = seconds

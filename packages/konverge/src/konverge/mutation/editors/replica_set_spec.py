"""The spec of a ReplicaSet."""

from __future__ import annotations

from konverge.mutation.editors.editor import Editor

__all__ = ["ReplicaSetSpecEditor"]


class ReplicaSetSpecEditor(Editor):
    """Edits a ReplicaSet's ``spec`` outside the pod template."""

    __slots__ = ()

    def set_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self._fields["replicas"] = replicas

    def set_min_ready_seconds(self, seconds: int) -> None:
        """Set how long a pod must be ready before it counts as available."""
        self._fields["minReadySeconds"] = seconds

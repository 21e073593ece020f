"""The spec of a StatefulSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json

__all__ = ["StatefulSetSpecEditor"]


class StatefulSetSpecEditor(Editor):
    """Edits a StatefulSet's ``spec`` outside the pod template and the volume claim templates."""

    __slots__ = ()

    def set_replicas(self, replicas: int) -> None:
        """Set how many pods are wanted."""
        self._fields["replicas"] = replicas

    def set_service_name(self, name: str) -> None:
        """Set the headless Service that names the pods; immutable once created."""
        self._fields["serviceName"] = name

    def set_pod_management_policy(self, policy: str) -> None:
        """``OrderedReady`` or ``Parallel``; immutable once created."""
        self._fields["podManagementPolicy"] = policy

    def set_update_strategy(self, strategy: Mapping[str, Any]) -> None:
        """Replace the update strategy: ``{"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}``.

        The server refuses to make a live object ``OnDelete`` whose ``rollingUpdate`` it filled in itself, because no
        apply can take away what it does not own: apply an explicit ``rollingUpdate`` first.
        """
        self._fields["updateStrategy"] = copy_json(strategy)

    def set_revision_history_limit(self, limit: int) -> None:
        """Set how many old revisions are kept."""
        self._fields["revisionHistoryLimit"] = limit

    def set_min_ready_seconds(self, seconds: int) -> None:
        """Set how long a pod must be ready before it counts as available."""
        self._fields["minReadySeconds"] = seconds

    def set_persistent_volume_claim_retention_policy(self, policy: Mapping[str, Any]) -> None:
        """Set what happens to the claims: ``{"whenDeleted": "Retain", "whenScaled": "Delete"}``."""
        self._fields["persistentVolumeClaimRetentionPolicy"] = copy_json(policy)

"""The spec of a DaemonSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json

__all__ = ["DaemonSetSpecEditor"]


class DaemonSetSpecEditor(Editor):
    """Edits a DaemonSet's ``spec`` outside the pod template."""

    __slots__ = ()

    def set_update_strategy(self, strategy: Mapping[str, Any]) -> None:
        """Replace the update strategy: ``{"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}``."""
        self._fields["updateStrategy"] = copy_json(strategy)

    def set_min_ready_seconds(self, seconds: int) -> None:
        """Set how long a pod must be ready before it counts as available."""
        self._fields["minReadySeconds"] = seconds

    def set_revision_history_limit(self, limit: int) -> None:
        """Set how many old revisions are kept."""
        self._fields["revisionHistoryLimit"] = limit

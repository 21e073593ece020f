"""The spec of a PodDisruptionBudget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json

__all__ = ["PodDisruptionBudgetSpecEditor"]


class PodDisruptionBudgetSpecEditor(Editor):
    """Edits a PodDisruptionBudget's ``spec``.

    The API takes only one of minAvailable and maxUnavailable: clear one before setting the other.
    """

    __slots__ = ()

    def set_min_available(self, pods: int | str) -> None:
        """Set how many pods must stay: a number, or a share such as ``50%``."""
        self._fields["minAvailable"] = pods

    def set_max_unavailable(self, pods: int | str) -> None:
        """Set how many pods may be gone: a number, or a share such as ``50%``."""
        self._fields["maxUnavailable"] = pods

    def clear_min_available(self) -> None:
        """No longer say how many must stay."""
        self._fields.pop("minAvailable", None)

    def clear_max_unavailable(self) -> None:
        """No longer say how many may be gone."""
        self._fields.pop("maxUnavailable", None)

    def set_selector(self, selector: Mapping[str, Any]) -> None:
        """Replace which pods it is for; an empty selector is all of the namespace."""
        self._fields["selector"] = copy_json(selector)

    def set_unhealthy_pod_eviction_policy(self, policy: str) -> None:
        """Set when pods that are not ready may be evicted: ``IfHealthyBudget`` or ``AlwaysAllow``."""
        self._fields["unhealthyPodEvictionPolicy"] = policy

    def clear_unhealthy_pod_eviction_policy(self) -> None:
        """Leave pods that are not ready to the API's default."""
        self._fields.pop("unhealthyPodEvictionPolicy", None)

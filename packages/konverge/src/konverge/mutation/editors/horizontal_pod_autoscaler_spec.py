"""The spec of a HorizontalPodAutoscaler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge.mutation.editors.editor import Editor
from konverge.mutation.field_editing import copy_json, remove_items, set_item

__all__ = ["HorizontalPodAutoscalerSpecEditor"]

# Where a metric of each type has its source, and which of the source's fields tell it from others of the type.
_SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Resource": ("resource", ()),
    "ContainerResource": ("containerResource", ("container",)),
    "Pods": ("pods", ()),
    "External": ("external", ()),
    "Object": ("object", ("describedObject",)),
}


class HorizontalPodAutoscalerSpecEditor(Editor):
    """Edits the ``spec`` of an ``autoscaling/v2`` HorizontalPodAutoscaler."""

    __slots__ = ()

    def set_scale_target_ref(self, target: Mapping[str, str]) -> None:
        """Replace what is scaled: ``{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}``."""
        self._fields["scaleTargetRef"] = dict(target)

    def set_min_replicas(self, replicas: int) -> None:
        """Set the fewest replicas."""
        self._fields["minReplicas"] = replicas

    def set_max_replicas(self, replicas: int) -> None:
        """Set the most replicas."""
        self._fields["maxReplicas"] = replicas

    def ensure_metric(self, metric: Mapping[str, Any]) -> None:
        """Replace the same metric, else append it; its target plays no part in which one is the same.

        The same is one of the same type and name, and beside those of the same container (``ContainerResource``), of
        the same selector (``Pods``, ``External``), of the same described object and selector (``Object``).

        Raises:
            ValueError: It has no type that the API knows, or no name.
        """
        wanted = _metric_identity(metric)
        if wanted is None:
            known = ", ".join(_SOURCES)
            raise ValueError(
                f"a metric needs a type ({known}), and its source a name (found type={metric.get('type')!r})"
            )
        set_item(self._fields, "metrics", metric, lambda found: _metric_identity(found) == wanted)

    def remove_metric(self, metric_type: str, name: str) -> None:
        """Remove every metric of that type and name, of whatever container, object or selector."""
        remove_items(self._fields, "metrics", lambda found: (_metric_identity(found) or ())[:2] == (metric_type, name))

    def set_behavior(self, behavior: Mapping[str, Any] | None) -> None:
        """Replace how fast it scales up and down; None for the API's defaults."""
        if behavior is None:
            self._fields.pop("behavior", None)
        else:
            self._fields["behavior"] = copy_json(behavior)


def _metric_identity(metric: Any) -> tuple[str, str, Any] | None:
    """Type, name, and everything else that tells the metric from others; None when it has no type or name."""
    metric_type = metric.get("type") if isinstance(metric, Mapping) else None
    if not isinstance(metric_type, str) or metric_type not in _SOURCES:
        return None
    field, distinguishing = _SOURCES[metric_type]
    source = metric.get(field)
    if not isinstance(source, Mapping):
        return None
    # What is measured of resources has its name in the source itself; all else is a named metric, perhaps selected.
    measured = source if field in ("resource", "containerResource") else source.get("metric")
    if not isinstance(measured, Mapping):
        return None
    name = measured.get("name")
    if not isinstance(name, str) or not name:
        return None
    return metric_type, name, copy_json([measured.get("selector"), *(source.get(each) for each in distinguishing)])

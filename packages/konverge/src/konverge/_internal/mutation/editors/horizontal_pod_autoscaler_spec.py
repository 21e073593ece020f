"""Editor of the spec of a HorizontalPodAutoscaler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from konverge._internal.mutation.editors.editor import Editor
from konverge._internal.mutation.field_editing import copy_json, remove_items, set_item

if TYPE_CHECKING:
    from konverge.types import autoscaling_v2

__all__ = ["HorizontalPodAutoscalerSpecEditor", "HorizontalPodAutoscalerSpecFields"]

# For each metric type: the field of its source, and the fields of the source that belong to the metric's identity.
_SOURCES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "Resource": ("resource", ()),
    "ContainerResource": ("containerResource", ("container",)),
    "Pods": ("pods", ()),
    "External": ("external", ()),
    "Object": ("object", ("describedObject",)),
}


class HorizontalPodAutoscalerSpecFields(TypedDict, total=False):
    """Fields of an ``autoscaling/v2`` HorizontalPodAutoscalerSpec."""

    behavior: autoscaling_v2.HorizontalPodAutoscalerBehavior | None
    maxReplicas: int
    metrics: list[autoscaling_v2.MetricSpec] | None
    minReplicas: int | None
    scaleTargetRef: autoscaling_v2.CrossVersionObjectReference


class HorizontalPodAutoscalerSpecEditor(Editor):
    """Edits the ``spec`` of an ``autoscaling/v2`` HorizontalPodAutoscaler."""

    __slots__ = ()

    def set(self, **fields: Unpack[HorizontalPodAutoscalerSpecFields]) -> None:
        """Set these fields to copies of the values; None removes a field."""
        self._set_fields(fields, HorizontalPodAutoscalerSpecFields.__optional_keys__)

    def ensure_metric(self, metric: Mapping[str, Any]) -> None:
        """Replace the metric with the same identity, else append it; the target does not belong to the identity.

        The identity is the type and the name. The container (``ContainerResource``), the selector (``Pods``,
        ``External``), or the described object and the selector (``Object``) belong to it, too.

        Raises:
            ValueError: The metric has no name or no type that the API defines.
        """
        identity = _metric_identity(metric)
        if identity is None:
            raise ValueError(
                f"metric: expected a type ({', '.join(_SOURCES)}) and a source with a name, "
                f"found type={metric.get('type')!r}"
            )
        set_item(self._fields, "metrics", metric, lambda other: _metric_identity(other) == identity)

    def remove_metric(self, metric_type: str, name: str) -> None:
        """Remove every metric of this type and name, whatever its container, object or selector is."""
        remove_items(
            self._fields, "metrics", lambda metric: (_metric_identity(metric) or ())[:2] == (metric_type, name)
        )


def _metric_identity(metric: Any) -> tuple[str, str, Any] | None:
    """Return the type, the name and the other identifying values; None if the type or the name is missing."""
    metric_type = metric.get("type") if isinstance(metric, Mapping) else None
    if not isinstance(metric_type, str) or metric_type not in _SOURCES:
        return None
    field, distinguishing = _SOURCES[metric_type]
    source = metric.get(field)
    if not isinstance(source, Mapping):
        return None
    # Resource metrics have the name in the source; all others in its `metric`, which may also have a selector.
    measured = source if field in ("resource", "containerResource") else source.get("metric")
    if not isinstance(measured, Mapping):
        return None
    name = measured.get("name")
    if not isinstance(name, str) or not name:
        return None
    return metric_type, name, copy_json([measured.get("selector"), *(source.get(field) for field in distinguishing)])

"""The selection of a request: one namespace or all, labels, and fields."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.selectors import FieldSelector, LabelSelector, SelectorSyntaxError
from konverge.errors import BadRequestError
from konverge_cluster._internal.embedded.resource_registry import ServedResource

__all__ = ["Selection"]

# Fields whose text differs from the value at that path.
_EVENT_SOURCE = "source"
_ANY_LABELS = LabelSelector()
_ANY_FIELDS = FieldSelector()


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a list, a watch or a delete of a collection selects.

    Attributes:
        namespace: The namespace; empty for all.
        labels: The label selector.
        fields: The field selector.
    """

    namespace: str = ""
    labels: LabelSelector = _ANY_LABELS
    fields: FieldSelector = _ANY_FIELDS

    @classmethod
    def parse(
        cls, resource: ServedResource, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Selection:
        """Parse the selectors of a request.

        Raises:
            BadRequestError: A selector is invalid, or names a field that the resource does not support.
        """
        try:
            labels, fields = LabelSelector.parse(label_selector), FieldSelector.parse(field_selector)
        except SelectorSyntaxError as error:
            raise BadRequestError(str(error)) from None
        for requirement in fields.requirements:
            if requirement.field not in ("metadata.name", "metadata.namespace", *resource.selectable_fields):
                raise BadRequestError(_format_unsupported_field(resource, requirement.field))
        return cls(namespace, labels, _to_stored_fields(fields, resource))

    def matches(self, obj: Object) -> bool:
        """Return True if the selection includes this object, given in its stored form."""
        metadata = obj["metadata"]
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        if self.labels.requirements and not self.labels.matches(metadata.get("labels") or {}):
            return False
        return not self.fields.requirements or self.fields.matches(lambda path: _get_text(obj, path))


def _to_stored_fields(fields: FieldSelector, resource: ServedResource) -> FieldSelector:
    conversion = resource.conversion
    if conversion is None:
        return fields
    return FieldSelector(
        tuple(replace(entry, field=conversion.to_stored_path(entry.field)) for entry in fields.requirements)
    )


def _format_unsupported_field(resource: ServedResource, field: str) -> str:
    if resource.selectable_fields or resource.is_custom:
        return f"field label not supported: {field}"
    supported = ", ".join(f'"{name}"' for name in ("metadata.name", "metadata.namespace", *resource.selectable_fields))
    return f'"{field}" is not a known field selector: only {supported}'


def _get_text(obj: Object, path: str) -> str:
    value: Any = obj
    for step in path.removeprefix(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if path == _EVENT_SOURCE and isinstance(value, dict):
        return str(value.get("component") or obj.get("reportingComponent") or "")
    return "" if value is None else str(value)

"""The Python class of a custom resource that a box declares."""

from __future__ import annotations

from typing import Any

from konverge._internal.crd import PrintColumn, UnstructuredResource, unstructured_resource
from konverge._internal.kube import Object
from konverge._internal.mutation import copy_json
from konverge.errors import BuildError
from konverge_box._internal.file import CustomResource, complete_schema
from konverge_box._internal.file.model import ResourceType
from konverge_box._internal.steps.object_paths import split_path

__all__ = ["build_resource_class"]

_OPEN = "x-kubernetes-preserve-unknown-fields"
_COLUMN_TYPES = ("string", "integer", "number", "boolean", "date")


def build_resource_class(declared: CustomResource) -> type[UnstructuredResource]:
    """Build the class of a custom resource, with the schema of the file if there is one.

    The schema of the status accepts every field of ``status.fields``, also fields that the file's schema does not have.

    Raises:
        konverge.errors.BuildError: No server would accept its CustomResourceDefinition.
    """
    resource = declared.resource
    schema: dict[Any, Object] | None = None
    if resource.schema is not None:
        schema = {part: complete_schema(declared_part) for part, declared_part in resource.schema.items()}
        schema["status"] = _build_status_schema(
            schema.get("status", {}), [field.path for field in declared.status.fields]
        )
    columns = [
        _build_column(resource, number, column) for number, column in enumerate(resource.additional_printer_columns)
    ]
    return unstructured_resource(
        resource.gvk,
        schema,
        plural=resource.plural,
        scope=resource.scope,
        short_names=resource.short_names,
        categories=resource.categories,
        **({"print_columns": columns} if columns else {}),
    )


def _build_status_schema(schema: Object, paths: list[str]) -> Object:
    completed: Object = {"type": "object", **copy_json(schema)}
    completed.setdefault("properties", {})
    completed["properties"].pop("conditions", None)  # the framework adds its own
    completed["properties"]["observedGeneration"] = {"type": "integer", "format": "int64"}
    completed[_OPEN] = True
    for path in paths:
        _allow_unknown_fields(completed, split_path(path))
    return completed


def _allow_unknown_fields(node: Object, keys: tuple[str, ...]) -> None:
    """Make the schema accept the field, and any content of its value where the schema does not describe the content."""
    for key in keys:
        properties = node.get("properties")
        if not isinstance(properties, dict) or key not in properties:
            break
        node = properties[key]
    is_undescribed = not ({"properties", "additionalProperties"} & node.keys())
    if node.get("type") == "object" and (is_undescribed or keys):
        node[_OPEN] = True


def _build_column(resource: ResourceType, number: int, column: dict[str, Any]) -> PrintColumn:
    where = f"custom resource {resource.kind}"
    path = f"additionalPrinterColumns[{number}]"
    unknown = sorted(column.keys() - {"name", "type", "jsonPath", "description", "priority", "format"})
    errors = [f"{path}.{name}: unknown field" for name in unknown]
    errors += [f"{path}.{name} is missing" for name in ("name", "type", "jsonPath") if not column.get(name)]
    if column.get("type") not in (None, *_COLUMN_TYPES):
        errors.append(f"{path}.type: expected one of {', '.join(_COLUMN_TYPES)}, found {column['type']!r}")
    if errors:
        raise BuildError(where, errors)
    return PrintColumn(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )

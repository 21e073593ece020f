"""From a custom resource of a file to the class under which the framework knows it."""

from __future__ import annotations

from typing import Any

from konverge.crd import PrintColumn, UnstructuredResource, unstructured_resource
from konverge.errors import BuildError
from konverge.kube import Object
from konverge.mutation import copy_json
from konverge_box.file import CustomResource, complete_schema
from konverge_box.file.model import ResourceType
from konverge_box.steps.object_paths import split_path

__all__ = ["build_resource_class"]

_OPEN = "x-kubernetes-preserve-unknown-fields"
_COLUMN_TYPES = ("string", "integer", "number", "boolean", "date")


def build_resource_class(declared: CustomResource) -> type[UnstructuredResource]:
    """The class of a custom resource; with the schema of the file if it has one.

    Its status takes whatever ``status.fields`` writes, whether the schema knows the field or not.

    Raises:
        konverge.errors.BuildError: No server would take its definition.
    """
    resource = declared.resource
    schema: dict[Any, Object] | None = None
    if resource.schema is not None:
        schema = {part: complete_schema(found) for part, found in resource.schema.items()}
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
    found: Object = {"type": "object", **copy_json(schema)}
    found.setdefault("properties", {})
    found["properties"].pop("conditions", None)  # the framework's own
    found["properties"]["observedGeneration"] = {"type": "integer", "format": "int64"}
    found[_OPEN] = True
    for path in paths:
        _allow_unknown_fields(found, split_path(path))
    return found


def _allow_unknown_fields(node: Object, keys: tuple[str, ...]) -> None:
    """Let the schema take the field, and whatever its value has in it where the schema is silent about that."""
    for key in keys:
        properties = node.get("properties")
        if not isinstance(properties, dict) or key not in properties:
            break
        node = properties[key]
    is_silent = not ({"properties", "additionalProperties"} & node.keys())
    if node.get("type") == "object" and (is_silent or keys):
        node[_OPEN] = True


def _build_column(resource: ResourceType, number: int, column: dict[str, Any]) -> PrintColumn:
    where = f"custom resource {resource.kind}"
    place = f"additionalPrinterColumns[{number}]"
    unknown = sorted(column.keys() - {"name", "type", "jsonPath", "description", "priority", "format"})
    mistakes = [f"{place}.{name}: no field of a column" for name in unknown]
    mistakes += [f"{place}.{name} is missing" for name in ("name", "type", "jsonPath") if not column.get(name)]
    if column.get("type") not in (None, *_COLUMN_TYPES):
        mistakes.append(f"{place}.type: expected one of {', '.join(_COLUMN_TYPES)}, found {column['type']!r}")
    if mistakes:
        raise BuildError(where, mistakes)
    return PrintColumn(
        name=column["name"],
        type=column["type"],
        json_path=column["jsonPath"],
        description=column.get("description", ""),
        priority=column.get("priority", 0),
    )

"""Checks of a simulation against its box: fields of custom resources, and conditions that the box writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object
from konverge_box._internal.file import CustomResource, OperatorBox
from konverge_box._internal.file.crd_schemas import find_unknown_field
from konverge_box._internal.file.schema_references import build_status_schema
from konverge_box._internal.file.schema_values import find_value_errors
from konverge_box._internal.file.validation_errors import Path, format_hint
from konverge_box._internal.runtime.box_conditions import READY, VALIDATION_FAILED, VALIDATION_WARNING
from konverge_box._internal.simulation.simulation_model import ExpectedObject
from konverge_box._internal.steps.resource_groups import ResourceGroups

__all__ = ["BoxReferences"]


class BoxReferences:
    """The kinds, fields and conditions of a box to which a simulation can refer.

    Args:
        box: The box of the simulation.
    """

    def __init__(self, box: OperatorBox) -> None:
        self._box = box
        self._declared = {declared.resource.gvk: declared for declared in box.spec.crds.values()}
        self._conditions: dict[GroupVersionKind, set[str]] = {}

    def find_object_errors(self, gvk: GroupVersionKind, obj: Object, path: Path) -> Iterator[tuple[Path, str]]:
        """Yield the errors of a custom resource, or of a patch of one, by its schema: each has its path and message.

        Args:
            gvk: The kind of the object; other kinds than the box's custom resources have no errors.
            obj: The object or the patch.
            path: Its path in the file.
        """
        schemas = self._build_schemas(gvk)
        for part in ("spec", "status"):
            if part in obj:
                yield from find_value_errors(obj[part], schemas.get(part), (*path, part))

    def add_conditions(self, gvk: GroupVersionKind, obj: Object) -> None:
        """Accept the conditions that an object or patch of the simulation contains."""
        status = obj.get("status")
        conditions = status.get("conditions") if isinstance(status, Mapping) else None
        for condition in conditions if isinstance(conditions, list) else ():
            if isinstance(condition, Mapping):
                self._conditions.setdefault(gvk, set()).add(str(condition.get("type")))

    def find_expectation_errors(
        self, gvk: GroupVersionKind, expected: ExpectedObject, path: Path
    ) -> Iterator[tuple[Path, str]]:
        """Yield the errors of an expected custom resource, each with its path and message.

        Args:
            gvk: The kind of the object; other kinds than the box's custom resources have no errors.
            expected: The expected object.
            path: Its path in the file.
        """
        declared = self._declared.get(gvk)
        if declared is None:
            return
        known = self._list_conditions(declared) | self._conditions.get(gvk, set())
        for name in expected.conditions:
            if name not in known:
                hint = format_hint(name, known)
                yield (*path, "conditions", name), f"expected a condition of the box, found {name}{hint}"
        status = self._build_schemas(gvk).get("status")
        for name in expected.status:
            unknown = find_unknown_field(status, (name,))
            if unknown is not None:
                yield (*path, "status", name), f"status.{unknown[0]} is not in the schema{unknown[1]}"

    def _build_schemas(self, gvk: GroupVersionKind) -> Mapping[str, Any]:
        declared = self._declared.get(gvk)
        if declared is None or declared.resource.schema is None:
            return {}
        fields = [{"path": field.path} for field in declared.status.fields]
        entry = {"resource": {"schema": declared.resource.schema}, "status": {"fields": fields}}
        return {"spec": declared.resource.schema.get("spec"), "status": build_status_schema(entry)}

    def _list_conditions(self, declared: CustomResource) -> set[str]:
        groups = ResourceGroups(declared.on_create, declared.on_reconcile, "", self._box.metadata.name)
        providers = {f"{name[0].upper()}{name[1:]}Ready" for name in declared.providers}
        actions = {rule.action for rule in declared.validation}
        rules = {VALIDATION_FAILED: "deny", VALIDATION_WARNING: "warn"}
        return {
            READY,
            *groups.condition_types,
            *providers,
            *(name for name, action in rules.items() if action in actions),
        }

"""Conversion of resources of all kinds: their names, conditions, repetition and lifetime."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from konverge_box._internal.katalog.condition_conversion import NotConvertedError, convert_conditions, convert_each
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import SLEEP, FindingReason, KatalogFields
from konverge_box._internal.katalog.go_template import has_template
from konverge_box._internal.katalog.kind_fields import BODIES, NOT_IN_BODIES
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.value_conversion import MISSING, convert_labels, convert_text_field
from konverge_box._internal.katalog.workload_conversion import convert_pods, label_pods

__all__ = ["KINDS", "NO_COUNTERPART", "WORKLOADS", "convert_for_each", "convert_resources"]

KINDS: dict[str, tuple[str, str]] = {
    "namespaces": ("namespaces", "-ns"),
    "secrets": ("secrets", "-secret"),
    "configMaps": ("configMaps", "-config"),
    "networkPolicies": ("networkPolicies", ""),
    "resourceQuotas": ("resourceQuotas", ""),
    "limitRanges": ("limitRanges", ""),
    "clusterRoles": ("clusterRoles", "-cluster-role"),
    "clusterRoleBindings": ("clusterRoleBindings", "-crb"),
    "serviceAccounts": ("serviceAccounts", "-sa"),
    "roles": ("roles", "-role"),
    "roleBindings": ("roleBindings", "-rolebinding"),
    "custom": ("custom", ""),
    "replicaSets": ("replicaSets", "-replicaset"),
    "deployments": ("deployments", "-deployment"),
    "services": ("services", "-svc"),
    "jobs": ("jobs", "-job"),
    "cronJobs": ("cronJobs", "-cronjob"),
    "statefulSets": ("statefulSets", ""),
    "persistentVolumes": ("persistentVolumes", ""),
    "persistentVolumeClaims": ("persistentVolumeClaims", ""),
    "ingresses": ("ingresses", "-ingress"),
    "hpa": ("horizontalPodAutoscalers", "-hpa"),
    "pdb": ("podDisruptionBudgets", "-pdb"),
    "pods": ("pods", "-pod"),
}
"""The kinds of a Katalog in execution order, with their names in a box and the suffixes of their default names."""

_INERT = FindingReason("a kind without effect", "a Katalog creates nothing for it either", "use custom, or remove it")
_INERT_KINDS = (
    "daemonSets",
    "podTemplates",
    "storageClasses",
    "storageLocations",
    "storagePools",
    "storageBackups",
    "storageSnapshots",
    "storageVolumes",
    "serviceMonitors",
    "priorityClasses",
    "priorityLevelConfigurations",
    "runtimeClasses",
    "podSecurityPolicies",
    "volumes",
    "volumeMounts",
)
NO_COUNTERPART = {
    "git": FindingReason("a step with git", "a box has none", "use a Job"),
    "docker": FindingReason("a step with docker", "a box has none", "use a Job"),
    **dict.fromkeys(_INERT_KINDS, _INERT),
}
"""Steps and kinds without a counterpart."""

WORKLOADS = ("deployments", "replicaSets", "statefulSets", "pods", "jobs", "cronJobs")
"""The kinds with pods."""

_CLUSTER_SCOPED = ("namespaces", "clusterRoles", "clusterRoleBindings", "persistentVolumes")


def convert_resources(
    fields: KatalogFields, kind: str, known: KnownFields, *, is_on_create: bool
) -> list[dict[str, Any]]:
    """Convert the resources of one kind; add findings for those without a counterpart."""
    otherwise = FindingReason("a resource", "a required part has no counterpart", "see its findings")
    make = partial(_convert_resource, kind=kind, known=known, is_on_create=is_on_create)
    return [made for _, made in convert_each(fields.take_items(kind), make, otherwise)]


def convert_for_each(fields: KatalogFields, known: KnownFields) -> tuple[dict[str, Any], KnownFields]:
    """Convert ``forEach`` of an entry; also return the known fields of its templates.

    Raises:
        NotConvertedError: It has no counterpart; its finding exists.
    """
    if "forEach" not in fields:
        return {}, known
    block = fields.take_mapping("forEach")
    field = (block.take_text("field", may_be_template=True) or "").removeprefix(".")
    name = block.take_text("as") or "item"
    block.report_remaining()
    if not field or has_template(field):
        fields.reject_field("forEach", "a repetition", "its field is not a path", "write a path such as spec.hosts")
        raise NotConvertedError
    item, value = known.find_item_types(tuple(field.split(".")))
    items = {**known.items, "item": item, name: item, "index": "number", "value": value}
    made = {"field": field} if name == "item" else {"field": field, "as": name}
    return {"forEach": made}, replace(known, items=items)


def _convert_resource(fields: KatalogFields, kind: str, known: KnownFields, *, is_on_create: bool) -> dict[str, Any]:
    loop, known = convert_for_each(fields, known)
    conditions = convert_conditions(fields, known)
    found = _convert_identity(fields, kind, known) | loop | conditions
    _convert_lifecycle(fields, kind, found, is_on_create=is_on_create)
    found |= BODIES[kind](fields, known) if kind in BODIES else convert_pods(fields, kind, known)
    if kind == "secrets":
        _convert_value_lifetime(fields, found, is_on_create=is_on_create)
    if kind in WORKLOADS and "image" not in found:
        raise NotConvertedError(FindingReason("a workload", "it has no convertible image", "write it by hand"))
    fields.report_remaining(NOT_IN_BODIES.get(kind))
    return found


def _convert_identity(fields: KatalogFields, kind: str, known: KnownFields) -> dict[str, Any]:
    source = fields.take_mapping("metadata") if kind == "custom" else fields
    found: dict[str, Any] = {}
    name = convert_text_field(source, "name", TemplateUse.REQUIRED, known)
    ending = KINDS[kind][1]
    if name is MISSING:
        raise NotConvertedError
    if name is not None:
        found["name"] = name
    elif ending:
        found["name"] = f"{{{{ metadata.name }}}}{ending}"
    namespace = convert_text_field(source, "namespace", TemplateUse.REQUIRED, known)
    if namespace is MISSING:
        raise NotConvertedError
    if namespace is not None and kind in _CLUSTER_SCOPED:
        source.reject_field("namespace", "a namespace", f"{kind} are cluster-scoped", "remove it")
    elif namespace is not None:
        found["namespace"] = namespace
    if kind in ("deployments", "replicaSets", "statefulSets"):
        label_pods(source, found, known)
    elif made := convert_labels(source, "labels", known):
        found["labels"] = made
    if made := convert_labels(source, "annotations", known):
        found["annotations"] = made
    if kind == "custom":
        if source.take_typed("namespaced", bool) is not None:
            source.add_note("namespaced", "the cluster determines whether a kind is namespaced")
        source.report_remaining()
    return found


def _convert_lifecycle(fields: KatalogFields, kind: str, found: dict[str, Any], *, is_on_create: bool) -> None:
    keeps = fields.take_typed("reconcile", bool)
    if keeps and kind == "jobs":
        fields.add_note("reconcile", "a Job runs once, as in a Katalog")
    elif keeps and is_on_create:
        found["reconcile"] = True
    elif keeps is not None:
        fields.add_note("reconcile", "a box always reconciles it" if not is_on_create else "it is created once")
    if fields.take("sleep") is not None:
        fields.notes.add_finding(fields.build_path("sleep"), SLEEP)
    force = fields.take_typed("forceConflict", bool)
    if force is False:
        fields.reject_field(
            "forceConflict",
            "an apply without force",
            "a box always forces the fields that it declares",
            "leave out the field",
        )
    elif force:
        fields.add_note("forceConflict", "a box always forces the fields that it declares")


def _convert_value_lifetime(fields: KatalogFields, found: dict[str, Any], *, is_on_create: bool) -> None:
    """Convert ``once`` and ``rotateAfter``, which apply only where values are kept after their creation."""
    once, after = fields.take_typed("once", bool), fields.take_text("rotateAfter")
    stays = is_on_create and not found.get("reconcile")
    for key, value in (("once", once), ("rotateAfter", after)):
        if value and not stays:
            why = "a Katalog applies it only in onCreate without reconcile"
            fields.reject_field(key, "values that are generated once", why, "move the Secret to onCreate")
        elif value:
            found[key] = value
    if once is False:
        fields.add_note("once", "values follow the declaration")

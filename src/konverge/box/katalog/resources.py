"""Resources of all kinds: what they are called, how often there is one, and what becomes of it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from konverge.box.katalog.bodies import BODIES, NOT_IN_BODIES
from konverge.box.katalog.conditions import NotCarriedError, carried, conditions
from konverge.box.katalog.expressions import Use, has_template
from konverge.box.katalog.findings import SLEEP, Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.values import MISSING, labels, text
from konverge.box.katalog.workloads import label_pods, pods

__all__ = ["KINDS", "NO_COUNTERPART", "WORKLOADS", "for_each", "resources"]

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
"""What they are called there, in the order in which they run; what they are called here; how a name ends by itself."""

_INERT = Why("a kind that is read and left alone", "nothing is made of it there either", "use custom, or remove it")
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
    "git": Why("a step with git", "there is none", "use a Job"),
    "docker": Why("a step with docker", "there is none", "use a Job"),
    **dict.fromkeys(_INERT_KINDS, _INERT),
}
"""Steps and kinds that have no counterpart."""

WORKLOADS = ("deployments", "replicaSets", "statefulSets", "pods", "jobs", "cronJobs")
"""The kinds that have pods."""

_CLUSTER_SCOPED = ("namespaces", "clusterRoles", "clusterRoleBindings", "persistentVolumes")


def resources(fields: Fields, kind: str, known: Known, *, is_on_create: bool) -> list[dict[str, Any]]:
    """The resources of one kind; what has no counterpart is listed."""
    otherwise = Why("a resource", "a part that it needs has no counterpart", "see what is listed for it")
    make = partial(_resource, kind=kind, known=known, is_on_create=is_on_create)
    return [made for _, made in carried(fields.items(kind), make, otherwise)]


def for_each(fields: Fields, known: Known) -> tuple[dict[str, Any], Known]:
    """``forEach`` of something, and what its templates know besides.

    Raises:
        NotCarriedError: It has no counterpart; it is listed.
    """
    if "forEach" not in fields:
        return {}, known
    block = fields.below("forEach")
    field = (block.text("field") or "").removeprefix(".")
    name = block.text("as") or "item"
    block.close()
    if not field or has_template(field):
        fields.refuse("forEach", "a repetition", "its field is no path", "write a path such as spec.hosts")
        raise NotCarriedError
    item, value = known.item_type(tuple(field.split(".")))
    items = {**known.items, "item": item, name: item, "index": "number", "value": value}
    made = {"field": field} if name == "item" else {"field": field, "as": name}
    return {"forEach": made}, replace(known, items=items)


def _resource(fields: Fields, kind: str, known: Known, *, is_on_create: bool) -> dict[str, Any]:
    loop, known = for_each(fields, known)
    asked = conditions(fields, known)
    found = _identity(fields, kind, known) | loop | asked
    _lifecycle(fields, kind, found, is_on_create=is_on_create)
    found |= BODIES[kind](fields, known) if kind in BODIES else pods(fields, kind, known)
    if kind == "secrets":
        _kept_values(fields, found, is_on_create=is_on_create)
    if kind in WORKLOADS and "image" not in found:
        raise NotCarriedError(Why("a workload", "it has no image that is known here", "write it by hand"))
    fields.close(NOT_IN_BODIES.get(kind))
    return found


def _identity(fields: Fields, kind: str, known: Known) -> dict[str, Any]:
    source = fields.below("metadata") if kind == "custom" else fields
    found: dict[str, Any] = {}
    name = text(source, "name", Use.REQUIRED, known)
    ending = KINDS[kind][1]
    if name is MISSING:
        raise NotCarriedError
    if name is not None:
        found["name"] = name
    elif ending:
        found["name"] = f"{{{{ metadata.name }}}}{ending}"
    namespace = text(source, "namespace", Use.REQUIRED, known)
    if namespace is MISSING:
        raise NotCarriedError
    if namespace is not None and kind in _CLUSTER_SCOPED:
        source.refuse("namespace", "a namespace", f"{kind} live in none", "remove it")
    elif namespace is not None:
        found["namespace"] = namespace
    if kind in ("deployments", "replicaSets", "statefulSets"):
        label_pods(source, found, known)
    elif made := labels(source, "labels", known):
        found["labels"] = made
    if made := labels(source, "annotations", known):
        found["annotations"] = made
    if kind == "custom":
        if source.typed("namespaced", bool) is not None:
            source.decide("namespaced", "the cluster says whether a kind has namespaces")
        source.close()
    return found


def _lifecycle(fields: Fields, kind: str, found: dict[str, Any], *, is_on_create: bool) -> None:
    keeps = fields.typed("reconcile", bool)
    if keeps and kind == "jobs":
        fields.decide("reconcile", "a Job runs once, here as there")
    elif keeps and is_on_create:
        found["reconcile"] = True
    elif keeps is not None:
        fields.decide("reconcile", "what stands here is kept so" if not is_on_create else "it is created once")
    if fields.take("sleep") is not None:
        fields.notes.list(fields.at("sleep"), SLEEP)
    force = fields.typed("forceConflict", bool)
    if force is False:
        fields.refuse(
            "forceConflict", "no force", "a box always takes the fields that it declares", "leave out the field"
        )
    elif force:
        fields.decide("forceConflict", "a box always takes the fields that it declares")


def _kept_values(fields: Fields, found: dict[str, Any], *, is_on_create: bool) -> None:
    """``once`` and ``rotateAfter``, which count only where values stay as made."""
    once, after = fields.typed("once", bool), fields.text("rotateAfter")
    stays = is_on_create and not found.get("reconcile")
    for key, value in (("once", once), ("rotateAfter", after)):
        if value and not stays:
            why = "it counts only in onCreate without reconcile, there as well"
            fields.refuse(key, "values that are made once", why, "move the Secret to onCreate")
        elif value:
            found[key] = value
    if once is False:
        fields.decide("once", "values follow what is declared")

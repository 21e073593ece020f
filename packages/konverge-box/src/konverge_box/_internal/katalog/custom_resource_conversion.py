"""Conversion of one custom resource of a Katalog, whose fields move between schema generations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from konverge._internal.kube.yaml_loader import load_yaml_documents
from konverge_box._internal.file.yaml_source import MAX_BYTES
from konverge_box._internal.katalog.call_conversion import convert_calls
from konverge_box._internal.katalog.deletion_conversion import convert_deletion
from konverge_box._internal.katalog.findings import FindingReason, KatalogFields
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.resource_conversion import WORKLOADS
from konverge_box._internal.katalog.rule_conversion import convert_mutations, convert_validations
from konverge_box._internal.katalog.step_conversion import (
    convert_groups,
    convert_normalize,
    convert_observations,
    convert_providers,
    convert_status,
)
from konverge_box._internal.katalog.workload_conversion import OWNER_LABEL

__all__ = ["KatalogContext", "convert_custom_resource", "to_identifier"]

_DEFINITION = "CustomResourceDefinition"
_WORKERS = 100
_RESYNC = "30s"
"""The time between reconciles without an event in a Katalog that does not set it."""
_PROFILES = {"high-throughput": {"workers": 10, "resync": "5m"}}

_GO = FindingReason(
    "code in Go", "a box contains no code", "write an operator in Python, or call a service with external"
)
_GATE = FindingReason("a gate before reconciles", "each change triggers a reconcile", "set pause to the opposite")
_NAMESPACES = FindingReason("a selection of namespaces", "a box does not select them", "run it with --namespace")
_SCALE = FindingReason("workers by load", "the number of workers is fixed", "set reconcile.workers")
_UNFINISHED = FindingReason("a rollback", "a box has none", "keep the version in the custom resource, and reset it")
_WEBHOOKS = FindingReason("webhooks", "a box serves none", "use an admission policy of the cluster")
_SERVING = FindingReason("a form for users", "a box has no user interface", "apply custom resources with any client")
_ENRICH = FindingReason("more data of children", "a box reads only the children themselves", "read more with cross")
_REQUEUE = FindingReason(
    "a reconcile after a delay", "conditions of time schedule their reconciles", "use a condition of time, or resync"
)
_QUEUE = FindingReason("a setting of the queue", "konverge's queue has one entry per object", "remove it")
_EVENTS = FindingReason("custom events", "konverge records only its own events", "write a field of the status")
_OBSERVE = FindingReason("a watch of other objects", "a box watches the objects of cross", "read it with cross")

_ENTRY = {
    "alias": _GO,
    "enrich": _ENRICH,
    "enrichAll": _ENRICH,
    "restrictedNamespaces": _NAMESPACES,
    "allowedNamespaces": _NAMESPACES,
    "namespace": _NAMESPACES,
    "conversion": FindingReason(
        "conversion between versions", "a box has one version", "serve conversion with an operator in Python"
    ),
    "webhooks": _WEBHOOKS,
    "removeFinalizers": FindingReason(
        "the removal of finalizers", "a box removes only its own", "remove them with kubectl"
    ),
    "deletionProtection": FindingReason(
        "deletion protection", "a box has none", "use an admission policy of the cluster"
    ),
    "imports": FindingReason("motifs", "a box does not support motifs", "write their resources into the file"),
    "serve": _SERVING,
    "labels": FindingReason(
        "labels of custom resources", "a box does not change them", "set them where custom resources are created"
    ),
    "ignoreStatusPatch": FindingReason("no status", "a box always writes its conditions", "ignore them"),
    "ignoreObservedGeneration": FindingReason("no observedGeneration", "conditions always have it", "ignore it"),
    "endpoints": FindingReason(
        "endpoints for one kind", "metrics and probes cover all kinds", "see --metrics and --probes"
    ),
    "crFiles": FindingReason("custom resources to apply", "a box contains none", "run kubectl apply -f"),
    "setup": FindingReason("a setup", "a box has none", "run it before the box starts"),
    "katalogName": FindingReason("another Katalog", "a box is one file", "write apiVersion and kind in cross"),
    "katalogNamespace": FindingReason("another Katalog", "a box is one file", "write apiVersion and kind in cross"),
}
_BOX = {
    "preReconcile": _GATE,
    "enqueueGate": _GATE,
    "reconcileGate": _GATE,
    "gate": _GATE,
    "autoscale": _SCALE,
    "rollback": _UNFINISHED,
    "rollBackOnError": _UNFINISHED,
    "events": _EVENTS,
    "cleanup": FindingReason(
        "the deletion of finished objects", "a box deletes no custom resources", "use a Job, or a time to live"
    ),
    "hooks": _GO,
    "constructor": _GO,
    "when": FindingReason("conditions of the whole box", "only steps have conditions", "put them on the groups"),
    "or": FindingReason("conditions of the whole box", "only steps have conditions", "put them on the groups"),
    "anyOf": FindingReason("conditions of the whole box", "only steps have conditions", "put them on the groups"),
    "requeue": _REQUEUE,
    "remote": _GO,
    "profile": FindingReason("a profile of the reconciler", "its values are unknown", "set workers and resync"),
    "include": FindingReason("another file", "a box is one file", "copy its content here, and import again"),
    "queue": _QUEUE,
    "watch": _OBSERVE,
    "restrictedNamespaces": _NAMESPACES,
    "allowedNamespaces": _NAMESPACES,
    "deletionProtection": _ENTRY["deletionProtection"],
    "imports": _ENTRY["imports"],
    "annotations": _ENTRY["labels"],
    "labels": _ENTRY["labels"],
    "enrich": _ENRICH,
    "enrichAll": _ENRICH,
    "conversion": _ENTRY["conversion"],
    "webhooks": _WEBHOOKS,
}
_API = {
    word: FindingReason("a Go type", "a box reads objects without types", "remove it")
    for word in ("location", "object", "objectList", "alias", "apiPath")
}


@dataclass
class KatalogContext:
    """Properties of the whole Katalog that the conversion of an entry uses.

    Args:
        crds: The name of each custom resource in the box, by its name in the Katalog.
        read: Returns the content of a file that the Katalog names; None if it cannot be read.
        notes: The functions that the Katalog defines.
        finalizers: The finalizers of all custom resources.
    """

    crds: dict[str, str]
    read: Callable[[str], bytes | None]
    notes: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


def to_identifier(name: str) -> str:
    """Return a name that expressions can use: ``health-check`` becomes ``healthCheck``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word if not at else word[0].upper() + word[1:] for at, word in enumerate(words))
    identifier = joined[:1].lower() + joined[1:]
    return (identifier if identifier[:1].isalpha() else f"x{identifier}")[:63]


def convert_custom_resource(fields: KatalogFields, around: KatalogContext) -> dict[str, Any] | None:
    """Convert a custom resource; None, with a finding, if it cannot be converted."""
    if fields.take_typed("enabled", bool) is False:
        fields.notes.add_finding(
            fields.path,
            FindingReason("a disabled custom resource", "the Katalog does not run it either", "enable it"),
        )
        return None
    for key in ("labelSelector", "fieldSelector"):
        if key in fields:
            why = "a box reconciles all objects of a kind, not a selection"
            fields.notes.add_finding(
                fields.path, FindingReason(f"a custom resource with {key}", why, "use a separate kind")
            )
            return None
    resource = _convert_resource_type(fields, around)
    if resource is None:
        return None
    places = _EntryMappings(fields)
    renamed = places.find_renamed()
    schema = resource.get("schema")
    spec = schema.get("spec") if isinstance(schema, dict) else None
    known = KnownFields(schema=spec, renamed=renamed, notes=around.notes)
    found: dict[str, Any] = {"resource": resource}
    if depends := _convert_depends_on(fields, around):
        found["dependsOn"] = depends
    if reconcile := _convert_reconcile(places):
        found["reconcile"] = reconcile
    if finalizers := _convert_finalizers(places, around):
        found["finalizers"] = finalizers
    steps: dict[str, Any] = {}
    for holder, step, make in (
        (places.find_mapping("normalize"), "normalize", convert_normalize),
        (places.find_mapping("mutation"), "mutation", convert_mutations),
        (places.find_mapping("validation"), "validation", convert_validations),
    ):
        if holder is not None:
            steps[step] = make(holder.take_mapping(step), known)
    if (holder := places.find_mapping("cross")) is not None:
        steps["cross"] = convert_observations(holder.take_items("cross"), known, around.crds)
    blocks = {
        step: holder.take_mapping(step) for step in ("onReconcile", "onCreate") if (holder := places.find_mapping(step))
    }
    steps["external"] = convert_calls(
        [each for block in blocks.values() for each in block.take_items("external")], known
    )
    for step in ("onCreate", "onReconcile"):
        if step in blocks:
            steps[step] = convert_groups(blocks[step], known, is_on_create=step == "onCreate")
    if (holder := places.find_mapping("providers")) is not None:
        steps["providers"] = convert_providers(holder.take_mapping("providers"), known)
    if (holder := places.find_mapping("status")) is not None:
        steps["status"] = convert_status(holder.take_mapping("status"), known)
    if (holder := places.find_mapping("onDelete")) is not None:
        steps["onDelete"] = convert_deletion(holder.take_mapping("onDelete"), known)
    _add_owner_labels(steps)
    places.close_all()
    return found | {key: value for key, value in steps.items() if value}


class _EntryMappings:
    """The mappings of an entry that may contain a step, in order of precedence."""

    def __init__(self, fields: KatalogFields) -> None:
        self.entry = fields
        self.box = fields.take_mapping("operatorBox")
        self.reconciler = self.box.take_mapping("reconciler")
        self.reconcile = self.box.take_mapping("reconcile")
        self.observe = self.box.take_mapping("observe")
        self.emit = self.box.take_mapping("emit")
        self.runtime = self.box.take_mapping("runtime")
        self.admission = fields.take_mapping("admission")
        self.entry_reconciler = fields.take_mapping("reconciler")
        self.entry_reconcile = fields.take_mapping("reconcile")

    def list_mappings(self) -> tuple[KatalogFields, ...]:
        return (
            self.reconcile,
            self.reconciler,
            self.observe,
            self.emit,
            self.runtime,
            self.admission,
            self.box,
            self.entry_reconcile,
            self.entry_reconciler,
            self.entry,
        )

    def find_mapping(self, key: str) -> KatalogFields | None:
        """Return the mapping that has a field; add findings for further ones."""
        having = [each for each in self.list_mappings() if key in each]
        for other in having[1:]:
            other.take(key)
            why = "the field also has a value in the place of another schema generation"
            other.reject_field(key, "a duplicate field", why, "merge both")
        return having[0] if having else None

    def find_renamed(self) -> dict[tuple[str, str], str]:
        """Return the new names of results whose names expressions cannot use."""
        found: dict[tuple[str, str], str] = {}
        for each in self.list_mappings():
            cross = each.peek("cross")
            for item in cross if isinstance(cross, list) else []:
                _rename_result(found, "cross", item, ("as", "crd"))
            for step in ("onCreate", "onReconcile"):
                block = each.peek(step)
                listed = block.get("external") if isinstance(block, dict) else None
                for item in listed if isinstance(listed, list) else []:
                    _rename_result(found, "external", item, ("name",))
        return found

    def close_all(self) -> None:
        for each in self.list_mappings():
            each.report_remaining(_ENTRY if each is self.entry else _BOX)


def _rename_result(found: dict[tuple[str, str], str], root: str, item: Any, keys: tuple[str, ...]) -> None:
    name = next((item[key] for key in keys if isinstance(item.get(key), str)), "") if isinstance(item, dict) else ""
    if name and to_identifier(name) != name:
        found[root, name] = to_identifier(name)


def _convert_resource_type(fields: KatalogFields, around: KatalogContext) -> dict[str, Any] | None:
    declared = fields.peek("apiTypes")
    api = fields.take_mapping("apiTypes")
    definition = _find_definition(fields, around, _get_mapping(declared))
    group, version = api.take_text("group"), api.take_text("version")
    kind, plural = api.take_text("kind"), api.take_text("plural")
    api.report_remaining(_API)
    mode = fields.take_text("mode")
    if mode == "typed":
        fields.reject_field("mode", "objects as Go types", "a box reads objects without types", "remove it")
    elif mode is not None:
        fields.add_note("mode", "a box always reads objects without types")
    namespaced = fields.take_typed("namespaced", bool)
    fields.take("description")
    if fields.take_typed("crossAccess", bool) is False:
        fields.reject_field(
            "crossAccess",
            "objects hidden from others",
            "all custom resources of a box can observe each other",
            "use another box",
        )
    if fields.take_typed("forceConflict", bool) is False:
        fields.reject_field(
            "forceConflict",
            "an apply without force",
            "a box always forces the fields that it declares",
            "leave out the field",
        )
    found: dict[str, Any] = {}
    if definition is not None:
        spec = _get_mapping(definition.get("spec"))
        names, listed = _get_mapping(spec.get("names")), spec.get("versions")
        versions = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        chosen = next((each for each in versions if each.get("name") == version), None)
        chosen = chosen or next((each for each in versions if each.get("storage")), versions[0] if versions else {})
        if len(versions) > 1:
            fields.reject_field(
                "crdFile",
                "other versions of the kind",
                "a box has one version",
                "use an operator in Python for the others",
            )
        version = version or str(chosen.get("name", ""))
        group, kind = group or str(spec.get("group", "")), kind or str(names.get("kind", ""))
        plural = plural or str(names.get("plural") or "")
        found |= {key: names[key] for key in ("shortNames", "categories") if names.get(key)}
        if spec.get("scope") == "Cluster":
            namespaced = False
        if chosen.get("additionalPrinterColumns"):
            found["additionalPrinterColumns"] = chosen["additionalPrinterColumns"]
        properties = chosen
        for step in ("schema", "openAPIV3Schema", "properties"):
            properties = _get_mapping(properties.get(step))
        schema = {part: properties[part] for part in ("spec", "status") if isinstance(properties.get(part), dict)}
        if schema:
            found["schema"] = schema
    if not (group and version and kind):
        why = "its group, version or kind is unknown"
        fields.notes.add_finding(fields.path, FindingReason("a custom resource", why, "write them in apiTypes"))
        return None
    head: dict[str, Any] = {"apiVersion": f"{group}/{version}", "kind": kind}
    if plural:
        head["plural"] = plural
    if namespaced is False:
        head["scope"] = "Cluster"
    return head | found


def _get_mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _find_definition(fields: KatalogFields, around: KatalogContext, api: Mapping[str, Any]) -> dict[str, Any] | None:
    name = fields.take_text("crdFile")
    if name is None:
        return None
    content = around.read(name)
    try:
        if content is None or len(content) > MAX_BYTES:
            raise ValueError("it does not exist beside the Katalog, is not readable, or is too large")
        return _choose_definition(list(load_yaml_documents(content)), api)
    except (yaml.YAMLError, ValueError) as error:
        why = "it is invalid YAML" if isinstance(error, yaml.YAMLError) else str(error)
        fields.reject_field("crdFile", "the file of a CustomResourceDefinition", why, "write the schema into the box")
        return None


def _choose_definition(documents: list[Any], api: Mapping[str, Any]) -> dict[str, Any]:
    """Return the CustomResourceDefinition of a kind.

    Args:
        documents: The documents of the file.
        api: The group, the kind and the plural, as far as the Katalog has them.

    Raises:
        ValueError: There is none, or it is not certain which one is meant.
    """
    definitions = [each for each in documents if isinstance(each, dict) and each.get("kind") == _DEFINITION]
    if not definitions:
        raise ValueError(f"it contains no {_DEFINITION}")
    fitting = [each for each in definitions if _fits(_get_mapping(each.get("spec")), api)]
    names = [_get_mapping(_get_mapping(each.get("spec")).get("names")) for each in definitions]
    kinds = ", ".join(str(each.get("kind")) for each in names)
    if not fitting:
        raise ValueError(f"it contains no {_DEFINITION} of {api.get('kind') or api.get('plural')}, only of {kinds}")
    if len(fitting) > 1:
        raise ValueError(f"it contains several {_DEFINITION}s ({kinds}), and apiTypes has no kind")
    return fitting[0]


def _fits(spec: Mapping[str, Any], api: Mapping[str, Any]) -> bool:
    names = _get_mapping(spec.get("names"))
    known = {"group": spec.get("group"), "kind": names.get("kind"), "plural": names.get("plural")}
    return all(api.get(key) in (None, value) for key, value in known.items() if value is not None)


def _convert_depends_on(fields: KatalogFields, around: KatalogContext) -> dict[str, Any]:
    value = fields.take("dependsOn")
    if isinstance(value, list):
        value = dict.fromkeys((each for each in value if isinstance(each, str)), "started")
    found: dict[str, Any] = {}
    for name, condition in value.items() if isinstance(value, dict) else ():
        wanted = condition.get("condition", "started") if isinstance(condition, dict) else condition or "started"
        if name not in around.crds or wanted not in ("started", "healthy"):
            why = "it is not a custom resource of this file, or its condition is unknown"
            fields.notes.add_finding(
                (*fields.build_path("dependsOn"), name),
                FindingReason("a dependency", why, "name a custom resource of this file"),
            )
        else:
            found[around.crds[name]] = wanted
    if value is not None and not isinstance(value, dict):
        fields.reject_field("dependsOn", "a dependency", "expected a list or a mapping", "name custom resources")
    return found


def _convert_reconcile(places: _EntryMappings) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (holder := places.find_mapping("profile")) is not None:
        profile = holder.peek("profile")
        if isinstance(profile, str) and profile in _PROFILES:
            holder.take("profile")
            found |= _PROFILES[profile]
    if (holder := places.find_mapping("default")) is not None and holder.take_typed("default", bool) is False:
        holder.notes.add_finding(holder.build_path("default"), _GO)
    if (holder := places.find_mapping("workers")) is not None and (
        workers := holder.take_typed("workers", int)
    ) is not None:
        found["workers"] = min(max(workers, 1), _WORKERS)
    if (holder := places.find_mapping("resync")) is not None and (resync := holder.take_text("resync")) is not None:
        found["resync"] = resync
    found.setdefault("resync", _RESYNC)
    if (holder := places.find_mapping("queue")) is not None:
        queue = holder.take_mapping("queue")
        if (threshold := queue.take_typed("failureThreshold", int)) is not None:
            found["failureThreshold"] = max(threshold, 1)
        queue.report_remaining(dict.fromkeys(("shared", "maxDepth", "retryBackoff", "behaviour"), _QUEUE))
    return found


def _convert_finalizers(places: _EntryMappings, around: KatalogContext) -> list[str]:
    found = list(around.finalizers)
    if (holder := places.find_mapping("finalizers")) is not None:
        found += holder.take_texts("finalizers")
    return list(dict.fromkeys(found))


def _add_owner_labels(steps: dict[str, Any]) -> None:
    """Add the owner label to all pods if any selector of the entry uses it."""
    blocks = [block for step in ("onCreate", "onReconcile") if isinstance(block := steps.get(step), dict)]
    if not any(OWNER_LABEL in str(each) for block in blocks for each in block.values()):
        return
    for block in blocks:
        for kind in WORKLOADS:
            for each in block.get(kind, []):
                pods = each.setdefault("podLabels", {})
                pods.setdefault(OWNER_LABEL, "{{ metadata.name }}")

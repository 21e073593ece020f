"""One custom resource of a Katalog: the same things stand in other places from generation to generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from konverge.box.file.source import MAX_BYTES
from konverge.box.katalog.calls import calls
from konverge.box.katalog.deletion import deletion
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.resources import WORKLOADS
from konverge.box.katalog.rules import mutations, validations
from konverge.box.katalog.steps import groups, normalize, observations, providers, status
from konverge.box.katalog.workloads import OWNER_LABEL
from konverge.kube.yaml_depth import check_yaml_depth
from konverge.kube.yaml_loader import ObjectLoader

__all__ = ["Surroundings", "entry", "identifier"]

_WORKERS = 100
_PROFILES = {"high-throughput": {"workers": 10, "resync": "5m"}}

_GO = Why("code in Go", "a box has no code", "write an operator in Python, or call a service with external")
_GATE = Why("a gate before the pass", "each change makes a pass", "put conditions on the resources")
_NAMESPACES = Why("a choice of namespaces", "a box does not choose them", "run it with --namespace")
_SCALE = Why("workers by load", "workers are a fixed number", "set reconcile.workers")
_UNFINISHED = Why("a way back", "there is none", "keep the version in the custom resource, and set it back")
_WEBHOOKS = Why("webhooks", "a box serves none", "use an admission policy of the cluster")
_SERVING = Why("a form for users", "a box has no user interface", "apply custom resources with any client")
_ENRICH = Why("more about children", "children have what the cluster says of them", "read more with cross")
_REQUEUE = Why("a pass after a time", "conditions of time wake by themselves", "use a condition of time, or resync")
_QUEUE = Why("a setting of the queue", "konverge's queue has one entry for each object", "remove it")
_EVENTS = Why("events of one's own", "konverge records events of its own", "write a field of the status")
_OBSERVE = Why("a watch of other objects", "what cross reads is watched", "read it with cross")

_ENTRY = {
    "alias": _GO,
    "enrich": _ENRICH,
    "enrichAll": _ENRICH,
    "restrictedNamespaces": _NAMESPACES,
    "allowedNamespaces": _NAMESPACES,
    "namespace": _NAMESPACES,
    "conversion": Why(
        "conversion between versions", "a box has one version", "serve conversion with an operator in Python"
    ),
    "webhooks": _WEBHOOKS,
    "removeFinalizers": Why("taking finalizers away", "a box takes away its own alone", "remove them with kubectl"),
    "deletionProtection": Why("protection against deletion", "there is none", "use an admission policy of the cluster"),
    "imports": Why("motifs", "a box imports nothing", "write their resources into the file"),
    "serve": _SERVING,
    "labels": Why("labels of custom resources", "a box writes nothing to them", "set them where they are made"),
    "ignoreStatusPatch": Why("no status", "a box always writes its conditions", "ignore them"),
    "ignoreObservedGeneration": Why("no observedGeneration", "conditions always have it", "ignore it"),
    "endpoints": Why("endpoints for one kind", "metrics and probes are for all", "see --metrics and --probes"),
    "crFiles": Why("custom resources to apply", "a box holds none", "kubectl apply -f them"),
    "setup": Why("a setup", "a box has none", "do it before the box runs"),
    "katalogName": Why("another Katalog", "a box is one file", "write apiVersion and kind in cross"),
    "katalogNamespace": Why("another Katalog", "a box is one file", "write apiVersion and kind in cross"),
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
    "cleanup": Why("deletion of finished objects", "a box deletes no custom resource", "use a Job, or a time to live"),
    "hooks": _GO,
    "constructor": _GO,
    "when": Why("conditions of the whole box", "steps have conditions", "put them on the groups"),
    "or": Why("conditions of the whole box", "steps have conditions", "put them on the groups"),
    "anyOf": Why("conditions of the whole box", "steps have conditions", "put them on the groups"),
    "requeue": _REQUEUE,
    "remote": _GO,
    "profile": Why("a profile of the reconciler", "what it stands for is not known", "set workers and resync"),
    "include": Why("another file", "a box is one file", "copy what stands there to this place, and import again"),
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
    word: Why("a type in Go", "objects are read as they are", "remove it")
    for word in ("location", "object", "objectList", "alias", "apiPath")
}


@dataclass
class Surroundings:
    """What an entry is told of the whole Katalog.

    Args:
        crds: What each custom resource is called here, by its name there.
        read: Gives the content of a file that the Katalog names; None for one that cannot be read.
        notes: The Katalog's own functions.
        finalizers: Of all custom resources.
        comments: What stands above a field of the box, by its path.
    """

    crds: dict[str, str]
    read: Callable[[str], bytes | None]
    notes: Mapping[str, str] = field(default_factory=dict)
    finalizers: tuple[str, ...] = ()


def identifier(name: str) -> str:
    """A name that expressions can use: ``health-check`` is ``healthCheck``."""
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    joined = "".join(word if not at else word[0].upper() + word[1:] for at, word in enumerate(words))
    made = joined[:1].lower() + joined[1:]
    return (made if made[:1].isalpha() else f"x{made}")[:63]


def entry(fields: Fields, around: Surroundings) -> dict[str, Any] | None:
    """The custom resource as a box has it; None for one that is not carried over, which is listed."""
    if fields.typed("enabled", bool) is False:
        fields.notes.list(
            fields.path, Why("a custom resource that is off", "nothing runs for it there either", "turn it on")
        )
        return None
    for key in ("labelSelector", "fieldSelector"):
        if key in fields:
            why = "a box looks after all objects of a kind, and not these alone"
            fields.notes.list(fields.path, Why(f"a custom resource with {key}", why, "use a kind of its own"))
            return None
    resource = _resource(fields, around)
    if resource is None:
        return None
    places = _Places(fields)
    renamed = places.renamed()
    schema = resource.get("schema")
    spec = schema.get("spec") if isinstance(schema, dict) else None
    known = Known(schema=spec, renamed=renamed, notes=around.notes)
    found: dict[str, Any] = {"resource": resource}
    if depends := _depends(fields, around):
        found["dependsOn"] = depends
    if reconcile := _reconcile(places):
        found["reconcile"] = reconcile
    if finalizers := _finalizers(places, around):
        found["finalizers"] = finalizers
    steps: dict[str, Any] = {}
    for holder, step, make in (
        (places.of("normalize"), "normalize", normalize),
        (places.of("mutation"), "mutation", mutations),
        (places.of("validation"), "validation", validations),
    ):
        if holder is not None:
            steps[step] = make(holder.below(step), known)
    if (holder := places.of("cross")) is not None:
        steps["cross"] = observations(holder.items("cross"), known, around.crds)
    blocks = {step: holder.below(step) for step in ("onReconcile", "onCreate") if (holder := places.of(step))}
    steps["external"] = calls([each for block in blocks.values() for each in block.items("external")], known)
    for step in ("onCreate", "onReconcile"):
        if step in blocks:
            steps[step] = groups(blocks[step], known, is_on_create=step == "onCreate")
    if (holder := places.of("providers")) is not None:
        steps["providers"] = providers(holder.below("providers"), known)
    if (holder := places.of("status")) is not None:
        steps["status"] = status(holder.below("status"), known)
    if (holder := places.of("onDelete")) is not None:
        steps["onDelete"] = deletion(holder.below("onDelete"), known)
    _selected_by_owner(steps)
    places.close()
    return found | {key: value for key, value in steps.items() if value}


class _Places:
    """The mappings of an entry in which a step may stand, in the order in which the first one counts."""

    def __init__(self, fields: Fields) -> None:
        self.entry = fields
        self.box = fields.below("operatorBox")
        self.reconciler = self.box.below("reconciler")
        self.reconcile = self.box.below("reconcile")
        self.observe = self.box.below("observe")
        self.emit = self.box.below("emit")
        self.runtime = self.box.below("runtime")
        self.admission = fields.below("admission")

    def all(self) -> tuple[Fields, ...]:
        return (
            self.reconcile,
            self.reconciler,
            self.observe,
            self.emit,
            self.runtime,
            self.admission,
            self.box,
            self.entry,
        )

    def of(self, key: str) -> Fields | None:
        """Who has a field; where several do, the others are listed."""
        having = [each for each in self.all() if key in each]
        for other in having[1:]:
            other.take(key)
            why = "it stands in the place of another generation as well"
            other.refuse(key, "a second one of its kind", why, "put both into one place")
        return having[0] if having else None

    def renamed(self) -> dict[tuple[str, str], str]:
        """Names of results that expressions cannot use."""
        found: dict[tuple[str, str], str] = {}
        for each in self.all():
            cross = each.peek("cross")
            for item in cross if isinstance(cross, list) else []:
                _rename(found, "cross", item, ("as", "crd"))
            for step in ("onCreate", "onReconcile"):
                block = each.peek(step)
                listed = block.get("external") if isinstance(block, dict) else None
                for item in listed if isinstance(listed, list) else []:
                    _rename(found, "external", item, ("name",))
        return found

    def close(self) -> None:
        for each in self.all():
            each.close(_ENTRY if each is self.entry else _BOX)


def _rename(found: dict[tuple[str, str], str], root: str, item: Any, keys: tuple[str, ...]) -> None:
    name = next((item[key] for key in keys if isinstance(item.get(key), str)), "") if isinstance(item, dict) else ""
    if name and identifier(name) != name:
        found[root, name] = identifier(name)


def _resource(fields: Fields, around: Surroundings) -> dict[str, Any] | None:
    api = fields.below("apiTypes")
    definition = _definition(fields, around)
    group, version = api.text("group"), api.text("version")
    kind, plural = api.text("kind"), api.text("plural")
    api.close(_API)
    mode = fields.text("mode")
    if mode == "typed":
        fields.refuse("mode", "objects as Go types", "objects are read as they are", "remove it")
    elif mode is not None:
        fields.decide("mode", "objects are always read as they are")
    namespaced = fields.typed("namespaced", bool)
    fields.take("description")
    if fields.typed("crossAccess", bool) is False:
        fields.refuse(
            "crossAccess", "objects that others cannot observe", "all of a file can", "put it into another box"
        )
    if fields.typed("forceConflict", bool) is False:
        fields.refuse(
            "forceConflict", "no force", "a box always takes the fields that it declares", "leave out the field"
        )
    found: dict[str, Any] = {}
    if definition is not None:
        spec = _mapping(definition.get("spec"))
        names, listed = _mapping(spec.get("names")), spec.get("versions")
        versions = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        chosen = next((each for each in versions if each.get("name") == version), None)
        chosen = chosen or next((each for each in versions if each.get("storage")), versions[0] if versions else {})
        if len(versions) > 1:
            fields.refuse("crdFile", "other versions of the kind", "a box has one version", "serve the others yourself")
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
            properties = _mapping(properties.get(step))
        schema = {part: properties[part] for part in ("spec", "status") if isinstance(properties.get(part), dict)}
        if schema:
            found["schema"] = schema
    if not (group and version and kind):
        why = "its group, version and kind are not all known"
        fields.notes.list(fields.path, Why("a custom resource", why, "write them in apiTypes"))
        return None
    head: dict[str, Any] = {"apiVersion": f"{group}/{version}", "kind": kind}
    if plural:
        head["plural"] = plural
    if namespaced is False:
        head["scope"] = "Cluster"
    return head | found


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _definition(fields: Fields, around: Surroundings) -> dict[str, Any] | None:
    name = fields.text("crdFile")
    if name is None:
        return None
    content = around.read(name)
    try:
        if content is None or len(content) > MAX_BYTES:
            raise ValueError("it is not beside the Katalog, cannot be read, or is too large")
        check_yaml_depth(content)
        for document in yaml.load_all(content, Loader=ObjectLoader):
            if isinstance(document, dict) and document.get("kind") == "CustomResourceDefinition":
                return document
        raise ValueError("it has no CustomResourceDefinition")
    except (yaml.YAMLError, ValueError) as error:
        why = "it is no YAML" if isinstance(error, yaml.YAMLError) else str(error)
        fields.refuse("crdFile", "the file of a CustomResourceDefinition", why, "write the schema into the box")
        return None


def _depends(fields: Fields, around: Surroundings) -> dict[str, Any]:
    value = fields.take("dependsOn")
    if isinstance(value, list):
        value = dict.fromkeys((each for each in value if isinstance(each, str)), "started")
    found: dict[str, Any] = {}
    for name, condition in value.items() if isinstance(value, dict) else ():
        wanted = condition.get("condition", "started") if isinstance(condition, dict) else condition or "started"
        if name not in around.crds or wanted not in ("started", "healthy"):
            why = "it is no custom resource of this file, or waits for something unknown"
            fields.notes.list((*fields.at("dependsOn"), name), Why("what is waited for", why, "name one of the file"))
        else:
            found[around.crds[name]] = wanted
    if value is not None and not isinstance(value, dict):
        fields.refuse("dependsOn", "what is waited for", "expected a list or a mapping", "name custom resources")
    return found


def _reconcile(places: _Places) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if (holder := places.of("profile")) is not None:
        profile = holder.peek("profile")
        if isinstance(profile, str) and profile in _PROFILES:
            holder.take("profile")
            found |= _PROFILES[profile]
    if (holder := places.of("default")) is not None and holder.typed("default", bool) is False:
        holder.notes.list(holder.at("default"), _GO)
    if (holder := places.of("workers")) is not None and (workers := holder.typed("workers", int)) is not None:
        found["workers"] = min(max(workers, 1), _WORKERS)
    if (holder := places.of("resync")) is not None and (resync := holder.text("resync")) is not None:
        found["resync"] = resync
    if (holder := places.of("queue")) is not None:
        queue = holder.below("queue")
        if (threshold := queue.typed("failureThreshold", int)) is not None:
            found["failureThreshold"] = max(threshold, 1)
        queue.close(dict.fromkeys(("shared", "maxDepth", "retryBackoff", "behaviour"), _QUEUE))
    return found


def _finalizers(places: _Places, around: Surroundings) -> list[str]:
    found = list(around.finalizers)
    if (holder := places.of("finalizers")) is not None:
        found += [str(each) for each in holder.typed("finalizers", list) or []]
    return list(dict.fromkeys(found))


def _selected_by_owner(steps: dict[str, Any]) -> None:
    """Give all pods the label of their owner where something selects by it."""
    blocks = [block for step in ("onCreate", "onReconcile") if isinstance(block := steps.get(step), dict)]
    if not any(OWNER_LABEL in str(each) for block in blocks for each in block.values()):
        return
    for block in blocks:
        for kind in WORKLOADS:
            for each in block.get(kind, []):
                pods = each.setdefault("podLabels", {})
                pods.setdefault(OWNER_LABEL, "{{ metadata.name }}")

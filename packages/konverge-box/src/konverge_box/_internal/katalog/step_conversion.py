"""Conversion of the other steps of a custom resource's pipeline: all but rules, calls and deletion."""

from __future__ import annotations

from functools import partial
from typing import Any

from konverge_box._internal.katalog.condition_conversion import NotConvertedError, convert_conditions, convert_each
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import FindingReason, KatalogFields
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.resource_conversion import (
    KINDS,
    NO_COUNTERPART,
    convert_for_each,
    convert_resources,
)
from konverge_box._internal.katalog.value_conversion import MISSING, TYPES, convert_text_field, convert_tree

__all__ = ["convert_groups", "convert_normalize", "convert_observations", "convert_providers", "convert_status"]

_PROVIDER_KINDS = {
    ("aws", "s3"): ("Bucket", "bucket"),
    ("aws", "sqs"): ("Queue", "queue"),
    ("postgres", "database"): ("Database", "name"),
    ("postgres", "user"): ("Role", "name"),
    ("postgres", "role"): ("Role", "name"),
}


def convert_normalize(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert the step ``normalize`` of a Katalog, which sets fields of the spec and converts them to types."""
    spec, types = fields.take_mapping("spec"), fields.take_mapping("types")
    made: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for path in types.list_remaining():
        type_ = types.take_text(path) or ""
        if type_ not in TYPES or path not in spec:
            types.reject_field(
                path, "the type of a field", "it is unknown, or the field is not in spec", "declare both"
            )
        else:
            declared[path] = TYPES[type_]
    for path in spec.list_remaining():
        use = TemplateUse.VALUE if path in declared else TemplateUse.PLAIN
        value = convert_tree(spec, spec.take(path), spec.build_path(path), use, known)
        if value is MISSING:
            declared.pop(path, None)
        else:
            made[path] = value
    if fields.take_typed("audit", bool):
        fields.reject_field(
            "audit", "a record of changes", "a box keeps none", "run konverge box render to see each step"
        )
    fields.report_remaining()
    return {key: value for key, value in (("spec", made), ("types", declared)) if value}


def convert_observations(items: list[KatalogFields], known: KnownFields, crds: dict[str, str]) -> list[dict[str, Any]]:
    """Convert the observations of other objects."""
    otherwise = FindingReason("an observation", "a part of it has no counterpart", "see its findings")
    return [made for _, made in convert_each(items, partial(_convert_observation, known=known, crds=crds), otherwise)]


def _convert_observation(each: KatalogFields, known: KnownFields, crds: dict[str, str]) -> dict[str, Any]:
    crd, name = each.take_text("crd"), each.take_text("as")
    if any(key in each for key in ("labels", "labelSelector")):
        raise NotConvertedError(
            FindingReason("an observation by label", "it has no kind", "write apiVersion, kind and matchLabels")
        )
    if "source" in each:
        raise NotConvertedError(
            FindingReason(
                "an observation of another process", "a box reads only its cluster", "use external, or read the object"
            )
        )
    if crd not in crds:
        raise NotConvertedError(
            FindingReason(
                "an observation", f"{str(crd)[:60]} is not a custom resource of this file", "write apiVersion and kind"
            )
        )
    if each.take_text("strategy") == "all":
        each.reject_field(
            "strategy", "a strategy for all matches", "a Katalog ignores it", "write strategy: all and read items"
        )
    found: dict[str, Any] = {"crd": crds[crd]}
    selector = each.take_mapping("selector")
    made: dict[str, Any] = {}
    if "matchLabels" in selector:
        made["matchLabels"] = convert_tree(
            selector, selector.take("matchLabels"), selector.build_path("matchLabels"), TemplateUse.TEXT, known
        )
        if selector.take("name") is not None:
            selector.reject_field("name", "a name beside labels", "a Katalog uses the labels", "remove it")
        selector.add_note("matchLabels", "a box requires all labels, and uses the first object by name")
    elif (wanted := convert_text_field(selector, "name", TemplateUse.REQUIRED, known)) not in (None, MISSING):
        made["name"] = wanted
    else:
        raise NotConvertedError(FindingReason("an observation", "it has neither a name nor labels", "write a selector"))
    namespace = convert_text_field(selector, "namespace", TemplateUse.REQUIRED, known)
    if namespace is MISSING:
        raise NotConvertedError
    if namespace is not None:
        made["namespace"] = namespace
    selector.report_remaining()
    found["selector"] = made
    if name is not None or found["crd"] != crd:
        found["as"] = known.renamed.get(("cross", name or crd or ""), name or found["crd"])
    each.report_remaining()
    return found


def convert_groups(block: KatalogFields, known: KnownFields, *, is_on_create: bool) -> dict[str, Any]:
    """Convert the resources of ``onCreate`` or ``onReconcile``; the caller converts its calls."""
    found: dict[str, Any] = {}
    try:
        conditions = convert_conditions(block, known)
    except NotConvertedError:
        block.notes.add_finding(
            block.path, FindingReason("a group", "its conditions have no counterpart", "see its findings")
        )
        return {}
    if conditions and not is_on_create:
        block.add_note("when", "a box deletes the group's objects while the conditions are false; a Katalog keeps them")
    if len(conditions) > 1:
        block.add_note("or", "a box requires both")
    for kind, (here, _) in KINDS.items():
        if made := convert_resources(block, kind, known, is_on_create=is_on_create):
            found[here] = made
    if (name := block.take_text("name")) is not None and found:
        found["name"] = name
    block.report_remaining(NO_COUNTERPART)
    return {**conditions, **found} if found else {}


def convert_status(fields: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert the fields of the status."""
    found: list[dict[str, Any]] = []
    for each in fields.take_items("fields"):
        try:
            conditions = convert_conditions(each, known)
        except NotConvertedError:
            each.notes.add_finding(
                each.path,
                FindingReason("a field of the status", "its conditions have no counterpart", "see its findings"),
            )
            continue
        type_, path = (
            each.take_text("type") or "string",
            (each.take_text("path") or "").removeprefix(".").removeprefix("status."),
        )
        value = convert_text_field(each, "value", TemplateUse.TEXT if type_ == "string" else TemplateUse.VALUE, known)
        if value in (None, MISSING) and value != "":
            each.notes.add_finding(
                each.path, FindingReason("a field of the status", "its value has no counterpart", "write it by hand")
            )
            continue
        made: dict[str, Any] = {"path": path, "value": value}
        if type_ in TYPES and type_ != "string":
            made["type"] = TYPES[type_]
        elif type_ not in ("string", "auto"):
            each.reject_field(
                "type", "the type of a value", f"unknown type {type_[:40]!r}", "use int, float, bool, string"
            )
        if each.take_typed("clearOnFalse", bool):
            made["clearOnFalse"] = True
        each.report_remaining()
        found.append({**made, **conditions})
    if fields.take_typed("conditions", bool) is False:
        fields.reject_field("conditions", "a status without conditions", "konverge always writes them", "ignore them")
    fields.report_remaining()
    return {"fields": found} if found else {}


def convert_providers(block: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert the items that providers manage outside of the cluster."""
    found: dict[str, Any] = {}
    otherwise = FindingReason("an item of a provider", "a part of it has no counterpart", "see its findings")
    for provider in block.list_remaining():
        make = partial(_convert_item, provider=provider, known=known)
        if made := [each for _, each in convert_each(block.take_items(provider), make, otherwise)]:
            found[provider] = made
    return found


def _convert_item(item: KatalogFields, provider: str, known: KnownFields) -> dict[str, Any]:
    loop, known = convert_for_each(item, known)
    conditions = convert_conditions(item, known)
    word = next(iter(item.list_remaining()), "")
    kind, name_field = _PROVIDER_KINDS.get((provider, word), ("", ""))
    if not kind:
        why = f"konverge has no provider {provider[:40]} with {word[:40] or 'nothing'}"
        raise NotConvertedError(FindingReason("an item of a provider", why, "write a provider, or use a Job"))
    fields = item.take_mapping(word)
    name = convert_text_field(fields, name_field, TemplateUse.REQUIRED, known)
    if name in (None, MISSING):
        raise NotConvertedError(FindingReason("an item of a provider", f"it has no {name_field}", "name it"))
    spec = convert_tree(
        fields, {key: fields.take(key) for key in fields.list_remaining()}, fields.path, TemplateUse.VALUE, known
    )
    item.report_remaining()
    return {"kind": kind, "name": name, **loop, **conditions, **({"spec": spec} if spec else {})}

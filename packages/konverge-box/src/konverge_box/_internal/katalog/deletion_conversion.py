"""Conversion of the steps before a custom resource is deleted."""

from __future__ import annotations

from typing import Any

from konverge_box._internal.katalog.condition_conversion import NotConvertedError, convert_conditions
from konverge_box._internal.katalog.expression_translator import TemplateUse
from konverge_box._internal.katalog.findings import FindingReason, KatalogFields
from konverge_box._internal.katalog.known_fields import KnownFields
from konverge_box._internal.katalog.resource_conversion import KINDS, NO_COUNTERPART, convert_resources
from konverge_box._internal.katalog.value_conversion import MISSING, convert_text_field

__all__ = ["convert_deletion"]


def convert_deletion(block: KatalogFields, known: KnownFields) -> dict[str, Any]:
    """Convert the steps before a custom resource is deleted."""
    try:
        found: dict[str, Any] = convert_conditions(block, known)
    except NotConvertedError:
        block.notes.add_finding(
            block.path, FindingReason("the deletion", "its conditions have no counterpart", "see its findings")
        )
        return {}
    ordered = block.take_typed("ordered", bool)
    if (timeout := block.take_text("timeout")) is not None:
        if ordered:
            found["timeout"] = timeout
            block.add_note("timeout", "a box applies the timeout to all groups together")
        else:
            block.reject_field("timeout", "a time limit", "a Katalog ignores it without ordered: true", "set ordered")
    members = block.take_items("groups")
    if members and not ordered:
        block.reject_field(
            "groups", "groups of a deletion", "a Katalog ignores them without ordered: true", "set ordered"
        )
        members = []
    made = (
        [_convert_step(each, known) for each in members]
        if members
        else [_convert_flat_block(block, known, deletes=bool(ordered))]
    )
    block.report_remaining(NO_COUNTERPART)
    kept = [each for each in made if each]
    return {**found, "groups": kept} if kept else {}


def _convert_step(each: KatalogFields, known: KnownFields) -> dict[str, Any]:
    try:
        conditions = convert_conditions(each, known)
    except NotConvertedError:
        each.notes.add_finding(
            each.path,
            FindingReason("a group of the deletion", "its conditions have no counterpart", "see its findings"),
        )
        return {}
    name = each.take_text("name")
    found = _convert_flat_block(each, known, deletes=True)
    each.report_remaining(NO_COUNTERPART)
    return {**({"name": name} if name else {}), **conditions, **found} if found else {}


def _convert_flat_block(block: KatalogFields, known: KnownFields, *, deletes: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if jobs := convert_resources(block, "jobs", known, is_on_create=True):
        found["run"] = jobs
    targets: dict[str, Any] = {}
    for kind, (here, ending) in KINDS.items():
        if kind == "jobs" or kind not in block:
            continue
        if not deletes:
            block.take(kind)
            block.reject_field(
                kind, "objects of a deletion", "a Katalog runs only Jobs without ordered: true", "set ordered: true"
            )
            continue
        for each in block.take_items(kind):
            target = _convert_target(each, kind, ending, known)
            if target:
                targets.setdefault(here, []).append(target)
    if targets:
        found["delete"] = targets
    return found


def _convert_target(each: KatalogFields, kind: str, ending: str, known: KnownFields) -> dict[str, Any]:
    source = each.take_mapping("metadata") if kind == "custom" else each
    name, namespace = (
        convert_text_field(source, "name", TemplateUse.REQUIRED, known),
        convert_text_field(source, "namespace", TemplateUse.REQUIRED, known),
    )
    found: dict[str, Any] = {"name": f"{{{{ metadata.name }}}}{ending}" if name is None else name}
    if namespace not in (None, MISSING):
        found["namespace"] = namespace
    if kind == "custom":
        source.report_remaining()
        for key in ("apiVersion", "kind"):
            found[key] = each.take_text(key) or ""
    more = FindingReason("a field of a deleted object", "its name identifies the object", "remove it")
    each.report_remaining(dict.fromkeys(each.list_remaining(), more))
    return {} if name is MISSING else found

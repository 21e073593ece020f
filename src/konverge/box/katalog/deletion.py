"""What happens before a custom resource may go."""

from __future__ import annotations

from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, conditions
from konverge.box.katalog.expressions import Use
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.resources import KINDS, NO_COUNTERPART, resources
from konverge.box.katalog.values import MISSING, text

__all__ = ["deletion"]


def deletion(block: Fields, known: Known) -> dict[str, Any]:
    """What happens before a custom resource may go."""
    try:
        found: dict[str, Any] = conditions(block, known)
    except NotCarriedError:
        block.notes.list(block.path, Why("the deletion", "its conditions have no counterpart", "see what is listed"))
        return {}
    ordered = block.typed("ordered", bool)
    if (timeout := block.text("timeout")) is not None:
        if ordered:
            found["timeout"] = timeout
            block.decide("timeout", "it is for all groups together")
        else:
            block.refuse("timeout", "a time limit", "it counts only with ordered: true, there as well", "set ordered")
    members = block.items("groups")
    if members and not ordered:
        block.refuse(
            "groups", "groups of a deletion", "they count only with ordered: true, there as well", "set ordered"
        )
        members = []
    made = [_step(each, known) for each in members] if members else [_flat(block, known, deletes=bool(ordered))]
    block.close(NO_COUNTERPART)
    kept = [each for each in made if each]
    return {**found, "groups": kept} if kept else {}


def _step(each: Fields, known: Known) -> dict[str, Any]:
    try:
        asked = conditions(each, known)
    except NotCarriedError:
        each.notes.list(each.path, Why("a group of the deletion", "its conditions have no counterpart", "see there"))
        return {}
    name = each.text("name")
    found = _flat(each, known, deletes=True)
    each.close(NO_COUNTERPART)
    return {**({"name": name} if name else {}), **asked, **found} if found else {}


def _flat(block: Fields, known: Known, *, deletes: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if jobs := resources(block, "jobs", known, is_on_create=True):
        found["run"] = jobs
    targets: dict[str, Any] = {}
    for kind, (here, ending) in KINDS.items():
        if kind == "jobs" or kind not in block:
            continue
        if not deletes:
            block.take(kind)
            block.refuse(
                kind, "objects of a deletion", "without ordered: true only Jobs run there", "set ordered: true"
            )
            continue
        for each in block.items(kind):
            target = _target(each, kind, ending, known)
            if target:
                targets.setdefault(here, []).append(target)
    if targets:
        found["delete"] = targets
    return found


def _target(each: Fields, kind: str, ending: str, known: Known) -> dict[str, Any]:
    source = each.below("metadata") if kind == "custom" else each
    name, namespace = text(source, "name", Use.REQUIRED, known), text(source, "namespace", Use.REQUIRED, known)
    found: dict[str, Any] = {"name": f"{{{{ metadata.name }}}}{ending}" if name is None else name}
    if namespace not in (None, MISSING):
        found["namespace"] = namespace
    if kind == "custom":
        source.close()
        for key in ("apiVersion", "kind"):
            found[key] = each.text(key) or ""
    more = Why("a field of what is deleted", "a name says what is deleted", "remove it")
    each.close(dict.fromkeys(each.names(), more))
    return {} if name is MISSING else found

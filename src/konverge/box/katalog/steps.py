"""The steps of a custom resource's pipeline that are neither rules nor calls nor its deletion, one after the other."""

from __future__ import annotations

from functools import partial
from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, carried, conditions
from konverge.box.katalog.expressions import Use
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.resources import KINDS, NO_COUNTERPART, for_each, resources
from konverge.box.katalog.values import MISSING, TYPES, text, tree

__all__ = ["groups", "normalize", "observations", "providers", "status"]

_PROVIDER_KINDS = {
    ("aws", "s3"): ("Bucket", "bucket"),
    ("aws", "sqs"): ("Queue", "queue"),
    ("postgres", "database"): ("Database", "name"),
    ("postgres", "user"): ("Role", "name"),
    ("postgres", "role"): ("Role", "name"),
}


def normalize(fields: Fields, known: Known) -> dict[str, Any]:
    """The canonical spec."""
    spec, types = fields.below("spec"), fields.below("types")
    made: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for path in types.names():
        type_ = types.text(path) or ""
        if type_ not in TYPES or path not in spec:
            types.refuse(path, "the type of a field", "it is unknown, or nothing makes the field", "name both")
        else:
            declared[path] = TYPES[type_]
    for path in spec.names():
        use = Use.VALUE if path in declared else Use.PLAIN
        value = tree(spec, spec.take(path), spec.at(path), use, known)
        if value is MISSING:
            declared.pop(path, None)
        else:
            made[path] = value
    if fields.typed("audit", bool):
        fields.refuse("audit", "a record of changes", "a box keeps none", "konverge box render shows each step")
    fields.close()
    return {key: value for key, value in (("spec", made), ("types", declared)) if value}


def observations(items: list[Fields], known: Known, crds: dict[str, str]) -> list[dict[str, Any]]:
    """Other objects that are read."""
    otherwise = Why("an observation", "a part of it has no counterpart", "see what is listed for it")
    return [made for _, made in carried(items, partial(_observation, known=known, crds=crds), otherwise)]


def _observation(each: Fields, known: Known, crds: dict[str, str]) -> dict[str, Any]:
    crd, name = each.text("crd"), each.text("as")
    if any(key in each for key in ("labels", "labelSelector")):
        raise NotCarriedError(
            Why("an observation by label", "it names no kind", "write apiVersion, kind and matchLabels")
        )
    if "source" in each:
        raise NotCarriedError(
            Why("an observation of another process", "a box reads its cluster", "ask with external, or read the object")
        )
    if crd not in crds:
        raise NotCarriedError(
            Why("an observation", f"{str(crd)[:60]} is no custom resource of this file", "write apiVersion and kind")
        )
    if each.text("strategy") == "all":
        each.refuse("strategy", "all that match", "it counts for nothing there", "write strategy: all and read items")
    found: dict[str, Any] = {"crd": crds[crd]}
    selector = each.below("selector")
    made: dict[str, Any] = {}
    if "matchLabels" in selector:
        made["matchLabels"] = tree(selector, selector.take("matchLabels"), selector.at("matchLabels"), Use.TEXT, known)
        if selector.take("name") is not None:
            selector.refuse("name", "a name beside labels", "the labels win, there as well", "remove it")
        selector.decide("matchLabels", "all labels count, and of several objects the first by name")
    elif (wanted := text(selector, "name", Use.REQUIRED, known)) not in (None, MISSING):
        made["name"] = wanted
    else:
        raise NotCarriedError(Why("an observation", "it has neither a name nor labels", "write a selector"))
    namespace = text(selector, "namespace", Use.REQUIRED, known)
    if namespace is MISSING:
        raise NotCarriedError
    if namespace is not None:
        made["namespace"] = namespace
    selector.close()
    found["selector"] = made
    if name is not None or found["crd"] != crd:
        found["as"] = known.renamed.get(("cross", name or crd or ""), name or found["crd"])
    each.close()
    return found


def groups(block: Fields, known: Known, *, is_on_create: bool) -> dict[str, Any]:
    """The resources of ``onCreate`` or ``onReconcile``; its calls are taken by whoever has it."""
    found: dict[str, Any] = {}
    try:
        asked = conditions(block, known)
    except NotCarriedError:
        block.notes.list(block.path, Why("a group", "its conditions have no counterpart", "see what is listed for it"))
        return {}
    if asked and not is_on_create:
        block.decide("when", "where they are false, what the group has made is deleted; it stays there")
    if len(asked) > 1:
        block.decide("or", "both have to hold")
    for kind, (here, _) in KINDS.items():
        if made := resources(block, kind, known, is_on_create=is_on_create):
            found[here] = made
    if (name := block.text("name")) is not None and found:
        found["name"] = name
    block.close(NO_COUNTERPART)
    return {**asked, **found} if found else {}


def status(fields: Fields, known: Known) -> dict[str, Any]:
    """Fields of the status."""
    found: list[dict[str, Any]] = []
    for each in fields.items("fields"):
        try:
            asked = conditions(each, known)
        except NotCarriedError:
            each.notes.list(each.path, Why("a field of the status", "its conditions have no counterpart", "see there"))
            continue
        type_, path = each.text("type") or "string", (each.text("path") or "").removeprefix(".").removeprefix("status.")
        value = text(each, "value", Use.TEXT if type_ == "string" else Use.VALUE, known)
        if value in (None, MISSING) and value != "":
            each.notes.list(each.path, Why("a field of the status", "its value has no counterpart", "write it by hand"))
            continue
        made: dict[str, Any] = {"path": path, "value": value}
        if type_ in TYPES and type_ != "string":
            made["type"] = TYPES[type_]
        elif type_ not in ("string", "auto"):
            each.refuse(
                "type", "the type of a value", f"there is no type {type_[:40]!r}", "use int, float, bool, string"
            )
        if each.typed("clearOnFalse", bool):
            made["clearOnFalse"] = True
        each.close()
        found.append({**made, **asked})
    if fields.typed("conditions", bool) is False:
        fields.refuse("conditions", "a status without conditions", "konverge always writes them", "ignore them")
    fields.close()
    return {"fields": found} if found else {}


def providers(block: Fields, known: Known) -> dict[str, Any]:
    """What providers keep outside of the cluster."""
    found: dict[str, Any] = {}
    otherwise = Why("an item of a provider", "a part of it has no counterpart", "see what is listed")
    for provider in block.names():
        make = partial(_item, provider=provider, known=known)
        if made := [each for _, each in carried(block.items(provider), make, otherwise)]:
            found[provider] = made
    return found


def _item(item: Fields, provider: str, known: Known) -> dict[str, Any]:
    loop, known = for_each(item, known)
    asked = conditions(item, known)
    word = next(iter(item.names()), "")
    kind, name_field = _PROVIDER_KINDS.get((provider, word), ("", ""))
    if not kind:
        why = f"konverge has no provider {provider[:40]} with {word[:40] or 'nothing'}"
        raise NotCarriedError(Why("an item of a provider", why, "write a provider of your own, or use a Job"))
    fields = item.below(word)
    name = text(fields, name_field, Use.REQUIRED, known)
    if name in (None, MISSING):
        raise NotCarriedError(Why("an item of a provider", f"it has no {name_field}", "name it"))
    spec = tree(fields, {key: fields.take(key) for key in fields.names()}, fields.path, Use.VALUE, known)
    item.close()
    return {"kind": kind, "name": name, **loop, **asked, **({"spec": spec} if spec else {})}

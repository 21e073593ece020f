"""The steps of a custom resource's pipeline, one after the other."""

from __future__ import annotations

from typing import Any

from konverge.box.katalog.conditions import NotCarriedError, conditions, field_of, operator_of
from konverge.box.katalog.expressions import Use, has_template
from konverge.box.katalog.findings import Fields, Why
from konverge.box.katalog.known_fields import Known
from konverge.box.katalog.resources import KINDS, for_each, resources
from konverge.box.katalog.values import MISSING, text, tree

__all__ = [
    "calls",
    "deletion",
    "groups",
    "mutations",
    "normalize",
    "observations",
    "providers",
    "status",
    "validations",
]

_TYPES = {
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "number": "number",
    "bool": "boolean",
    "boolean": "boolean",
    "string": "string",
}
_INCLUDE = Why("another file", "a box is one file", "copy what stands there to this place, and import again")
_EARLY_CALLS = Why(
    "calls before validation",
    "external runs after validation here",
    "move the call to onReconcile, or ask in a webhook",
)
_ADMISSION = Why(
    "a rule for admission alone", "a box has rules for its passes", "use an admission policy of the cluster"
)
_LINK = Why("the field that a user interface marks", "there is none", "name the field in the message")
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
_STEPS = {
    "git": Why("a step with git", "there is none", "use a Job"),
    "docker": Why("a step with docker", "there is none", "use a Job"),
    **dict.fromkeys(_INERT_KINDS, _INERT),
}


def normalize(fields: Fields, known: Known) -> dict[str, Any]:
    """The canonical spec."""
    spec, types = fields.below("spec"), fields.below("types")
    made: dict[str, Any] = {}
    declared: dict[str, Any] = {}
    for path in types.names():
        type_ = types.text(path) or ""
        if type_ not in _TYPES or path not in spec:
            types.refuse(path, "the type of a field", "it is unknown, or nothing makes the field", "name both")
        else:
            declared[path] = _TYPES[type_]
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


def mutations(fields: Fields, known: Known) -> list[dict[str, Any]]:
    """Defaults and overrides, in their order."""
    found: list[dict[str, Any]] = []
    if fields.typed("mutateFirst", bool) is not None:
        fields.decide("mutateFirst", "mutation is always before validation")
    for rule in fields.items("rules"):
        try:
            made = _mutation(rule, known)
        except NotCarriedError as missing:
            rule.notes.list(rule.path, missing.why or _of_rule("mutation"))
            continue
        found.append(made)
        rule.close({"link": _LINK})
    fields.close({"include": _INCLUDE, "external": _EARLY_CALLS})
    return found


def _of_rule(word: str) -> Why:
    return Why(f"a rule of {word}", "a part that it needs has no counterpart", "see what is listed for it")


def _fires(rule: Fields) -> None:
    """Refuse a rule that is asked at admission alone."""
    block = rule.below("fires")
    at_reconcile = block.typed("reconcile", bool)
    block.close()
    if at_reconcile is False:
        raise NotCarriedError(_ADMISSION)
    if at_reconcile:
        rule.decide("fires", "rules are asked in each pass")


def _mutation(rule: Fields, known: Known) -> dict[str, Any]:
    field = (rule.text("field") or "").removeprefix(".")
    if not field or has_template(field):
        raise NotCarriedError(Why("a rule of mutation", "its field is computed", "write a rule for each field"))
    found: dict[str, Any] = {"field": field, **conditions(rule, known)}
    _fires(rule)
    type_ = rule.text("valueType")
    use = {"int": Use.NUMBER, "float": Use.NUMBER, "bool": Use.BOOLEAN}.get(type_ or "", Use.VALUE)
    key = "override" if "override" in rule else "default"
    if key == "override" and "default" in rule:
        rule.take("default")
        rule.refuse("default", "a default beside an override", "the override wins, there as well", "remove it")
    if key not in rule:
        raise NotCarriedError(Why("a rule of mutation", "it has neither default nor override", "remove it"))
    value = rule.take(key)
    made = tree(rule, value, rule.at(key), use, known)
    if made is MISSING:
        raise NotCarriedError
    found[key] = made
    if type_ in _TYPES:
        found["type"] = _TYPES[type_]
    elif type_ is not None:
        rule.refuse(
            "valueType", "the type of a value", f"there is no type {type_[:40]!r}", "use int, float, bool, string"
        )
    elif not isinstance(value, str):
        rule.decide(key, "the value keeps its type, where text would be written there")
    return found


def validations(fields: Fields, known: Known) -> list[dict[str, Any]]:
    """What has to hold."""
    found: list[dict[str, Any]] = []
    for rule in fields.items("rules"):
        try:
            made = {"field": field_of(rule, known), **operator_of(rule, known)}
            _fires(rule)
            message = text(rule, "message", Use.TEXT, known)
            if message not in (None, MISSING):
                made["message"] = message
            if (action := rule.text("action")) not in (None, "deny"):
                made["action"] = action
            made |= conditions(rule, known)
        except NotCarriedError as missing:
            rule.notes.list(rule.path, missing.why or _of_rule("validation"))
            continue
        if rule.text("valueType") is not None:
            rule.decide("valueType", "values are compared as what they are")
        found.append(made)
        rule.close({"link": _LINK})
    fields.close({"include": _INCLUDE, "external": _EARLY_CALLS})
    return found


def observations(items: list[Fields], known: Known, crds: dict[str, str]) -> list[dict[str, Any]]:
    """Other objects that are read."""
    found: list[dict[str, Any]] = []
    for each in items:
        try:
            found.append(_observation(each, known, crds))
        except NotCarriedError as missing:
            why = missing.why or Why("an observation", "a part of it has no counterpart", "see what is listed for it")
            each.notes.list(each.path, why)
    return found


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


def calls(items: list[Fields], known: Known) -> list[dict[str, Any]]:
    """External calls of all lists."""
    found: list[dict[str, Any]] = []
    names: set[str] = set()
    for each in items:
        if "include" in each:
            each.notes.list(each.at("include"), _INCLUDE)
            continue
        try:
            made = _call(each, known)
        except NotCarriedError as missing:
            why = missing.why or Why("a call", "a part of it has no counterpart", "see what is listed for it")
            each.notes.list(each.path, why)
            continue
        if made["name"] in names:
            each.refuse("name", "a second call of that name", "all results stand side by side here", "rename one")
            continue
        names.add(made["name"])
        found.append(made)
    return found


def _call(each: Fields, known: Known) -> dict[str, Any]:
    name = each.text("name") or ""
    found: dict[str, Any] = {"name": known.renamed.get(("external", name), name)}
    protocol = each.text("protocol") or "http"
    if protocol not in ("http", "prometheus", "redis", "postgres"):
        raise NotCarriedError(Why("a call", f"there is no protocol {protocol[:40]!r}", "put a service in front of it"))
    if protocol != "http":
        found["protocol"] = protocol
    _fires(each)
    for key, use in (("url", Use.REQUIRED), ("query", Use.TEXT), ("body", Use.TEXT), ("method", Use.REQUIRED)):
        value = text(each, key, use, known)
        if value is MISSING:
            raise NotCarriedError
        if value is not None:
            found[key] = value
    if "headers" in each:
        found["headers"] = tree(each, each.typed("headers", dict) or {}, each.at("headers"), Use.TEXT, known)
    if "body" in found and "content-type" not in {key.lower() for key in found.get("headers", {})}:
        found.setdefault("headers", {})["Content-Type"] = "application/json"
    _authenticate(each, found)
    for key in ("timeout", "cacheFor"):
        if (value := each.text(key)) is not None:
            found[key] = value
    if expected := each.typed("expectedStatus", int):
        found["expectedStatus"] = [expected]
    if each.typed("continueOnError", bool):
        found["continueOnError"] = True
    if "retryBackoff" in each:
        found["retry"] = _retry(each)
    found |= conditions(each, known)
    each.close(
        {
            "sleep": Why("a pause for tests", "a pass of konverge does not sleep", "remove it"),
            "poolSize": Why("the size of a pool", "connections are shared and bounded by konverge", "remove it"),
            "token": Why(
                "a token out of the environment", "generations before auth have it", "write auth: {env: NAME}"
            ),
        }
    )
    return found


def _authenticate(each: Fields, found: dict[str, Any]) -> None:
    if "auth" not in each:
        return
    block = each.below("auth")
    made: dict[str, Any] = {}
    if "secretRef" in block:
        reference = block.below("secretRef")
        made["secretRef"] = {
            key: value for key in ("name", "namespace", "key") if (value := reference.text(key)) is not None
        }
        reference.close()
        if "namespace" not in made["secretRef"]:
            block.decide(
                "secretRef", "without a namespace it is the custom resource's, where it is the operator's there"
            )
    if (env := block.text("env")) is not None:
        made["env"] = env.removeprefix("$")
    if (header := block.text("header")) is not None:
        made["header"] = header
        if header != "Authorization":
            block.decide("header", "the value goes there as it is, without Bearer")
    block.close()
    found["auth"] = made


def _retry(each: Fields) -> dict[str, Any]:
    value = each.peek("retryBackoff")
    if isinstance(value, str):
        each.take("retryBackoff")
        return {"initial": value}
    block = each.below("retryBackoff")
    found: dict[str, Any] = {}
    for key, here in (("initial", "initial"), ("max", "max")):
        if (period := block.text(key)) is not None:
            found[here] = period
    if (factor := block.take("multiplier")) is not None:
        found["factor"] = factor
    if (attempts := block.typed("maxAttempts", int)) is not None:
        found["attempts"] = attempts
    block.close()
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
        made = [each for _, each in resources(block, kind, known, is_on_create=is_on_create)]
        if made:
            found[here] = made
    if (name := block.text("name")) is not None and found:
        found["name"] = name
    block.close(_STEPS)
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
        if type_ in _TYPES and type_ != "string":
            made["type"] = _TYPES[type_]
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
    block.close(_STEPS)
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
    each.close(_STEPS)
    return {**({"name": name} if name else {}), **asked, **found} if found else {}


def _flat(block: Fields, known: Known, *, deletes: bool) -> dict[str, Any]:
    found: dict[str, Any] = {}
    jobs = [each for _, each in resources(block, "jobs", known, is_on_create=True)]
    if jobs:
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


_PROVIDER_KINDS = {
    ("aws", "s3"): ("Bucket", "bucket"),
    ("aws", "sqs"): ("Queue", "queue"),
    ("postgres", "database"): ("Database", "name"),
    ("postgres", "user"): ("Role", "name"),
    ("postgres", "role"): ("Role", "name"),
}


def providers(block: Fields, known: Known) -> dict[str, Any]:
    """What providers keep outside of the cluster."""
    found: dict[str, Any] = {}
    for provider in block.names():
        for item in block.items(provider):
            try:
                made = _item(item, provider, known)
            except NotCarriedError as missing:
                why = missing.why or Why(
                    "an item of a provider", "a part of it has no counterpart", "see what is listed"
                )
                item.notes.list(item.path, why)
                continue
            found.setdefault(provider, []).append(made)
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

"""The functions of Go templates in Katalogs, and what each is here: data for `konverge.box.katalog.expressions`.

Most have the name and the arguments that they have here. A form has ``{0}``, ``{1}`` … where the arguments go; an
argument that may be absent stands in a form as it is, or with what makes it a value.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CRON_FIELDS", "FORMS", "UNKNOWN", "Form"]


class Form(NamedTuple):
    """What a function is here.

    Args:
        text: The expression, as an operand: what is no call stands in brackets.
        type: Of its value: ``text``, ``number``, ``bool``, ``list``, ``map``; empty where it depends on the arguments.
        least: How many arguments it takes at least.
        most: And at most.
        absent: What stands for an argument that may be absent, by its place: ``plain`` for itself, else a fallback.
    """

    text: str
    type: str
    least: int
    most: int
    absent: tuple[str, ...] = ()


def _same(type_: str, count: int, *names: str, absent: str = "") -> dict[str, Form]:
    places = ", ".join(f"{{{number}}}" for number in range(count))
    return {name: Form(f"{name}({places})", type_, count, count, (absent,) * count if absent else ()) for name in names}


_OBJECT = ("plain",)

FORMS: dict[str, Form] = {
    **_same("text", 1, "toLower", "toUpper", "trimSpace", "camelToKebab", "toBase64", "fromBase64", "slugify"),
    **_same("text", 2, "trim", "trimPrefix", "trimSuffix", "repeat", "semverBump"),
    **_same("bool", 2, "hasPrefix", "hasSuffix", "contains", "semverConstraint", "cidrContains", "isExpired"),
    **_same("text", 3, "replace"),
    **_same("list", 2, "split"),
    **_same("text", 2, "join"),
    **_same("number", 2, "add", "sub", "mul", "mod", "min", "max", "semverCompare"),
    **_same("number", 3, "clamp"),
    **_same("number", 1, "abs", "toInt", "toFloat", "parseQuantity", "durationSeconds"),
    **_same("bool", 1, "toBool", "semverValid", "ipValid", "ipIsPrivate", "isDNS1123Subdomain", "durationValid"),
    **_same("bool", 1, "cronValid"),
    **_same("bool", 1, "typeMap", "typeList", "typeString", "typeNumber", "typeBool", absent="plain"),
    **_same("bool", 1, "isScalar", "isComposite", absent="plain"),
    **_same("text", 1, "toJSON", absent="null"),
    **_same("number", 1, "len"),
    **_same("number", 1, "listLen", absent="plain"),
    **_same("text", 1, "randomAlphanumeric", "randomHex", "randomBase64"),
    **_same("text", 1, "cronNormalize", "cronDescribe", "cronFromMap", "cronFromAny"),
    **_same("map", 1, "cronToMap"),
    **_same("text", 1, "cronMinute", "cronHour", "cronDom", "cronMonth", "cronDow"),
    **_same("text", 5, "cronExpr"),
    **_same("map", 1, "meta", "labels", "annotations", "spec", "status", absent="plain"),
    **_same("text", 1, "name", "namespace", "kind", "phase", absent="plain"),
    **_same("bool", 1, "resourceExists", "isTerminating", "isSynced", absent="plain"),
    **_same("number", 1, "generation", "observedGeneration", absent="plain"),
    **_same("bool", 1, "replicasReady", "allReplicasReady", "rolloutComplete", "endpointsReady", absent="plain"),
    **_same("number", 1, "desiredReplicas", "readyReplicas", "availableReplicas", "updatedReplicas", absent="plain"),
    **_same("text", 1, "serviceClusterIP", "serviceLoadBalancerIP", "serviceLoadBalancerHost", absent="plain"),
    **_same("number", 1, "serviceNodePort", "containerCount", absent="plain"),
    **_same("bool", 1, "jobSucceeded", "jobFailed", "jobActive", absent="plain"),
    "getLabel": Form("getLabel({0}, {1})", "text", 2, 2, _OBJECT),
    "getAnnotation": Form("getAnnotation({0}, {1})", "text", 2, 2, _OBJECT),
    "hasCondition": Form("hasCondition({0}, {1})", "bool", 2, 2, _OBJECT),
    "conditionReason": Form("conditionReason({0}, {1})", "text", 2, 2, _OBJECT),
    "conditionMessage": Form("conditionMessage({0}, {1})", "text", 2, 2, _OBJECT),
    "resourceName": Form("resourceName({0}, {1})", "text", 2, 2, _OBJECT),
    "resourceCPU": Form("getStringOr({0}, 'spec.resources.requests.cpu', '')", "text", 1, 1, _OBJECT),
    "resourceMemory": Form("getStringOr({0}, 'spec.resources.requests.memory', '')", "text", 1, 1, _OBJECT),
    "toString": Form("asString({0})", "text", 1, 1, ("plain",)),
    "toJson": Form("toJSON({0})", "text", 1, 1, ("null",)),
    "formatQuantity": Form("formatQuantity({0})", "text", 1, 1),
    "sumQuantity": Form("sumQuantity({0}, {1})", "text", 2, 2),
    # Those that are called the same in both and are not: here is what gives the same value.
    "asString": Form("(toJSON({0}) if isComposite({0}) else asString({0}))", "text", 1, 1, ("plain",)),
    "div": Form("({0} / {1})", "number", 2, 2),
    "sha256sum": Form("shortHash({0})", "text", 1, 1),
    "truncateName": Form("truncate({0}, {1})", "text", 2, 2),
    "truncate": Form("truncate({0}, {1}, '...')", "text", 2, 2),
    "ternary": Form("({1} if {0} else {2})", "", 3, 3, ("false", "''", "''")),
    "boolTernary": Form("({1} if {0} else {2})", "", 3, 3, ("", "''", "''")),
    "boolDefault": Form("boolDefault({0}, {1})", "bool", 2, 2, ("plain",)),
    "eqTernary": Form("({2} if asString({0}) == asString({1}) else {3})", "", 4, 4, ("plain", "plain", "''", "''")),
    "empty": Form("(not {0})", "bool", 1, 1, ("false",)),
    "Empty": Form("(not {0})", "bool", 1, 1, ("false",)),
    "notEmpty": Form("(not not {0})", "bool", 1, 1, ("false",)),
    "typeOf": Form("replace(typeOf({0}), 'list', 'slice')", "text", 1, 1, ("null",)),
    "typeNull": Form("typeNull({0})", "bool", 1, 1, ("null",)),
    "getOr": Form("coalesce({0}, {1})", "", 2, 2, ("plain", "plain")),
    "getStringOr": Form("(coalesce({0}, {1}) if typeString({0}) else {1})", "text", 2, 2, ("plain",)),
    "getIntOr": Form("toInt({0} if typeNumber({0}) else {1})", "number", 2, 2, ("plain",)),
    "getBoolOr": Form("({0} if typeBool({0}) else {1})", "bool", 2, 2, ("plain",)),
    "listHas": Form("listHas(asList({0}), {1})", "bool", 2, 2, ("plain",)),
    "listGet": Form("listGet(asList({0}), {1})", "", 2, 2, ("plain",)),
    "mapGet": Form("mapGet(asMap({0}), {1})", "", 2, 2, ("plain",)),
    "mapKeys": Form("mapKeys(asMap({0}))", "list", 1, 1, ("plain",)),
    "mapValues": Form("mapValues(asMap({0}))", "list", 1, 1, ("plain",)),
    "semverMajor": Form("toString(semverMajor({0}))", "text", 1, 1),
    "semverMinor": Form("toString(semverMinor({0}))", "text", 1, 1),
    "semverPatch": Form("toString(semverPatch({0}))", "text", 1, 1),
    "timeAgo": Form("(timeAgo({0}) ~ ' ago')", "text", 1, 1),
    "weekday": Form("(weekday() not in ['Saturday', 'Sunday'])", "bool", 0, 0),
    "weekend": Form("(weekday() in ['Saturday', 'Sunday'])", "bool", 0, 0),
    "timeInWindow": Form("timeInWindow({0}, {1})", "bool", 2, 2),
    "timeNotInWindow": Form("(not timeInWindow({0}, {1}))", "bool", 2, 2),
    "nextCron": Form("cronNext({0})", "text", 1, 1),
    "not": Form("(not {0})", "bool", 1, 1, ("false",)),
    "ne": Form("({0} != {1})", "bool", 2, 2, ("null", "null")),
    "lt": Form("({0} < {1})", "bool", 2, 2),
    "le": Form("({0} <= {1})", "bool", 2, 2),
    "gt": Form("({0} > {1})", "bool", 2, 2),
    "ge": Form("({0} >= {1})", "bool", 2, 2),
}
"""By the name in a Katalog; what has more to it than a form is in `konverge.box.katalog.expressions`."""

CRON_FIELDS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")

_OF_CHILDREN = ("it reads what enrich adds to children", "read the object with cross, or count in status.fields")
_OF_SERVING = (
    "it asks how the object came in through the gateway",
    "set a label where the object is made, and read it",
)
_DIFFERS = "what it gives is written in another way here"

UNKNOWN: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("podCount", "readyPodCount", "hasCrashingPod", "podMaxRestarts", "hasWarnings", "firstWarning"), _OF_CHILDREN
    ),
    **dict.fromkeys(("getServeTarget", "getServeAlias", "getServeSource", "isDirectApply"), _OF_SERVING),
    **dict.fromkeys(
        ("promAboveThreshold", "promBelowThreshold", "promSum", "promMax"),
        ("it reads a form of result that prometheus calls do not have here", "compare external.<name>.result"),
    ),
    "timeSince": ("it gives seconds there, and a duration here", "compare with isExpired(time, duration)"),
    "timeUntil": (_DIFFERS, "use timeUntil(time), which gives 29d23h and the like"),
    "durationAdd": ("it adds two durations there, and a duration to a time here", "write the sum out"),
    "subtractQuantity": ("there is no such function", "formatQuantity(parseQuantity(a) - parseQuantity(b))"),
    "toList": ("there is no such function", "split(text, ',')"),
    "lookup": ("there is no such function", "mapGet({'key': 'value'}, key)"),
    "repoSlug": ("there is no such function", "slugify(last(split(text, '/')))"),
    "ownerKind": ("there is no such function", "get(object, 'metadata.ownerReferences.0.kind')"),
    "ownerName": ("there is no such function", "get(object, 'metadata.ownerReferences.0.name')"),
    "containerPortByName": ("its arguments are not known", "containerPortByName(object, 'http')"),
    "println": ("there is no such function", "write the text out"),
    "call": ("there are no functions as values", "write the expression by hand"),
    "html": ("there is no such function", "write the expression by hand"),
    "js": ("there is no such function", "toJSON(value)"),
    "urlquery": ("there is no such function", "write the expression by hand"),
}
"""Functions that are known and have no counterpart: why, and what to do instead."""

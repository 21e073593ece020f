"""The functions of Go templates in Katalogs and their translations.

They are data for `konverge_box.katalog.expression_translator`.

Most have the name and the arguments that they have here. A form has ``{0}``, ``{1}`` … where the arguments go; an
argument that may be absent stands in a form as it is, or with what makes it a value.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CRON_FIELDS", "FORMS", "UNKNOWN", "FunctionForm"]


class FunctionForm(NamedTuple):
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


def _build_same_forms(type_: str, count: int, *names: str, absent: str = "") -> dict[str, FunctionForm]:
    places = ", ".join(f"{{{number}}}" for number in range(count))
    return {
        name: FunctionForm(f"{name}({places})", type_, count, count, (absent,) * count if absent else ())
        for name in names
    }


_OBJECT = ("plain",)

FORMS: dict[str, FunctionForm] = {
    **_build_same_forms(
        "text", 1, "toLower", "toUpper", "trimSpace", "camelToKebab", "toBase64", "fromBase64", "slugify"
    ),
    **_build_same_forms("text", 2, "trim", "trimPrefix", "trimSuffix", "repeat", "semverBump"),
    **_build_same_forms(
        "bool", 2, "hasPrefix", "hasSuffix", "contains", "semverConstraint", "cidrContains", "isExpired"
    ),
    **_build_same_forms("text", 3, "replace"),
    **_build_same_forms("list", 2, "split"),
    **_build_same_forms("text", 2, "join"),
    **_build_same_forms("number", 2, "add", "sub", "mul", "mod", "min", "max", "semverCompare"),
    **_build_same_forms("number", 3, "clamp"),
    **_build_same_forms("number", 1, "abs", "toInt", "toFloat", "parseQuantity", "durationSeconds"),
    **_build_same_forms(
        "bool", 1, "toBool", "semverValid", "ipValid", "ipIsPrivate", "isDNS1123Subdomain", "durationValid"
    ),
    **_build_same_forms("bool", 1, "cronValid"),
    **_build_same_forms("bool", 1, "typeMap", "typeList", "typeString", "typeNumber", "typeBool", absent="plain"),
    **_build_same_forms("bool", 1, "isScalar", "isComposite", absent="plain"),
    **_build_same_forms("text", 1, "toJSON", absent="null"),
    **_build_same_forms("number", 1, "len"),
    **_build_same_forms("number", 1, "listLen", absent="plain"),
    **_build_same_forms("text", 1, "randomAlphanumeric", "randomHex", "randomBase64"),
    **_build_same_forms("text", 1, "cronNormalize", "cronDescribe", "cronFromMap", "cronFromAny"),
    **_build_same_forms("map", 1, "cronToMap"),
    **_build_same_forms("text", 1, "cronMinute", "cronHour", "cronDom", "cronMonth", "cronDow"),
    **_build_same_forms("text", 5, "cronExpr"),
    **_build_same_forms("map", 1, "meta", "labels", "annotations", "spec", "status", absent="plain"),
    **_build_same_forms("text", 1, "name", "namespace", "kind", "phase", absent="plain"),
    **_build_same_forms("bool", 1, "resourceExists", "isTerminating", "isSynced", absent="plain"),
    **_build_same_forms("number", 1, "generation", "observedGeneration", absent="plain"),
    **_build_same_forms(
        "bool", 1, "replicasReady", "allReplicasReady", "rolloutComplete", "endpointsReady", absent="plain"
    ),
    **_build_same_forms(
        "number", 1, "desiredReplicas", "readyReplicas", "availableReplicas", "updatedReplicas", absent="plain"
    ),
    **_build_same_forms(
        "text", 1, "serviceClusterIP", "serviceLoadBalancerIP", "serviceLoadBalancerHost", absent="plain"
    ),
    **_build_same_forms("number", 1, "serviceNodePort", "containerCount", absent="plain"),
    **_build_same_forms("bool", 1, "jobSucceeded", "jobFailed", "jobActive", absent="plain"),
    "getLabel": FunctionForm("getLabel({0}, {1})", "text", 2, 2, _OBJECT),
    "getAnnotation": FunctionForm("getAnnotation({0}, {1})", "text", 2, 2, _OBJECT),
    "hasCondition": FunctionForm("hasCondition({0}, {1})", "bool", 2, 2, _OBJECT),
    "conditionReason": FunctionForm("conditionReason({0}, {1})", "text", 2, 2, _OBJECT),
    "conditionMessage": FunctionForm("conditionMessage({0}, {1})", "text", 2, 2, _OBJECT),
    "resourceName": FunctionForm("resourceName({0}, {1})", "text", 2, 2, _OBJECT),
    "resourceCPU": FunctionForm("getStringOr({0}, 'spec.resources.requests.cpu', '')", "text", 1, 1, _OBJECT),
    "resourceMemory": FunctionForm("getStringOr({0}, 'spec.resources.requests.memory', '')", "text", 1, 1, _OBJECT),
    "toString": FunctionForm("asString({0})", "text", 1, 1, ("plain",)),
    "toJson": FunctionForm("toJSON({0})", "text", 1, 1, ("null",)),
    "formatQuantity": FunctionForm("formatQuantity({0})", "text", 1, 1),
    "sumQuantity": FunctionForm("sumQuantity({0}, {1})", "text", 2, 2),
    # Those that are called the same in both and are not: here is what gives the same value.
    "asString": FunctionForm("(toJSON({0}) if isComposite({0}) else asString({0}))", "text", 1, 1, ("plain",)),
    "div": FunctionForm("({0} / {1})", "number", 2, 2),
    "sha256sum": FunctionForm("shortHash({0})", "text", 1, 1),
    "truncateName": FunctionForm("truncate({0}, {1})", "text", 2, 2),
    "truncate": FunctionForm("truncate({0}, {1}, '...')", "text", 2, 2),
    "ternary": FunctionForm("({1} if {0} else {2})", "", 3, 3, ("false", "''", "''")),
    "boolTernary": FunctionForm("({1} if {0} else {2})", "", 3, 3, ("", "''", "''")),
    "boolDefault": FunctionForm("boolDefault({0}, {1})", "bool", 2, 2, ("plain",)),
    "eqTernary": FunctionForm(
        "({2} if asString({0}) == asString({1}) else {3})", "", 4, 4, ("plain", "plain", "''", "''")
    ),
    "empty": FunctionForm("(not {0})", "bool", 1, 1, ("false",)),
    "Empty": FunctionForm("(not {0})", "bool", 1, 1, ("false",)),
    "notEmpty": FunctionForm("(not not {0})", "bool", 1, 1, ("false",)),
    "typeOf": FunctionForm("replace(typeOf({0}), 'list', 'slice')", "text", 1, 1, ("null",)),
    "typeNull": FunctionForm("typeNull({0})", "bool", 1, 1, ("null",)),
    "getOr": FunctionForm("coalesce({0}, {1})", "", 2, 2, ("plain", "plain")),
    "getStringOr": FunctionForm("(coalesce({0}, {1}) if typeString({0}) else {1})", "text", 2, 2, ("plain",)),
    "getIntOr": FunctionForm("toInt({0} if typeNumber({0}) else {1})", "number", 2, 2, ("plain",)),
    "getBoolOr": FunctionForm("({0} if typeBool({0}) else {1})", "bool", 2, 2, ("plain",)),
    "listHas": FunctionForm("listHas(asList({0}), {1})", "bool", 2, 2, ("plain",)),
    "listGet": FunctionForm("listGet(asList({0}), {1})", "", 2, 2, ("plain",)),
    "mapGet": FunctionForm("mapGet(asMap({0}), {1})", "", 2, 2, ("plain",)),
    "mapKeys": FunctionForm("mapKeys(asMap({0}))", "list", 1, 1, ("plain",)),
    "mapValues": FunctionForm("mapValues(asMap({0}))", "list", 1, 1, ("plain",)),
    "semverMajor": FunctionForm("toString(semverMajor({0}))", "text", 1, 1),
    "semverMinor": FunctionForm("toString(semverMinor({0}))", "text", 1, 1),
    "semverPatch": FunctionForm("toString(semverPatch({0}))", "text", 1, 1),
    "timeAgo": FunctionForm("(timeAgo({0}) ~ ' ago')", "text", 1, 1),
    "weekday": FunctionForm("(weekday() not in ['Saturday', 'Sunday'])", "bool", 0, 0),
    "weekend": FunctionForm("(weekday() in ['Saturday', 'Sunday'])", "bool", 0, 0),
    "timeInWindow": FunctionForm("timeInWindow({0}, {1})", "bool", 2, 2),
    "timeNotInWindow": FunctionForm("(not timeInWindow({0}, {1}))", "bool", 2, 2),
    "nextCron": FunctionForm("cronNext({0})", "text", 1, 1),
    "not": FunctionForm("(not {0})", "bool", 1, 1, ("false",)),
    "ne": FunctionForm("({0} != {1})", "bool", 2, 2, ("null", "null")),
    "lt": FunctionForm("({0} < {1})", "bool", 2, 2),
    "le": FunctionForm("({0} <= {1})", "bool", 2, 2),
    "gt": FunctionForm("({0} > {1})", "bool", 2, 2),
    "ge": FunctionForm("({0} >= {1})", "bool", 2, 2),
}
"""By the name in a Katalog; what has more to it than a form is in `konverge_box.katalog.expression_translator`."""

CRON_FIELDS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")

_CHILD_FUNCTIONS = ("it reads what enrich adds to children", "read the object with cross, or count in status.fields")
_OF_SERVING = (
    "it asks how the object came in through the gateway",
    "set a label where the object is made, and read it",
)
_DIFFERS = "what it gives is written in another way here"

UNKNOWN: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("podCount", "readyPodCount", "hasCrashingPod", "podMaxRestarts", "hasWarnings", "firstWarning"),
        _CHILD_FUNCTIONS,
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

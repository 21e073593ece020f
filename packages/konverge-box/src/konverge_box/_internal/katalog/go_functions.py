"""The functions of Go templates in Katalogs and their translations, for `katalog.expression_translator`.

Most functions have the same name and arguments in a box. A form contains ``{0}``, ``{1}`` … for the arguments; an
argument that may be absent is inserted as it is, or with a fallback.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CRON_FIELDS", "FORMS", "UNKNOWN", "FunctionForm"]


class FunctionForm(NamedTuple):
    """The translation of a function.

    Args:
        text: The expression as an operand: anything but a call is in brackets.
        type: The type of its value: ``text``, ``number``, ``bool``, ``list``, ``map``; empty if it depends on the
            arguments.
        least: The minimum number of arguments.
        most: The maximum number of arguments.
        absent: The treatment of an absent argument by its index: ``plain`` inserts it as it is, otherwise a fallback.
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
    # Functions with the same name and different results: each form gives the result of the Katalog.
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
"""The forms by name in a Katalog; other translations are in `katalog.go_call_translators`."""

CRON_FIELDS = ("minute", "hour", "dayOfMonth", "month", "dayOfWeek")

_CHILD_FUNCTIONS = (
    "it reads the data that enrich adds to children",
    "read the object with cross, or count in status.fields",
)
_OF_SERVING = (
    "it reads how the object passed the gateway",
    "set a label where the object is created, and read it",
)
_DIFFERS = "its result has another format in a box"

UNKNOWN: dict[str, tuple[str, str]] = {
    **dict.fromkeys(
        ("podCount", "readyPodCount", "hasCrashingPod", "podMaxRestarts", "hasWarnings", "firstWarning"),
        _CHILD_FUNCTIONS,
    ),
    **dict.fromkeys(("getServeTarget", "getServeAlias", "getServeSource", "isDirectApply"), _OF_SERVING),
    **dict.fromkeys(
        ("promAboveThreshold", "promBelowThreshold", "promSum", "promMax"),
        ("prometheus calls of a box have another form of result", "compare external.<name>.result"),
    ),
    "timeSince": ("it returns seconds in a Katalog and a duration in a box", "compare with isExpired(time, duration)"),
    "timeUntil": (_DIFFERS, "use timeUntil(time), which returns durations such as 29d23h"),
    "durationAdd": ("it adds two durations in a Katalog, and a duration to a time in a box", "write the sum"),
    "subtractQuantity": ("a box has no such function", "formatQuantity(parseQuantity(a) - parseQuantity(b))"),
    "toList": ("a box has no such function", "split(text, ',')"),
    "lookup": ("a box has no such function", "mapGet({'key': 'value'}, key)"),
    "repoSlug": ("a box has no such function", "slugify(last(split(text, '/')))"),
    "ownerKind": ("a box has no such function", "get(object, 'metadata.ownerReferences.0.kind')"),
    "ownerName": ("a box has no such function", "get(object, 'metadata.ownerReferences.0.name')"),
    "containerPortByName": ("its arguments are unknown", "containerPortByName(object, 'http')"),
    "println": ("a box has no such function", "write the string"),
    "call": ("a box has no functions as values", "write the expression by hand"),
    "html": ("a box has no such function", "write the expression by hand"),
    "js": ("a box has no such function", "toJSON(value)"),
    "urlquery": ("a box has no such function", "write the expression by hand"),
}
"""Known functions without a counterpart: the reason and the alternative."""

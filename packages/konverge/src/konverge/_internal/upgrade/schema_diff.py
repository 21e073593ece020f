"""Comparison of two structural schemas: which valid objects become invalid, and which values are lost. Pure.

The direction of a bound decides: a wider bound breaks nothing. Patterns, rules and junctors cannot be compared, so each
change of them counts as breaking. Texts for people (descriptions, examples, titles) do not count.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from konverge._internal.upgrade.findings import Finding

__all__ = ["diff_schemas"]

_ABSENT: Any = object()
_LONGEST_VALUE = 80

# The bounds, and True if a higher number permits more.
_BOUNDS = {
    "minimum": False,
    "maximum": True,
    "minLength": False,
    "maxLength": True,
    "minItems": False,
    "maxItems": True,
    "minProperties": False,
    "maxProperties": True,
}
_WIDER = (("integer", "number"), ("integer", "int-or-string"), ("string", "int-or-string"))
_EXCLUSIVE = ("exclusiveMinimum", "exclusiveMaximum")
# Changes of these cannot be judged by their values.
_OPAQUE = ("pattern", "format", "multipleOf")
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")
# Every object has them, declared or not.
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
_LIST_KEYS = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys")

SURVIVES = "existing objects stay valid until this value changes (ratcheting)"
_STRICT = "ratcheting does not apply: writes to existing objects are refused until they conform"
_LOST = "values of existing objects are dropped at their next write"


def diff_schemas(before: Mapping[str, Any], after: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield the differences between two schemas of a version, in the order of the fields.

    Args:
        before: The ``openAPIV3Schema`` in the cluster.
        after: The new one.
        version: The version, for the paths.
    """
    for finding in _diff_node(before, after, f"{version} "):
        yield msgspec.structs.replace(finding, path=finding.path.rstrip())


def _diff_node(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from _diff_type(before, after, path)
    if not _is_type_kept(before, after):  # the rest cannot be compared
        return
    yield from _diff_values(before, after, path)
    yield from _diff_rules(before, after, path)
    yield from _diff_structure(before, after, path)
    yield from _diff_fields(before, after, path)
    for name, step in (("items", "[]"), ("additionalProperties", "{}")):
        one, other = before.get(name), after.get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _diff_node(one, other, f"{path}{step}")
    one, other = before.get("additionalProperties"), after.get("additionalProperties")
    if one and not other and not _keeps_unknown(after):
        yield Finding("breaking", path, "no longer a mapping with any keys", _LOST)


def _diff_type(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    was, now = _describe_type(before), _describe_type(after)
    if not _is_type_kept(before, after):
        yield Finding("breaking", path, f"type changed from {was} to {now}", SURVIVES)
        return
    if was != now:
        yield Finding("note", path, f"type widened from {was} to {now}")
    if before.get("nullable") and not after.get("nullable"):
        yield Finding("breaking", path, "null is no longer valid", SURVIVES)


def _is_type_kept(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return True if each value of the old type has the new type."""
    was, now = _describe_type(before), _describe_type(after)
    return now in (was, "any") or (was, now) in _WIDER


def _describe_type(schema: Mapping[str, Any]) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(schema.get("type") or "any")


def _diff_values(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    yield from _diff_enum(before.get("enum"), after.get("enum"), path)
    for name, permits_more in _BOUNDS.items():
        was, now = before.get(name), after.get(name)
        if was != now:
            is_tighter = now is not None and (was is None or (now < was) == permits_more)
            yield _describe_value(name, was, now, path, breaks=is_tighter)
    for name in _EXCLUSIVE:
        if bool(before.get(name)) != bool(after.get(name)):
            yield _describe_value(name, before.get(name), after.get(name), path, breaks=bool(after.get(name)))
    for name in _OPAQUE:
        was, now = before.get(name), after.get(name)
        if was != now:
            yield _describe_value(name, was, now, path, breaks=now is not None)
    was, now = before.get("default", _ABSENT), after.get("default", _ABSENT)
    if was is _ABSENT and now is not _ABSENT:
        yield Finding(
            "note", path, f"default {_show(now)} added", "objects without the field get it when they are read"
        )
    elif was is not _ABSENT and now != was:
        change = "removed" if now is _ABSENT else f"changed to {_show(now)}"
        yield Finding("breaking", path, f"default {_show(was)} {change}", "it changes objects that omit the field")


def _diff_enum(was: Sequence[Any] | None, now: Sequence[Any] | None, path: str) -> Iterator[Finding]:
    if was == now:
        return
    if not was:
        if now:
            yield Finding("breaking", path, f"restricted to {_show(now)}", SURVIVES)
        return
    if not now:
        yield Finding("note", path, f"no longer restricted to {_show(was)}")
        return
    if removed := [value for value in was if value not in now]:
        yield Finding("breaking", path, f"no longer permits {_show(removed)}", SURVIVES)
    if added := [value for value in now if value not in was]:
        yield Finding("note", path, f"also permits {_show(added)}", "clients that know all values meet a new one")


def _describe_value(name: str, was: Any, now: Any, path: str, *, breaks: bool) -> Finding:
    if was is None:
        change = f"{name} {_show(now)} added"
    elif now is None:
        change = f"{name} {_show(was)} removed"
    else:
        change = f"{name} changed from {_show(was)} to {_show(now)}"
    return Finding("breaking", path, change, SURVIVES) if breaks else Finding("note", path, change)


def _diff_rules(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    was, now = _list_rules(before), _list_rules(after)
    for rule in now:
        if rule not in was:
            if "oldSelf" in rule:
                advice = "the rule compares with the stored value, so it only restricts changes"
            else:
                advice = _STRICT if path.endswith(" ") else SURVIVES
            yield Finding("breaking", path, f"rule added: {_cut(rule)}", advice)
    for rule in was:
        if rule not in now:
            yield Finding("note", path, f"rule removed: {_cut(rule)}")


def _list_rules(schema: Mapping[str, Any]) -> list[str]:
    listed = schema.get("x-kubernetes-validations")
    return [str(entry.get("rule")) for entry in listed or () if isinstance(entry, Mapping)]


def _diff_structure(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    for name in _JUNCTORS:
        was, now = before.get(name), after.get(name)
        # The server adds these two to each int-or-string that has them not.
        if was != now and not (name == "anyOf" and after.get("x-kubernetes-int-or-string")):
            if now is None:
                yield Finding("note", path, f"{name} removed")
            else:
                yield Finding("breaking", path, f"{name} {'added' if was is None else 'changed'}", _STRICT)
    was, now = ([schema.get(name) for name in _LIST_KEYS] for schema in (before, after))
    if was != now and {was[0] or "atomic", now[0] or "atomic"} != {"atomic"}:
        kinds = [(kind or "atomic") + (f" by {', '.join(keys)}" if keys else "") for kind, keys in (was, now)]
        advice = "it changes which items are the same; duplicates are refused" if now[0] in ("map", "set") else ""
        yield Finding("breaking", path, f"list type changed from {kinds[0]} to {kinds[1]}", advice)
    if (before.get("x-kubernetes-map-type") == "atomic") != (after.get("x-kubernetes-map-type") == "atomic"):
        yield Finding("note", path, "map type changed", "field managers own the mapping as a whole, or field by field")
    if before.get("x-kubernetes-preserve-unknown-fields") and not _keeps_unknown(after):
        yield Finding("breaking", path, "unknown fields are no longer kept", _LOST)
    if not before.get("x-kubernetes-embedded-resource") and after.get("x-kubernetes-embedded-resource"):
        yield Finding("breaking", path, "must be a whole object with apiVersion, kind and metadata", _STRICT)


def _keeps_unknown(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("x-kubernetes-preserve-unknown-fields"))


def _diff_fields(before: Mapping[str, Any], after: Mapping[str, Any], path: str) -> Iterator[Finding]:
    was, now = before.get("properties") or {}, after.get("properties") or {}
    required_before, required = before.get("required") or (), after.get("required") or ()
    for name in [*was, *(name for name in now if name not in was)]:
        below = f"{path}.{name}"
        if path.endswith(" ") and name in _OBJECT_FIELDS:
            continue
        if name not in now:
            if not (_keeps_unknown(after) or after.get("additionalProperties")):
                yield Finding("breaking", below, "removed", _LOST)
            else:
                yield Finding("note", below, "no longer declared; its values are kept")
            continue
        is_new = name not in was
        if name in required and (is_new or name not in required_before):
            has_default = "default" in now[name]
            what = "added and required" if is_new else "required"
            if has_default:
                yield Finding("note", below, f"{what}, with default {_show(now[name]['default'])}")
            else:
                # The root itself never ratchets.
                yield Finding("breaking", below, what, _STRICT if path.endswith(" ") else SURVIVES)
        elif is_new:
            yield Finding("note", below, "added")
        elif name in required_before and name not in required:
            yield Finding("note", below, "no longer required", "clients that rely on it can miss it")
        if not is_new:
            yield from _diff_node(was[name], now[name], below)


def _show(value: Any) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}…"

"""Validation of a whole schema at the declaration of the class, with the errors that the server would return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from konverge._internal.crd.cel_validation import validate_expression
from konverge._internal.crd.constraints import validate_rule
from konverge._internal.crd.default_validation import validate_default
from konverge._internal.kube import Object

__all__ = ["validate_schema"]

# Fields that rules can read although no class declares them.
_ROOT: Object = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"type": "object", "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}}},
    "status": {"type": "object"},
}
_ROOT_FIELDS: dict[str, Object] = {"": _ROOT, "status": {"conditions": {"type": "array"}}}
_SCALARS = frozenset({"string", "integer", "number", "boolean"})


def validate_schema(schema: Object, root_rules: Sequence[Object] = ()) -> list[str]:
    """Return the errors of the rules, the list keys and the defaults of a schema, one sentence each.

    Args:
        schema: The structural schema of a custom resource class.
        root_rules: Rules for the whole object, which are not yet in its schema.
    """
    root = _with_fields(schema, _ROOT)
    found = [mistake for rule in root_rules for mistake in _validate_rule(rule, root)]
    for path, node in _iter_nodes(schema, ""):
        where = f"{path}: " if path else ""
        seen = _with_fields(node, _ROOT_FIELDS[path]) if path in _ROOT_FIELDS else node
        found += [f"{where}{mistake}" for rule in _list_rules(node) for mistake in _validate_rule(rule, seen)]
        found += [f"{where}{mistake}" for mistake in _validate_list_keys(node)]
        found += [f"{where}{mistake}" for mistake in validate_default(node)]
    return found


def _with_fields(schema: Object, fields: Object) -> Object:
    return {**schema, "properties": schema.get("properties", {}) | fields}


def _validate_rule(rule: Object, schema: Object) -> Iterator[str]:
    yield from validate_rule(rule)
    for expression in (rule.get("rule", ""), rule.get("messageExpression", "")):
        if expression.strip():
            yield from validate_expression(expression, schema)


def _list_rules(node: Object) -> Sequence[Object]:
    listed: Sequence[Object] = node.get("x-kubernetes-validations", ())
    return listed


def _iter_nodes(node: Object, path: str) -> Iterator[tuple[str, Object]]:
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from _iter_nodes(inner, f"{path}.{name}" if path else name)
    if "items" in node:
        yield from _iter_nodes(node["items"], f"{path}[]")
    if "additionalProperties" in node:
        yield from _iter_nodes(node["additionalProperties"], f"{path}{{}}")


def _validate_list_keys(node: Object) -> Iterator[str]:
    if node.get("x-kubernetes-list-type") != "map":
        return
    if node.get("type") != "array":
        yield f"list_map: expected a list, found type {node.get('type', 'any')}"
        return
    items = node["items"]
    properties = items.get("properties", {})
    for key in node.get("x-kubernetes-list-map-keys", ()):
        field = properties.get(key)
        if field is None:
            names = ", ".join(properties) if properties else "there are none"
            yield f"list_map: expected a JSON field of the items ({names}), found {key!r}"
        elif field.get("type") not in _SCALARS:
            yield f"list_map: key {key!r}: expected a string, number or boolean, found {field.get('type', 'any')}"
        elif key not in items.get("required", ()) and "default" not in field:
            yield f"list_map: key {key!r}: expected a required field or one with a default, found an optional field"

"""The rules of CustomResourceDefinitions, and what makes a schema structural."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from konverge.apply import Schema
from konverge.kube import Object
from konverge.kube.names import dns_subdomain_mistakes, service_name_mistakes
from konverge.kube.patterns import Pattern, PatternSyntaxError
from konverge.localcluster.pruning import prune_value
from konverge.localcluster.validation.client_configs import client_config_mistakes, review_version_mistakes
from konverge.localcluster.validation.mistakes import IMMUTABLE, Mistake, forbidden, invalid, required, unsupported
from konverge.localcluster.validation.schema import schema_mistakes
from konverge.localcluster.validation.stated_rules import default_rule_mistakes

__all__ = ["definition_mistakes", "definition_update_mistakes"]

_SCOPES = ("Cluster", "Namespaced")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_VERSIONS = "spec.versions"


def definition_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group", "")
    wanted = f"{names.get('plural', '')}.{group}"
    if obj["metadata"].get("name") != wanted:
        yield invalid("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    else:
        for detail in dns_subdomain_mistakes(group):
            yield invalid("spec.group", group, detail)
        if "." not in group:
            yield invalid("spec.group", group, "should be a domain with at least one dot")
    if spec.get("scope") not in _SCOPES:
        yield unsupported("spec.scope", spec.get("scope", ""), _SCOPES)
    yield from _name_mistakes(names)
    yield from _conversion_mistakes(spec.get("conversion") or {})
    versions = spec.get("versions") or []
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        yield invalid(
            _VERSIONS,
            [version.get("name") for version in versions],
            "must have exactly one version marked as storage version",
        )
    for index, version in enumerate(versions):
        yield from _version_mistakes(version, f"{_VERSIONS}[{index}]")
    for at, schema in _schemas(versions):
        yield from _schema_mistakes(schema, at)


def _schemas(versions: list[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Each schema and where the server says that it is: one that all versions have in common it keeps once."""
    found = [_schema_of(version) for version in versions]
    if all(schema == found[0] for schema in found):
        return [("spec.validation.openAPIV3Schema", schema) for schema in found[:1] if schema is not None]
    fields = [f"{_VERSIONS}[{index}].schema.openAPIV3Schema" for index in range(len(found))]
    return [(field, schema) for field, schema in zip(fields, found, strict=True) if schema is not None]


def _name_mistakes(names: Mapping[str, Any]) -> Iterator[Mistake]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name, "")
        if not value and name in ("plural", "kind"):
            yield required(f"spec.names.{name}")
        elif value:
            for detail in service_name_mistakes(value.lower()):
                yield invalid(f"spec.names.{name}", value, detail)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _conversion_mistakes(conversion: Mapping[str, Any]) -> Iterator[Mistake]:
    """The server speaks of the parts of the webhook by the names that they have inside of it."""
    field, strategy = "spec.conversion", conversion.get("strategy")
    webhook = conversion.get("webhook") or {}
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    at_config, at_versions = f"{field}.webhookClientConfig", f"{field}.conversionReviewVersions"
    if strategy == "Webhook":
        if config is None:
            yield required(at_config, "required when strategy is set to Webhook")
        else:
            yield from client_config_mistakes(config, at_config)
        yield from review_version_mistakes(versions, at_versions)
        return
    if strategy not in (None, "None"):
        yield unsupported(f"{field}.strategy", strategy, ("None", "Webhook"))
    told = "should not be set when strategy is not set to Webhook"
    if config is not None:
        yield forbidden(at_config, told)
    if versions:
        yield forbidden(at_versions, told)


def _version_mistakes(version: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    for detail in service_name_mistakes(version.get("name", "")):
        yield invalid(f"{field}.name", version.get("name", ""), detail)
    if _schema_of(version) is None:
        yield required(f"{field}.schema.openAPIV3Schema", "schemas are required")


def _schema_of(version: Mapping[str, Any]) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _schema_mistakes(schema: Mapping[str, Any], at: str) -> Iterator[Mistake]:
    if schema.get("type") != "object":
        if "type" not in schema:
            yield required(f"{at}.type", "must not be empty at the root")
        else:
            yield invalid(f"{at}.type", schema["type"], "must be object at the root")
    yield from _structure_mistakes(schema, at)
    yield from _default_mistakes(schema, at)


def _structure_mistakes(schema: Any, field: str) -> Iterator[Mistake]:
    if not isinstance(schema, Mapping):
        return
    kind = schema.get("type")
    is_open = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not is_open and not field.endswith("openAPIV3Schema"):
        yield required(f"{field}.type", "must not be empty for specified object fields")
    elif kind is not None and kind not in _TYPES:
        yield unsupported(f"{field}.type", kind, _TYPES)
    if schema.get("pattern"):
        yield from _pattern_mistakes(schema["pattern"], f"{field}.pattern")
    if "properties" in schema and schema.get("additionalProperties"):
        yield forbidden(f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive")
    if kind == "array" and "items" not in schema:
        yield required(f"{field}.items", "must be specified")
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        told = "must be specified if x-kubernetes-list-type is map"
        yield required(f"{field}.x-kubernetes-list-map-keys", told)
    for name, below in (schema.get("properties") or {}).items():
        yield from _structure_mistakes(below, f"{field}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _structure_mistakes(schema.get(name), f"{field}.{name}")


def _default_mistakes(schema: Any, field: str) -> Iterator[Mistake]:
    """What each schema refuses of its own default; nobody looks at those of a mapping's values."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("default") is not None:
        yield from _own_default_mistakes(schema, f"{field}.default")
    for name, below in (schema.get("properties") or {}).items():
        yield from _default_mistakes(below, f"{field}.properties[{name}]")
    yield from _default_mistakes(schema.get("items"), f"{field}.items")


def _own_default_mistakes(schema: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    read, default = Schema(schema), schema["default"]
    if prune_value(deepcopy(default), read):
        yield invalid(field, default, "must not have unknown fields")
    for mistake in list(schema_mistakes(default, read)) or default_rule_mistakes(default, read):
        # Whether items of a set or of a list with keys repeat is first asked of an object that has the default.
        if mistake.reason != "FieldValueDuplicate":
            below = "" if mistake.field in ("", "<nil>") else f".{mistake.field}"
            yield replace(mistake, field=f"{field}{below}")


def _pattern_mistakes(pattern: str, field: str) -> Iterator[Mistake]:
    try:
        Pattern(pattern)
    except PatternSyntaxError as mistake:
        told = f"must be a valid regular expression, but isn't: error parsing regexp: {mistake}"
        yield invalid(field, pattern, told)


def definition_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """What objects are stored under stays."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for name in ("group", "scope"):
        if before.get(name) != after.get(name):
            yield invalid(f"spec.{name}", after.get(name, ""), IMMUTABLE)
    for name in ("kind", "plural"):
        was, now = ((spec.get("names") or {}).get(name, "") for spec in (before, after))
        if was != now:
            yield invalid(f"spec.names.{name}", now, IMMUTABLE)
    served = {version.get("name") for version in after.get("versions") or ()}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in served:
            told = "must appear in spec.versions"
            yield invalid(f"status.storedVersions[{index}]", name, told)

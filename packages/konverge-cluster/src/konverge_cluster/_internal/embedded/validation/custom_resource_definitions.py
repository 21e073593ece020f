"""Validation of CustomResourceDefinitions, including the rules for structural schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from konverge._internal.apply import Schema
from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_subdomain, validate_service_name
from konverge._internal.kube.re2 import Pattern, PatternSyntaxError
from konverge_cluster._internal.embedded.pruning import prune_value
from konverge_cluster._internal.embedded.validation.cel_expressions import (
    CelExpression,
    InvalidCelError,
    UnsupportedCelError,
    can_evaluate,
)
from konverge_cluster._internal.embedded.validation.cel_rules import (
    NO_PACKAGE,
    format_skipped_rule,
    validate_default_rules,
)
from konverge_cluster._internal.embedded.validation.client_configs import (
    validate_client_config,
    validate_review_versions,
)
from konverge_cluster._internal.embedded.validation.custom_resources import validate_value
from konverge_cluster._internal.embedded.validation.field_errors import (
    IMMUTABLE,
    FieldError,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)

__all__ = ["list_definition_warnings", "validate_definition", "validate_definition_update"]

_SCOPES = ("Cluster", "Namespaced")
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_VERSIONS = "spec.versions"


def validate_definition(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a CustomResourceDefinition."""
    spec = obj.get("spec") or {}
    names, group = spec.get("names") or {}, spec.get("group", "")
    expected = f"{names.get('plural', '')}.{group}"
    if obj["metadata"].get("name") != expected:
        yield field_invalid("metadata.name", obj["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield field_required("spec.group")
    else:
        for detail in validate_dns_subdomain(group):
            yield field_invalid("spec.group", group, detail)
        if "." not in group:
            yield field_invalid("spec.group", group, "should be a domain with at least one dot")
    if spec.get("scope") not in _SCOPES:
        yield field_not_supported("spec.scope", spec.get("scope", ""), _SCOPES)
    yield from _validate_names(names)
    yield from _validate_conversion(spec.get("conversion") or {})
    versions = spec.get("versions") or []
    stored = [version for version in versions if version.get("storage")]
    if len(stored) != 1:
        yield field_invalid(
            _VERSIONS,
            [version.get("name") for version in versions],
            "must have exactly one version marked as storage version",
        )
    for index, version in enumerate(versions):
        yield from _validate_version(version, f"{_VERSIONS}[{index}]")
    for at, schema in _list_schemas(versions):
        yield from _validate_schema(schema, at)


def _list_schemas(versions: list[Mapping[str, Any]]) -> list[tuple[str, Any]]:
    """Return each schema with its path in messages: the server stores a schema of all versions only once."""
    schemas = [_get_schema(version) for version in versions]
    if all(schema == schemas[0] for schema in schemas):
        return [("spec.validation.openAPIV3Schema", schema) for schema in schemas[:1] if schema is not None]
    fields = [f"{_VERSIONS}[{index}].schema.openAPIV3Schema" for index in range(len(schemas))]
    return [(field, schema) for field, schema in zip(fields, schemas, strict=True) if schema is not None]


def _validate_names(names: Mapping[str, Any]) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name, "")
        if not value and name in ("plural", "kind"):
            yield field_required(f"spec.names.{name}")
        elif value:
            for detail in validate_service_name(value.lower()):
                yield field_invalid(f"spec.names.{name}", value, detail)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield field_invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same")


def _validate_conversion(conversion: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors of a conversion; the server names fields of the webhook relative to it."""
    field, strategy = "spec.conversion", conversion.get("strategy")
    webhook = conversion.get("webhook") or {}
    config, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    at_config, at_versions = f"{field}.webhookClientConfig", f"{field}.conversionReviewVersions"
    if strategy == "Webhook":
        if config is None:
            yield field_required(at_config, "required when strategy is set to Webhook")
        else:
            yield from validate_client_config(config, at_config)
        yield from validate_review_versions(versions, at_versions)
        return
    if strategy not in (None, "None"):
        yield field_not_supported(f"{field}.strategy", strategy, ("None", "Webhook"))
    detail = "should not be set when strategy is not set to Webhook"
    if config is not None:
        yield field_forbidden(at_config, detail)
    if versions:
        yield field_forbidden(at_versions, detail)


def _validate_version(version: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    for detail in validate_service_name(version.get("name", "")):
        yield field_invalid(f"{field}.name", version.get("name", ""), detail)
    if _get_schema(version) is None:
        yield field_required(f"{field}.schema.openAPIV3Schema", "schemas are required")


def _get_schema(version: Mapping[str, Any]) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")


def _validate_schema(schema: Mapping[str, Any], at: str) -> Iterator[FieldError]:
    if schema.get("type") != "object":
        if "type" not in schema:
            yield field_required(f"{at}.type", "must not be empty at the root")
        else:
            yield field_invalid(f"{at}.type", schema["type"], "must be object at the root")
    yield from _validate_structure(schema, at)
    yield from _validate_defaults(schema, at)


def _validate_structure(schema: Any, field: str) -> Iterator[FieldError]:
    if not isinstance(schema, Mapping):
        return
    kind = schema.get("type")
    is_open = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not is_open and not field.endswith("openAPIV3Schema"):
        yield field_required(f"{field}.type", "must not be empty for specified object fields")
    elif kind is not None and kind not in _TYPES:
        yield field_not_supported(f"{field}.type", kind, _TYPES)
    if schema.get("pattern"):
        yield from _validate_pattern(schema["pattern"], f"{field}.pattern")
    if "properties" in schema and schema.get("additionalProperties"):
        yield field_forbidden(
            f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield field_forbidden(f"{field}.uniqueItems", detail)
    if kind == "array" and not isinstance(schema.get("items"), Mapping):
        yield field_required(f"{field}.items", "must be specified")
    if schema.get("x-kubernetes-list-type") == "map" and not schema.get("x-kubernetes-list-map-keys"):
        detail = "must be specified if x-kubernetes-list-type is map"
        yield field_required(f"{field}.x-kubernetes-list-map-keys", detail)
    yield from _validate_rules(schema, field)
    for name, below in (schema.get("properties") or {}).items():
        yield from _validate_structure(below, f"{field}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _validate_structure(schema.get(name), f"{field}.{name}")


def _validate_rules(schema: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    """Yield errors of CEL rules that no server can compile."""
    for at, text in _iter_rules(schema, field) if can_evaluate() else ():
        try:
            CelExpression(text)
        except InvalidCelError as error:
            yield field_invalid(at, text, f"compilation failed: {error}")
        except UnsupportedCelError:
            continue


def _iter_rules(schema: Mapping[str, Any], field: str) -> Iterator[tuple[str, str]]:
    for index, entry in enumerate(schema.get("x-kubernetes-validations") or ()):
        for name in ("rule", "messageExpression"):
            if isinstance(entry, Mapping) and entry.get(name):
                yield f"{field}.x-kubernetes-validations[{index}].{name}", str(entry[name])


def list_definition_warnings(definition: Object) -> list[str]:
    """Return the warnings about CEL rules that are not checked here."""
    found: list[str] = []
    for at, schema in _list_schemas((definition.get("spec") or {}).get("versions") or []):
        found += _list_skipped_rules(schema, at)
    return found


def _list_skipped_rules(schema: Any, field: str) -> Iterator[str]:
    if not isinstance(schema, Mapping):
        return
    for at, text in _iter_rules(schema, field):
        try:
            if not can_evaluate():
                raise UnsupportedCelError(NO_PACKAGE)
            CelExpression(text)
        except UnsupportedCelError as error:
            yield format_skipped_rule(text, at, str(error))
    for name, below in (schema.get("properties") or {}).items():
        yield from _list_skipped_rules(below, f"{field}.properties[{name}]")
    for name in ("items", "additionalProperties"):
        yield from _list_skipped_rules(schema.get(name), f"{field}.{name}")


def _validate_defaults(schema: Any, field: str) -> Iterator[FieldError]:
    """Yield errors of defaults in each schema; the server ignores those of a mapping's values."""
    if not isinstance(schema, Mapping):
        return
    if schema.get("default") is not None:
        yield from _validate_own_default(schema, f"{field}.default")
    for name, below in (schema.get("properties") or {}).items():
        yield from _validate_defaults(below, f"{field}.properties[{name}]")
    yield from _validate_defaults(schema.get("items"), f"{field}.items")


def _validate_own_default(schema: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    read, default = Schema(schema), schema["default"]
    if prune_value(deepcopy(default), read):
        yield field_invalid(field, default, "must not have unknown fields")
    for error in list(validate_value(default, read)) or validate_default_rules(default, read):
        # Duplicate items in a set or a keyed list are only checked in an object that has the default.
        if error.reason != "FieldValueDuplicate":
            below = "" if error.field in ("", "<nil>") else f".{error.field}"
            yield replace(error, field=f"{field}{below}")


def _validate_pattern(pattern: str, field: str) -> Iterator[FieldError]:
    try:
        Pattern(pattern)
    except PatternSyntaxError as error:
        detail = f"must be a valid regular expression, but isn't: error parsing regexp: {error}"
        yield field_invalid(field, pattern, detail)


def validate_definition_update(old: Object, new: Object) -> Iterator[FieldError]:
    """Yield errors for changes of names under which objects are stored."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for name in ("group", "scope"):
        if before.get(name) != after.get(name):
            yield field_invalid(f"spec.{name}", after.get(name, ""), IMMUTABLE)
    for name in ("kind", "plural"):
        was, now = ((spec.get("names") or {}).get(name, "") for spec in (before, after))
        if was != now:
            yield field_invalid(f"spec.names.{name}", now, IMMUTABLE)
    served = {version.get("name") for version in after.get("versions") or ()}
    for index, name in enumerate((old.get("status") or {}).get("storedVersions") or ()):
        if name not in served:
            detail = "must appear in spec.versions"
            yield field_invalid(f"status.storedVersions[{index}]", name, detail)

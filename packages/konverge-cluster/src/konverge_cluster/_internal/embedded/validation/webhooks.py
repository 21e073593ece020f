"""Validation of ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.name_validation import validate_dns_subdomain
from konverge_cluster._internal.embedded.validation.client_configs import (
    validate_client_config,
    validate_review_versions,
)
from konverge_cluster._internal.embedded.validation.field_errors import (
    FieldError,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from konverge_cluster._internal.embedded.validation.selectors import validate_selector

__all__ = ["validate_webhook_configuration"]

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_SECONDS = 30
_SEGMENTS = 3


def validate_webhook_configuration(obj: Object) -> Iterator[FieldError]:
    """Yield the validation errors of a configuration of webhooks."""
    seen: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        yield from _validate_webhook(webhook, field)
        name = webhook.get("name", "")
        if name and name in seen:
            yield field_duplicate(f"{field}.name", name)
        seen.add(name)


def _validate_webhook(webhook: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    yield from _validate_name(webhook.get("name", ""), f"{field}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _validate_rule(rule, f"{field}.rules[{index}]")
    yield from _validate_choice(webhook, field, "failurePolicy", ("Fail", "Ignore"))
    yield from _validate_choice(webhook, field, "matchPolicy", ("Equivalent", "Exact"))
    yield from _validate_choice(webhook, field, "reinvocationPolicy", ("IfNeeded", "Never"))
    if webhook.get("sideEffects") is None:
        yield field_required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun")
    yield from _validate_choice(webhook, field, "sideEffects", _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds", _LONGEST_SECONDS)
    if not 1 <= seconds <= _LONGEST_SECONDS:
        detail = "the timeout value must be between 1 and 30 seconds"
        yield field_invalid(f"{field}.timeoutSeconds", seconds, detail)
    for name in ("namespaceSelector", "objectSelector"):
        yield from validate_selector(webhook.get(name) or {}, f"{field}.{name}")
    yield from validate_client_config(webhook.get("clientConfig") or {}, f"{field}.clientConfig")
    versions = webhook.get("admissionReviewVersions") or []
    at_versions = f"{field}.admissionReviewVersions"
    if not versions:
        yield field_required(at_versions, "must specify one of v1, v1beta1")
    yield from validate_review_versions(versions or ["v1"], at_versions)
    if webhook.get("matchConditions"):
        detail = "the embedded cluster does not evaluate match conditions (CEL)"
        yield field_forbidden(f"{field}.matchConditions", detail)


def _validate_name(name: str, field: str) -> Iterator[FieldError]:
    if not name:
        yield field_required(field)
        return
    details = list(validate_dns_subdomain(name))
    for detail in details:
        yield field_invalid(field, name, detail)
    if not details and len(name.split(".")) < _SEGMENTS:
        yield field_invalid(field, name, "should be a domain with at least three segments separated by dots")


def _validate_rule(rule: Mapping[str, Any], field: str) -> Iterator[FieldError]:
    operations = rule.get("operations") or []
    if not operations:
        yield field_required(f"{field}.operations")
    if "*" in operations and len(operations) > 1:
        yield field_invalid(f"{field}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield field_not_supported(f"{field}.operations[{index}]", operation, _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        listed = rule.get(name) or []
        if not listed:
            yield field_required(f"{field}.{name}")
        if "*" in listed and len(listed) > 1:
            yield field_invalid(f"{field}.{name}", listed, f"if '*' is present, must not specify other {what}")
    resources = rule.get("resources") or []
    if not resources:
        yield field_required(f"{field}.resources")
    if "*/*" in resources and len(resources) > 1:
        yield field_invalid(f"{field}.resources", resources, "if '*/*' is present, must not specify other resources")
    yield from _validate_choice(rule, field, "scope", ("*", "Cluster", "Namespaced"))


def _validate_choice(value: Mapping[str, Any], field: str, name: str, known: tuple[str, ...]) -> Iterator[FieldError]:
    if value.get(name) is not None and value[name] not in known:
        yield field_not_supported(f"{field}.{name}", value[name], known)

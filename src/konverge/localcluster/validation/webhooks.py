"""The rules of ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from konverge.kube import Object
from konverge.kube.names import dns_subdomain_mistakes
from konverge.localcluster.validation.client_configs import client_config_mistakes, review_version_mistakes
from konverge.localcluster.validation.mistakes import Mistake, duplicate, forbidden, invalid, required, unsupported
from konverge.localcluster.validation.selectors import selector_mistakes

__all__ = ["webhook_mistakes"]

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_SECONDS = 30
_SEGMENTS = 3


def webhook_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a configuration of webhooks."""
    seen: set[str] = set()
    for index, webhook in enumerate(obj.get("webhooks") or ()):
        field = f"webhooks[{index}]"
        yield from _one_mistakes(webhook, field)
        name = webhook.get("name", "")
        if name and name in seen:
            yield duplicate(f"{field}.name", name)
        seen.add(name)


def _one_mistakes(webhook: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    yield from _name_mistakes(webhook.get("name", ""), f"{field}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _rule_mistakes(rule, f"{field}.rules[{index}]")
    yield from _choice(webhook, field, "failurePolicy", ("Fail", "Ignore"))
    yield from _choice(webhook, field, "matchPolicy", ("Equivalent", "Exact"))
    yield from _choice(webhook, field, "reinvocationPolicy", ("IfNeeded", "Never"))
    if webhook.get("sideEffects") is None:
        yield required(f"{field}.sideEffects", "must specify one of None, NoneOnDryRun")
    yield from _choice(webhook, field, "sideEffects", _SIDE_EFFECTS)
    seconds = webhook.get("timeoutSeconds", _LONGEST_SECONDS)
    if not 1 <= seconds <= _LONGEST_SECONDS:
        told = "the timeout value must be between 1 and 30 seconds"
        yield invalid(f"{field}.timeoutSeconds", seconds, told)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_mistakes(webhook.get(name) or {}, f"{field}.{name}")
    yield from client_config_mistakes(webhook.get("clientConfig") or {}, f"{field}.clientConfig")
    versions = webhook.get("admissionReviewVersions") or []
    at_versions = f"{field}.admissionReviewVersions"
    if not versions:
        yield required(at_versions, "must specify one of v1, v1beta1")
    yield from review_version_mistakes(versions or ["v1"], at_versions)
    if webhook.get("matchConditions"):
        told = "the embedded cluster does not evaluate match conditions (CEL)"
        yield forbidden(f"{field}.matchConditions", told)


def _name_mistakes(name: str, field: str) -> Iterator[Mistake]:
    if not name:
        yield required(field)
        return
    details = list(dns_subdomain_mistakes(name))
    for detail in details:
        yield invalid(field, name, detail)
    if not details and len(name.split(".")) < _SEGMENTS:
        yield invalid(field, name, "should be a domain with at least three segments separated by dots")


def _rule_mistakes(rule: Mapping[str, Any], field: str) -> Iterator[Mistake]:
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{field}.operations")
    if "*" in operations and len(operations) > 1:
        yield invalid(f"{field}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{field}.operations[{index}]", operation, _OPERATIONS)
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        listed = rule.get(name) or []
        if not listed:
            yield required(f"{field}.{name}")
        if "*" in listed and len(listed) > 1:
            yield invalid(f"{field}.{name}", listed, f"if '*' is present, must not specify other {what}")
    resources = rule.get("resources") or []
    if not resources:
        yield required(f"{field}.resources")
    if "*/*" in resources and len(resources) > 1:
        yield invalid(f"{field}.resources", resources, "if '*/*' is present, must not specify other resources")
    yield from _choice(rule, field, "scope", ("*", "Cluster", "Namespaced"))


def _choice(value: Mapping[str, Any], field: str, name: str, known: tuple[str, ...]) -> Iterator[Mistake]:
    if value.get(name) is not None and value[name] not in known:
        yield unsupported(f"{field}.{name}", value[name], known)

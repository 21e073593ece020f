"""The selection of webhooks for a request: parsed configurations with their rules and selectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge._internal.kube import Object
from konverge._internal.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster._internal.embedded.resource_registry import ServedResource
from konverge_cluster._internal.embedded.storage import StoredObject

__all__ = ["ConfiguredWebhook", "Operation", "WebhookParser"]

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]

_CONFIGURATION_GROUP = "admissionregistration.k8s.io"
_EVERYTHING = LabelSelector()


@dataclass(frozen=True, slots=True)
class _WebhookRule:
    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[str, ...]
    scope: str

    def matches(self, operation: str, resource: ServedResource, subresource: str) -> bool:
        if not _matches_any(self.operations, operation):
            return False
        gvk = resource.gvk
        if not (_matches_any(self.groups, gvk.group) and _matches_any(self.versions, gvk.version)):
            return False
        if self.scope != "*" and (self.scope == "Namespaced") != resource.mapping.namespaced:
            return False
        return any(_matches_resource(pattern, resource.mapping.plural, subresource) for pattern in self.resources)


def _matches_any(patterns: frozenset[str], word: str) -> bool:
    return "*" in patterns or word in patterns


def _matches_resource(pattern: str, plural: str, subresource: str) -> bool:
    """Return True if ``pods``, ``pods/status``, ``pods/*``, ``*/status``, ``*`` or ``*/*`` matches the resource."""
    name, has_slash, part = pattern.partition("/")
    if name not in ("*", plural):
        return False
    if name == "*" and not has_slash:
        return not subresource
    return part in ("*", subresource)


@dataclass(frozen=True, slots=True)
class ConfiguredWebhook:
    """One webhook of a configuration.

    Attributes:
        name: The name of the webhook.
        configuration: The name of its configuration.
        client_config: The client configuration.
        rules: The rules for requests.
        namespace_selector: The selector of namespaces.
        object_selector: The selector of objects.
        ignores_failure: True if a request continues when the call fails.
        is_exact: True if only the versions in the rules count, not others of the same resource.
        timeout_seconds: The time limit of a call in seconds.
        is_reinvoked: True to call it again after changes by later webhooks.
    """

    name: str
    configuration: str
    client_config: Mapping[str, Any]
    rules: tuple[_WebhookRule, ...]
    namespace_selector: LabelSelector
    object_selector: LabelSelector
    ignores_failure: bool
    is_exact: bool
    timeout_seconds: int
    is_reinvoked: bool

    def match_resource(
        self, operation: Operation, resource: ServedResource, subresource: str, versions: Iterable[ServedResource]
    ) -> ServedResource | None:
        """Return the version of the resource for which this webhook is called; None if it is not called.

        Args:
            operation: The operation.
            resource: The resource of the request.
            subresource: The subresource; empty for the object itself.
            versions: All versions that serve the same objects.
        """
        if resource.gvk.group == _CONFIGURATION_GROUP:
            # Otherwise a webhook that rejects everything could not be removed.
            return None
        candidates = [resource] if self.is_exact else [resource, *versions]
        for candidate in candidates:
            if any(rule.matches(operation, candidate, subresource) for rule in self.rules):
                return candidate
        return None

    def selects(self, namespace_labels: Mapping[str, str] | None, objects: Sequence[Object | None]) -> bool:
        """Return True if the selectors match.

        Args:
            namespace_labels: The labels of the namespace; None for a cluster-scoped object.
            objects: The object before and after the write; one match is enough.
        """
        if namespace_labels is not None and not self.namespace_selector.matches(namespace_labels):
            return False
        return any(
            self.object_selector.matches(obj["metadata"].get("labels") or {}) for obj in objects if obj is not None
        )


class WebhookParser:
    """The webhooks of the stored configurations of one kind; each configuration is parsed once."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[StoredObject, tuple[ConfiguredWebhook, ...]]] = {}

    def list_webhooks(self, configurations: Sequence[StoredObject]) -> list[ConfiguredWebhook]:
        """Return all webhooks in the order of their calls.

        Args:
            configurations: The configurations in the order of their names.
        """
        if len(self._read) > 2 * len(configurations):
            self._read.clear()
        webhooks_in_order: list[ConfiguredWebhook] = []
        for stored in configurations:
            cached = self._read.get(stored.key.name)
            if cached is None or cached[0] is not stored:
                webhooks = tuple(
                    _parse_webhook(webhook, stored.key.name)
                    for webhook in stored.object.get("webhooks") or ()
                    if webhook.get("name")
                )
                cached = self._read[stored.key.name] = (stored, webhooks)
            webhooks_in_order.extend(cached[1])
        return webhooks_in_order


def _parse_webhook(webhook: Mapping[str, Any], configuration: str) -> ConfiguredWebhook:
    return ConfiguredWebhook(
        name=webhook["name"],
        configuration=configuration,
        client_config=webhook.get("clientConfig") or {},
        rules=tuple(
            _WebhookRule(
                operations=frozenset(rule.get("operations") or ()),
                groups=frozenset(rule.get("apiGroups") or ()),
                versions=frozenset(rule.get("apiVersions") or ()),
                resources=tuple(rule.get("resources") or ()),
                scope=rule.get("scope") or "*",
            )
            for rule in webhook.get("rules") or ()
        ),
        namespace_selector=_parse_selector(webhook.get("namespaceSelector")),
        object_selector=_parse_selector(webhook.get("objectSelector")),
        ignores_failure=webhook.get("failurePolicy") == "Ignore",
        is_exact=webhook.get("matchPolicy") == "Exact",
        timeout_seconds=webhook.get("timeoutSeconds") or 10,
        is_reinvoked=webhook.get("reinvocationPolicy") == "IfNeeded",
    )


def _parse_selector(value: Mapping[str, Any] | None) -> LabelSelector:
    try:
        return LabelSelector.from_object(value or {}) or _EVERYTHING
    except SelectorSyntaxError:
        return _EVERYTHING

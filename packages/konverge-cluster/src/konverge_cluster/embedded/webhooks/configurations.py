"""Which webhooks are asked about a request: the configurations, read, and their rules and selectors applied."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from konverge.kube import Object
from konverge.kube.selectors import LabelSelector, SelectorSyntaxError
from konverge_cluster.embedded.resource_registry import ServedResource
from konverge_cluster.embedded.storage import StoredObject

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
    """Whether ``pods``, ``pods/status``, ``pods/*``, ``*/status``, ``*`` or ``*/*`` names the resource."""
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
        name: Its name.
        configuration: The name of its configuration.
        client_config: How it is reached.
        rules: What it is asked about.
        namespace_selector: In which namespaces.
        object_selector: About which objects.
        ignores_failure: Whether a request goes on when it cannot be asked.
        is_exact: Whether only the versions that the rules name count, and not others of the same resource.
        timeout_seconds: How long it may take.
        is_reinvoked: Whether it wants to see what later webhooks changed.
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
        """The version of the resource in which this webhook is asked about a request; None when it is not asked.

        Args:
            operation: What is done.
            resource: The resource of the request.
            subresource: Which part of it; empty for the object itself.
            versions: All versions in which the same objects are served.
        """
        if resource.gvk.group == _CONFIGURATION_GROUP:
            # So that a webhook that refuses everything can be taken away.
            return None
        candidates = [resource] if self.is_exact else [resource, *versions]
        for candidate in candidates:
            if any(rule.matches(operation, candidate, subresource) for rule in self.rules):
                return candidate
        return None

    def selects(self, namespace_labels: Mapping[str, str] | None, objects: Sequence[Object | None]) -> bool:
        """Tell whether the selectors match.

        Args:
            namespace_labels: The labels of the namespace; None for an object of the cluster.
            objects: The object before and after; either matching is enough.
        """
        if namespace_labels is not None and not self.namespace_selector.matches(namespace_labels):
            return False
        return any(
            self.object_selector.matches(obj["metadata"].get("labels") or {}) for obj in objects if obj is not None
        )


class WebhookParser:
    """The webhooks of the stored configurations of one kind, each read once."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[StoredObject, tuple[ConfiguredWebhook, ...]]] = {}

    def list_webhooks(self, configurations: Sequence[StoredObject]) -> list[ConfiguredWebhook]:
        """All webhooks, in the order in which they are called.

        Args:
            configurations: The configurations, in the order of their names.
        """
        if len(self._read) > 2 * len(configurations):
            self._read.clear()
        found: list[ConfiguredWebhook] = []
        for stored in configurations:
            known = self._read.get(stored.key.name)
            if known is None or known[0] is not stored:
                webhooks = tuple(
                    _parse_webhook(each, stored.key.name)
                    for each in stored.object.get("webhooks") or ()
                    if each.get("name")
                )
                known = self._read[stored.key.name] = (stored, webhooks)
            found.extend(known[1])
        return found


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

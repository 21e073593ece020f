"""Fields that a resource may have in the file besides the short forms of its kind, by kind."""

from __future__ import annotations

from typing import Any

from msgspec import field

from konverge_box._internal.file.model import ConditionalEntry, ConditionSpec, ForEach, Number, ObjectReference, TlsSpec
from konverge_box._internal.file.string_formats import ApiVersion, Duration, KindName

__all__ = [
    "ConfigMapEntry",
    "CustomEntry",
    "IngressEntry",
    "PodsEntry",
    "ResourceEntry",
    "ScalingEntry",
    "SecretEntry",
    "ServiceEntry",
    "get_entry_type",
]


class ResourceEntry(ConditionalEntry, frozen=True, kw_only=True):
    """One resource; ``manifest`` is merged over the short forms.

    Its name is the custom resource's by default; with ``forEach`` also the ``key`` of the item, after a dash.

    It is created once all of ``waitFor`` hold; until then it and the entries after it in its group wait. It is ready
    when all of ``readyWhen`` hold, instead of by the rule of its kind; they read the object in the cluster as ``self``.
    Both accept expressions that are true or false in place of conditions. ``adopt``
    applies to an existing object of its name that the custom resource does not own: true takes it over, false waits
    until it is gone (default: the custom resource's ``reconcile.adopt``).
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    for_each: tuple[ForEach, ...] = ()
    wait_for: tuple[ConditionSpec | str, ...] = ()
    ready_when: tuple[ConditionSpec | str, ...] = ()
    reconcile: bool = False
    adopt: bool | None = None
    manifest: dict[str, Any] = field(default_factory=dict)


class PodsEntry(ResourceEntry, frozen=True, kw_only=True):
    """A kind with pods: its short forms describe one container (default: ``main``); ``port`` is its only port."""

    container_name: str = "main"
    port: Number | None = None


class ServiceEntry(ResourceEntry, frozen=True, kw_only=True):
    """A Service with one port; ``targetPort`` is ``port`` by default."""

    port: Number | None = None
    target_port: Number | None = None


class IngressEntry(ResourceEntry, frozen=True, kw_only=True):
    """An Ingress for one host and path; its backend is the Service of the same name by default."""

    host: str | None = None
    path: str = "/"
    service_name: str = ""
    service_port: Number = 80


class SecretEntry(ResourceEntry, frozen=True, kw_only=True):
    """A Secret whose values are given, copied, generated once, rotated after a time, or generated as a certificate."""

    once: bool = False
    rotate_after: Duration | None = None
    tls: TlsSpec | None = None
    from_secret: ObjectReference | None = None
    to_namespaces: tuple[str, ...] | str = ()


class ConfigMapEntry(ResourceEntry, frozen=True, kw_only=True):
    """A ConfigMap whose data is given or copied."""

    from_config_map: ObjectReference | None = None
    to_namespaces: tuple[str, ...] | str = ()


class ScalingEntry(ResourceEntry, frozen=True, kw_only=True):
    """A HorizontalPodAutoscaler; it scales the Deployment of the same name by default."""

    targetCPUUtilizationPercentage: Number | None = None  # as Kubernetes spells it


class CustomEntry(ResourceEntry, frozen=True, kw_only=True):
    """An object of any other kind; it is ready when all ``requiredConditions`` are True."""

    api_version: ApiVersion | None = None
    kind: KindName | None = None
    required_conditions: tuple[str, ...] = ()


_BY_KEY: dict[str, type[ResourceEntry]] = {
    "secrets": SecretEntry,
    "configMaps": ConfigMapEntry,
    "services": ServiceEntry,
    "ingresses": IngressEntry,
    "horizontalPodAutoscalers": ScalingEntry,
    "custom": CustomEntry,
}


def get_entry_type(key: str, *, has_pods: bool) -> type[ResourceEntry]:
    """Return the entry type for the resources of a kind."""
    return _BY_KEY.get(key, PodsEntry if has_pods else ResourceEntry)

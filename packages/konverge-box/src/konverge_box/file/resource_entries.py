"""What a resource may have in the file besides its kind's short forms, by kind."""

from __future__ import annotations

from typing import Any

from msgspec import field

from konverge_box.file.model import ConditionalEntry, ConditionSpec, ForEach, Number, ObjectReference, TlsSpec
from konverge_box.file.string_formats import ApiVersion, Duration, KindName

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
    """Any resource. Its name is the custom resource's when not given; ``manifest`` is merged over the short forms.

    It is made once all of ``waitFor`` hold; until then what comes after it in its group waits, too. ``adopt`` decides
    over an object of its name that exists already and is not the custom resource's: true takes it over, false waits
    until it is gone; as the custom resource's ``reconcile.adopt`` says when not given.
    """

    name: str = ""
    namespace: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    for_each: ForEach | None = None
    wait_for: tuple[ConditionSpec, ...] = ()
    reconcile: bool = False
    adopt: bool | None = None
    manifest: dict[str, Any] = field(default_factory=dict)


class PodsEntry(ResourceEntry, frozen=True, kw_only=True):
    """A kind with pods: its short forms describe one container, ``main`` when not named. ``port`` is its only port."""

    container_name: str = "main"
    port: Number | None = None


class ServiceEntry(ResourceEntry, frozen=True, kw_only=True):
    """A Service with one port, which is also the pods' when ``targetPort`` is not given."""

    port: Number | None = None
    target_port: Number | None = None


class IngressEntry(ResourceEntry, frozen=True, kw_only=True):
    """An Ingress of one host and path; the Service is the one of its own name when not given."""

    host: str | None = None
    path: str = "/"
    service_name: str = ""
    service_port: Number = 80


class SecretEntry(ResourceEntry, frozen=True, kw_only=True):
    """A Secret whose values are given, copied, or made: once, anew after a time, or as a certificate."""

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
    """A HorizontalPodAutoscaler; it scales the Deployment of its own name when not told what."""

    targetCPUUtilizationPercentage: Number | None = None  # as Kubernetes spells it


class CustomEntry(ResourceEntry, frozen=True, kw_only=True):
    """An object of any other kind; it is ready when those conditions are True."""

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
    """The form of a kind's resources."""
    return _BY_KEY.get(key, PodsEntry if has_pods else ResourceEntry)

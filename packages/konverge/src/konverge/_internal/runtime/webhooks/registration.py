"""Registration of webhooks with an API server: manifests with their location and their trusted authorities.

The same hooks produce the same bytes. The location is either a Service (an operator in a cluster) or a URL (an operator
in development outside of it).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge._internal.runtime.webhooks.hooks import AdmissionHook, OperatorHooks, Purpose
from konverge.errors import NotFoundError

__all__ = [
    "ServiceReference",
    "WebhookEndpoint",
    "build_conversion_config",
    "build_webhook_manifests",
    "register",
    "unregister",
]

_GROUP = "admissionregistration.k8s.io"
_KINDS = {
    Purpose.DEFAULT: GroupVersionKind(_GROUP, "v1", "MutatingWebhookConfiguration"),
    Purpose.VALIDATE: GroupVersionKind(_GROUP, "v1", "ValidatingWebhookConfiguration"),
}
_FIELD_MANAGER = "konverge-webhooks"
_REVIEW_VERSIONS = ["v1"]
_HTTPS_PORT = 443


@dataclass(frozen=True, slots=True)
class ServiceReference:
    """The Service in front of the webhook servers.

    Args:
        namespace: Its namespace.
        name: Its name.
        port: Port of the Service, not of the Pods.
    """

    namespace: str
    name: str
    port: int = _HTTPS_PORT

    @property
    def host(self) -> str:
        """The host name that the API server uses; the certificate must be valid for it."""
        return f"{self.name}.{self.namespace}.svc"


@dataclass(frozen=True, slots=True)
class WebhookEndpoint:
    """The location of the webhooks for an API server.

    Args:
        location: A Service, or the beginning of a URL, for example ``https://127.0.0.1:9443``.
        ca_bundle: Trusted authorities in PEM. Empty if another controller sets them (cert-manager's injector), or for
            the authorities that the API server trusts by default.
    """

    location: ServiceReference | str
    ca_bundle: bytes = field(default=b"", repr=False)

    def build_client_config(self, path: str) -> Object:
        """Return the ``clientConfig`` for one path."""
        config: Object
        if isinstance(self.location, ServiceReference):
            service = self.location
            config = {
                "service": {
                    "namespace": service.namespace,
                    "name": service.name,
                    "path": path,
                    "port": service.port,
                }
            }
        else:
            config = {"url": self.location.rstrip("/") + path}
        if self.ca_bundle:
            config["caBundle"] = base64.b64encode(self.ca_bundle).decode("ascii")
        return config


def build_webhook_manifests(
    name: str,
    hooks: OperatorHooks,
    endpoint: WebhookEndpoint,
    *,
    annotations: Mapping[str, str] | None = None,
    selectors: Mapping[str, Any] | None = None,
) -> list[Object]:
    """Return the MutatingWebhookConfiguration and the ValidatingWebhookConfiguration, each unless it is empty.

    They include requests in other versions of a kind (``matchPolicy: Equivalent``), and dry runs, since handlers have
    no side effects.

    Args:
        name: Name of both.
        hooks: The webhooks.
        endpoint: Their location.
        annotations: Annotations of both, for example ``cert-manager.io/inject-ca-from``.
        selectors: ``namespaceSelector`` or ``objectSelector``, for all webhooks.
    """
    manifests = []
    for purpose, gvk in _KINDS.items():
        entries = [
            _build_webhook(hook, endpoint, selectors or {})
            for hook in sorted(hooks.admission, key=lambda hook: hook.name)
            if hook.purpose is purpose
        ]
        if entries:
            metadata: Object = {"name": name}
            if annotations:
                metadata["annotations"] = dict(sorted(annotations.items()))
            manifests.append(
                {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "webhooks": entries},
            )
    return manifests


def build_conversion_config(mapping: RestMapping, hooks: OperatorHooks, endpoint: WebhookEndpoint) -> Object | None:
    """Return the ``clientConfig`` of a kind's conversion webhook; None for a kind without one.

    Args:
        mapping: The kind, in any of its versions.
        hooks: The webhooks.
        endpoint: Their location.
    """
    for hook in hooks.conversion:
        if hook.mapping.gvk.group_kind == mapping.gvk.group_kind:
            return endpoint.build_client_config(hook.path)
    return None


async def register(client: Client, manifests: Sequence[Object]) -> None:
    """Apply the manifests (server-side apply, forced): the server calls the webhooks after about a second.

    Raises:
        konverge.errors.ApiError: The server refuses a manifest; those before it are applied.
    """
    for manifest in manifests:
        await client.apply(manifest, field_manager=_FIELD_MANAGER)


async def unregister(client: Client, manifests: Sequence[Object]) -> None:
    """Delete the objects of the manifests if they exist: without a server, they would cause refusals of all requests.

    Raises:
        konverge.errors.ApiError: The server refuses a deletion.
    """
    for manifest in manifests:
        try:
            await client.delete(GroupVersionKind.of(manifest), ObjectKey.of(manifest))
        except NotFoundError:
            continue


def _build_webhook(hook: AdmissionHook, endpoint: WebhookEndpoint, selectors: Mapping[str, Any]) -> Object:
    mapping = hook.mapping
    resources = [mapping.plural, *(f"{mapping.plural}/{subresource}" for subresource in sorted(hook.subresources))]
    entry: Object = {
        "name": hook.name,
        "admissionReviewVersions": list(_REVIEW_VERSIONS),
        "clientConfig": endpoint.build_client_config(hook.path),
        "rules": [
            {
                "apiGroups": [mapping.gvk.group],
                "apiVersions": [mapping.gvk.version],
                "operations": list(hook.operations),
                "resources": resources,
                "scope": "Namespaced" if mapping.namespaced else "Cluster",
            }
        ],
        "failurePolicy": hook.failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": int(hook.timeout.total_seconds()),
    }
    if hook.purpose is Purpose.DEFAULT:
        entry["reinvocationPolicy"] = "Never"
    if hook.labels.requirements:
        entry["objectSelector"] = hook.labels.to_object()
    return {**entry, **dict(sorted(selectors.items()))}

"""Waits until an API server calls the webhooks that an operator registers.

A server uses new webhook configurations a moment after it has stored them, for each kind in the order of storage. So
this module stores a marker configuration after those of the operator, which rejects one marked object. Once the marker
rejects it, the server also calls the earlier webhooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from functools import partial

from konverge._internal.client import Client
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.clock import Clock
from konverge.errors import ServerError
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster._internal.testing.polling import eventually

__all__ = ["wait_for_webhooks"]

_GROUP = "admissionregistration.k8s.io"
_KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_LABEL = "testing.konverge.dev/marker"
_UNREACHABLE_URL = "https://127.0.0.1:1/"


async def wait_for_webhooks(
    client: Client,
    manifests: Iterable[Object],
    requests: Callable[[], list[AuditedRequest]],
    *,
    namespace: str,
    clock: Clock,
) -> None:
    """Return when the server uses the webhook configurations of a run that has begun.

    Args:
        client: An administrator's client; the objects that it creates are removed again.
        manifests: The configurations that the run registers.
        requests: Returns the requests that the run has sent so far.
        namespace: The namespace for an object that is never stored.
        clock: The clock of the cluster.

    Raises:
        AssertionError: The server did not call the webhooks in time.
    """
    kinds = [kind for kind in _KINDS if any(manifest["kind"] == kind for manifest in manifests)]
    for kind in kinds:
        await eventually(partial(_has_registered, requests, kind), clock=clock, describe=f"a {kind} is registered")
    async with AsyncExitStack() as markers:
        for kind in kinds:
            marker = _build_marker(kind, namespace)
            await client.create(marker)
            markers.push_async_callback(client.delete, GroupVersionKind.of(marker), ObjectKey.of(marker))
        for kind in kinds:
            refuses = partial(_is_rejecting, client, kind, namespace)
            await eventually(refuses, clock=clock, describe=f"the server calls the webhooks of a {kind}")


def _has_registered(requests: Callable[[], list[AuditedRequest]], kind: str) -> bool:
    path = f"/{_GROUP}/v1/{kind.lower()}s/"
    return any(request.verb == "patch" and request.code < 300 and path in request.path for request in requests())


def _build_marker(kind: str, namespace: str) -> Object:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": kind,
        "metadata": {"name": f"{namespace}-marker"},
        "webhooks": [
            {
                "name": "marker.testing.konverge.dev",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": _UNREACHABLE_URL},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                "objectSelector": {"matchLabels": {_LABEL: kind}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "timeoutSeconds": 1,
            }
        ],
    }


async def _is_rejecting(client: Client, kind: str, namespace: str) -> bool:
    marked: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{kind.lower()}-marker", "namespace": namespace, "labels": {_LABEL: kind}},
    }
    try:
        await client.create(marked, dry_run=True)
    except ServerError as refusal:
        return "marker.testing.konverge.dev" in str(refusal)
    return False

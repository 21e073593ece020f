"""Admission webhooks of a test, registered for its own namespace on either cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from konverge.clock import SystemEntropy
from konverge.errors import ApiError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import config_map
from tests.cluster.conformance.webhook_servers import ALLOWED, Handler, WebhookServer, webhook_server

GROUP = "admissionregistration.k8s.io"
VALIDATING = "ValidatingWebhookConfiguration"
MUTATING = "MutatingWebhookConfiguration"
CONFIG_MAPS: Object = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
# Kinds that wait for a webhook, and the initial objects of a namespace on the real cluster.
_NOT_OURS = ("probe", "kube-root-ca.crt")
_LATER = "a-later-one"


class WebhookRegistrations:
    """Registers webhooks for the namespace of a test, and removes them."""

    def __init__(self, cluster: Cluster, server: WebhookServer) -> None:
        self._cluster = cluster
        self._server = server
        self._suffix = SystemEntropy().name_suffix(8)
        self._made: list[Object] = []

    @property
    def requests(self) -> list[Object]:
        """The requests to the webhooks."""
        return [request for _, request in self._reviews()]

    @property
    def webhook_names(self) -> list[str]:
        """The names of the called webhooks, in order."""
        return [path for path, _ in self._reviews()]

    def _reviews(self) -> list[tuple[str, Object]]:
        return [
            (path, request)
            for path, request in self._server.asked
            if path != _LATER and request.get("name") not in _NOT_OURS
        ]

    def configuration(self, kind: str, name: str, /, **webhook: Any) -> Object:
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self._cluster.namespace}}
        return {
            "apiVersion": f"{GROUP}/v1",
            "kind": kind,
            "metadata": {"name": f"{name}-{self._suffix}"},
            "webhooks": [
                {
                    "name": f"{name}.konverge.test",
                    "clientConfig": self._server.client_config(name),
                    "rules": [CONFIG_MAPS],
                    "namespaceSelector": selector,
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    **webhook,
                }
            ],
        }

    async def add(self, kind: str, name: str, handler: Handler, /, **webhook: Any) -> Object:
        """Register a webhook, and wait until the server calls it: the server reads configurations with a delay."""
        answers = {"is": False}

        def answer(request: Object) -> Any:
            if request.get("name") == "probe":
                answers["is"] = True
                return ALLOWED
            return handler(request)

        self._server.handlers[name] = answer
        created = await self._cluster.client.create(self.configuration(kind, name, **webhook))
        self._made.append(created)
        probed = {**webhook, "clientConfig": self._server.client_config(name), "rules": [CONFIG_MAPS]}
        if "clientConfig" not in webhook and probed.get("objectSelector") is None and webhook.get("rules") is None:

            async def is_asked() -> bool:
                await self._cluster.client.create(config_map(self._cluster.namespace, "probe"), dry_run=True)
                return answers["is"]

            await self._cluster.eventually(is_asked, describe=f"the server asks {name}")
        else:
            await self._wait_until_known(kind)
        return created

    async def _wait_until_known(self, kind: str) -> None:
        """Wait until the server calls a later webhook: then it also knows the earlier ones."""
        answers = {"is": False}

        def answer(request: Object) -> Any:
            answers["is"] = answers["is"] or request.get("name") == "probe"
            return ALLOWED

        async def is_asked() -> bool:
            with suppress(ApiError):  # the error of a webhook of the test
                await self._cluster.client.create(config_map(self._cluster.namespace, "probe"), dry_run=True)
            return answers["is"]

        self._server.handlers[_LATER] = answer  # the first by name, so the server calls it first
        created = await self._cluster.client.create(self.configuration(kind, _LATER))
        await self._cluster.eventually(is_asked, describe="the server asks a webhook that came later")
        await self._cluster.client.delete(GroupVersionKind.of(created), ObjectKey.of(created))

    async def remove_all(self) -> None:
        while self._made:
            made = self._made.pop()
            await self._cluster.client.delete(GroupVersionKind.of(made), ObjectKey.of(made))


@asynccontextmanager
async def webhook_registrations(cluster: Cluster, folder: Path) -> AsyncIterator[WebhookRegistrations]:
    """Provide registrations, which are removed when the block ends."""
    async with webhook_server(folder) as server:
        hooks = WebhookRegistrations(cluster, server)
        yield hooks
        await hooks.remove_all()

"""A custom resource in two versions with webhook handlers, and a cluster that calls them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any

import msgspec

from konverge._internal.operator.webhook_registry import WebhookRegistry
from konverge._internal.runtime.webhooks import DEFAULT_TIMEOUT, WebhookOptions, WebhookServer, register, unregister
from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import ApiError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster

PROBE = "probe"


@dataclass
class Port:
    name: str
    port: int


@dataclass
class SiteSpec:
    replicas: Annotated[int, msgspec.Meta(ge=0)] = 1
    image: str = ""
    ports: list[Port] = field(default_factory=list)
    zones: set[str] = field(default_factory=set)


@dataclass
class SiteStatus:
    url: str = ""


@dataclass
class OldSiteSpec:
    """A version with one string for the number and the image of the stored version."""

    deployment: str = "1 x "


@dataclass
class OldSiteStatus:
    url: str = ""


@dataclass(frozen=True)
class KindVersions:
    """The classes of a kind, new ones for each test: what is registered for a class stays."""

    stored: type[Any]
    old: type[Any]


def build_versions(group: str) -> KindVersions:
    @custom_resource(group=group, version="v1beta1", kind="Site")
    @dataclass
    class OldSite:
        metadata: Metadata
        spec: OldSiteSpec
        status: OldSiteStatus | None = None

    @custom_resource(group=group, version="v1", kind="Site", also_serves=(OldSite,))
    @dataclass
    class Site:
        metadata: Metadata
        spec: SiteSpec
        status: SiteStatus | None = None

    return KindVersions(Site, OldSite)


def register_conversions(registry: WebhookRegistry, kind: KindVersions) -> None:
    """Register how the versions become each other."""

    @registry.converts(kind.old, kind.stored)
    def up(old: Any) -> Any:
        replicas, _, image = old.spec.deployment.partition(" x ")
        status = old.status and SiteStatus(old.status.url)
        return kind.stored(old.metadata, SiteSpec(int(replicas), image), status)

    @registry.converts(kind.stored, kind.old)
    async def down(new: Any) -> Any:
        status = new.status and OldSiteStatus(new.status.url)
        return kind.old(new.metadata, OldSiteSpec(f"{new.spec.replicas} x {new.spec.image}"), status)


class WebhookHarness:
    """A cluster that asks the handlers of a registry about the objects of one test.

    Attributes:
        server: What answers.
    """

    def __init__(self, cluster: Cluster, kind: KindVersions, server: WebhookServer) -> None:
        self.cluster = cluster
        self.kind = kind
        self.server = server
        self.gvk = find_definition(kind.stored).gvk
        self.old_gvk = find_definition(kind.old).gvk

    def build_site(self, name: str = "home", *, gvk: GroupVersionKind | None = None, **spec: Any) -> Object:
        gvk = gvk or self.gvk
        metadata = {"name": name, "namespace": self.cluster.namespace}
        return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}

    def key(self, name: str = "home") -> ObjectKey:
        return ObjectKey(self.cluster.namespace, name)

    def manifests(self) -> list[Object]:
        # Webhooks are the whole cluster's, and other tests have theirs.
        selector = {"matchLabels": {"kubernetes.io/metadata.name": self.cluster.namespace}}
        return self.server.build_manifests(f"konverge-{self.gvk.group}", selectors={"namespaceSelector": selector})

    async def register(self, prefix: str = "") -> None:
        """Register the webhooks under names that begin so: by them one registration is told from another."""
        manifests = self.manifests()
        for manifest in manifests:
            for webhook in manifest["webhooks"]:
                webhook["name"] = prefix + webhook["name"]
        await register(self.cluster.client, manifests)

    async def is_empty(self) -> bool:
        """Delete all sites, and tell whether none was left."""
        await self.cluster.client.delete_collection(self.gvk, namespace=self.cluster.namespace)
        return not (await self.cluster.client.list(self.gvk, namespace=self.cluster.namespace)).items

    def has_read(self, before: int) -> bool:
        """Tell whether the server has read a certificate since it had read so many."""
        return self.server.certificate.reads > before

    async def wait_until_called(self, prefix: str = "") -> None:
        """Wait until the server asks them: it takes a second or so to hear of a registration."""

        async def is_refused() -> bool:
            try:
                await self.cluster.client.apply(self.build_site(PROBE), field_manager="test", dry_run=True)
            except ApiError as error:
                return f'webhook "{prefix}validate.' in str(error) and "a probe" in str(error)
            return False

        await self.cluster.eventually(is_refused, describe="the webhooks are asked")

    async def wait_until_converting(self) -> None:
        """Wait until the server asks this one, and not that of an earlier test, to convert."""

        async def is_refused() -> bool:
            probe = self.build_site(PROBE, gvk=self.old_gvk)
            try:
                await self.cluster.client.apply(probe, field_manager="test", dry_run=True)
            except ApiError as error:
                return "a probe" in str(error)
            return False

        await self.cluster.eventually(is_refused, describe="the other version is converted")


@asynccontextmanager
async def webhook_harness(
    cluster: Cluster,
    kind: KindVersions,
    registry: WebhookRegistry,
    options: WebhookOptions | None = None,
    *,
    timeout: timedelta = DEFAULT_TIMEOUT,
) -> AsyncIterator[WebhookHarness]:
    """Serve the kind and its webhooks while the block runs."""

    @registry.validates(kind.stored, timeout=timeout)
    def is_no_probe(site: Any, request: Any) -> list[str]:
        return ["this is a probe"] if site.metadata.name == PROBE else []

    client = cluster.client
    async with WebhookServer(options or WebhookOptions(port=0), registry.build_hooks()) as server:
        town = WebhookHarness(cluster, kind, server)
        definition = crd_manifest(
            kind.stored, conversion=server.build_conversion_config(find_definition(kind.stored).mapping)
        )
        await cluster.install(definition)
        try:
            await town.register()
            try:
                await town.wait_until_called()
                await town.wait_until_converting()
                yield town
            finally:
                await unregister(client, town.manifests())
        finally:
            # While they can still be converted, and as soon as nobody refuses that any more.
            await cluster.eventually(town.is_empty, describe="the sites are gone")

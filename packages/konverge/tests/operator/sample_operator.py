"""A custom resource, its components and a cluster harness, shared by the tests of this package."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from konverge.client import Client, Transport
from konverge.clock import SeededEntropy, SystemEntropy
from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, crd_manifest, custom_resource, decode, encode, find_definition
from konverge.errors import NotFoundError, TerminalError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.mutation import Mutation
from konverge.operator import Operator, RunOptions
from konverge.options import block_on_absence, read_only
from konverge.prerequisites import depends_on
from konverge.primitives import ConfigMap, Deployment, Secret
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from konverge_cluster.testing import Cluster

AGENT = "shop-operator"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SECRET = GroupVersionKind("", "v1", "Secret")


@dataclass
class ShopSpec:
    greeting: str = "Hello"
    replicas: int = 1
    license: str = ""


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class Shop:
    metadata: Metadata
    spec: ShopSpec


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class LooseShop:
    """Its cluster checks less than its class."""

    metadata: Metadata
    spec: ShopSpec


@custom_resource(group="nowhere.konverge.test", version="v1")
@dataclass
class Unknown:
    """No cluster serves it."""

    metadata: Metadata
    spec: ShopSpec


SHOP = find_definition(Shop).gvk
LOOSE_SHOP = find_definition(LooseShop).gvk


def settings(shop: Shop) -> Component:
    obj = {"metadata": _build_object(shop, "settings"), "data": {"greeting": shop.spec.greeting}}
    return ComponentBuilder("settings", condition_type="SettingsReady").with_resource(ConfigMap(obj)).build()


def pages(shop: Shop) -> Component:
    labels = {"shop": shop.metadata.name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "pages", "image": "konverge.test/app:1"}]},
    }
    obj = {
        "metadata": _build_object(shop, "pages"),
        "spec": {"replicas": shop.spec.replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    return (
        ComponentBuilder("pages", condition_type="PagesReady")
        .with_resource(Deployment(obj))
        .with_prerequisite(depends_on("SettingsReady"))
        .with_grace_period(timedelta(minutes=1))
        .build()
    )


def build_licensed(shop: Shop) -> Component:
    """Reads a Secret that belongs to nobody here, and copies what it says."""
    found: dict[str, str] = {}
    wanted = {"metadata": {"name": shop.spec.license, "namespace": shop.metadata.namespace}}
    copy = {"metadata": _build_object(shop, "license")}
    return (
        ComponentBuilder("license", condition_type="LicenseReady")
        .with_resource(
            Secret(wanted, extract=lambda live: found.update(text=live["data"]["text"])),
            read_only(),
            block_on_absence(),
        )
        .with_resource(
            ConfigMap(copy, mutations=Mutation("copy", lambda edit: edit.set_entry("license", found["text"])))
        )
        .build()
    )


def hopeless(shop: Shop) -> Component:
    """Never becomes ready, and is not given long."""
    labels = {"shop": f"{shop.metadata.name}-hopeless"}
    pod = {"containers": [{"name": "pages", "image": "konverge.test/never-ready:1"}]}
    obj = {
        "metadata": _build_object(shop, "hopeless"),
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }
    return (
        ComponentBuilder("hopeless", condition_type="HopelessReady")
        .with_resource(Deployment(obj))
        .with_grace_period(timedelta(seconds=4))
        .build()
    )


def build_refused(shop: Shop) -> Component:
    """Fails for good, until somebody changes something."""

    def refuse(_: object) -> None:
        raise TerminalError("not in this town")

    obj = {"metadata": _build_object(shop, "refused")}
    return (
        ComponentBuilder("refused", condition_type="RefusedReady")
        .with_resource(ConfigMap(obj, mutations=Mutation("refuse", refuse)))
        .build()
    )


def follower(shop: Shop) -> Component:
    """Waits for an object that another component of the same owner makes."""
    awaited = ConfigMap({"metadata": _build_object(shop, "settings")})
    return (
        ComponentBuilder("follower", condition_type="FollowerReady")
        .with_resource(awaited, read_only(), block_on_absence())
        .build()
    )


def broken(shop: Shop) -> Component:
    """Cannot be built while the greeting is rude."""
    if shop.spec.greeting == "rude":
        raise ValueError("no shop greets like that")
    return ComponentBuilder("manners", condition_type="MannersReady").build()


def _build_object(shop: Shop, part: str) -> Object:
    return {"name": f"{shop.metadata.name}-{part}", "namespace": shop.metadata.namespace}


class OperatorHarness:
    """A cluster with shops in it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.clock = cluster.clock
        self.client = cluster.client
        self.namespace = cluster.namespace

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.namespace, name)

    async def create_shop(self, name: str, **spec: Any) -> Shop:
        shop = Shop(metadata=Metadata(name=name, namespace=self.namespace), spec=ShopSpec(**spec))
        return decode(Shop, await self.client.create(encode(shop)))

    async def change(self, name: str, **spec: Any) -> Object:
        return await self.client.patch(SHOP, self.key(name), {"spec": spec}, patch_type="merge")

    async def condition(
        self, name: str, condition_type: str = "Ready", gvk: GroupVersionKind = SHOP
    ) -> Condition | None:
        return find_condition(await self.client.get(gvk, self.key(name)), condition_type)

    async def wait_until_ready(self, *names: str) -> None:
        async def all_ready() -> bool:
            conditions = [await self.condition(name) for name in names]
            return all(condition is not None and condition.status == "True" for condition in conditions)

        await self.cluster.eventually(all_ready, describe=f"{', '.join(names)} become ready")

    async def wait_for_condition(
        self, name: str, reason: str, condition_type: str = "Ready", gvk: GroupVersionKind = SHOP
    ) -> Condition:
        async def has_reason() -> Condition | None:
            condition = await self.condition(name, condition_type, gvk)
            return condition if condition is not None and condition.reason == reason else None

        return await self.cluster.eventually(has_reason, describe=f"{name} reports {condition_type} {reason}")

    async def data(self, name: str) -> dict[str, str]:
        found: dict[str, str] = (await self.client.get(CONFIG_MAP, self.key(name)))["data"]
        return found

    async def wait_for_data(self, name: str, **data: str) -> None:
        async def holds() -> bool:
            return await self.data(name) == data

        await self.cluster.eventually(holds, describe=f"ConfigMap {name} holds {data}")

    async def exists(self, gvk: GroupVersionKind, name: str) -> bool:
        try:
            await self.client.get(gvk, self.key(name))
        except NotFoundError:
            return False
        return True

    def requests(self) -> list[AuditedRequest]:
        """Return the requests of the operator without watches."""
        return [request for request in self.cluster.list_requests(AGENT) if request.verb != "watch"]

    def writes(self) -> list[AuditedRequest]:
        return [request for request in self.requests() if request.verb not in {"get", "list"}]

    async def wait_until_quiet(self) -> None:
        """Wait until the cluster's controllers and the operator have come to rest."""
        # On a busy machine the real controllers may take a second for the next thing that the operator has to hear of.
        await self.cluster.wait_until_steady(AGENT, seconds=2.0 if self.cluster.name == "real" else 1.0)

    @asynccontextmanager
    async def running_operator(
        self, operator: Operator, options: RunOptions | None = None, *, transport: Transport | None = None
    ) -> AsyncIterator[None]:
        client = self.cluster.new_client(AGENT)
        if transport is not None:
            client = Client(transport, user_agent=AGENT, clock=self.clock)
        options = options or RunOptions(namespaces=(self.namespace,))
        running = asyncio.create_task(operator.run(client, options, clock=self.clock, entropy=SeededEntropy(3)))
        try:
            yield
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


async def start_harness(cluster: Cluster) -> OperatorHarness:
    town = OperatorHarness(cluster)
    await cluster.install(crd_manifest(Shop))
    return town


def find_free_address() -> str:
    """A port of loopback that nobody has at the moment, and that no outgoing connection is given before it is used."""
    while True:
        address = ("127.0.0.1", int(SystemEntropy().uniform(20_000, 30_000)))
        with socket.socket() as listener, suppress(OSError):
            listener.bind(address)
            return f"{address[0]}:{address[1]}"

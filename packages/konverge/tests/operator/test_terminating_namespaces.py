"""Owners whose namespace is being deleted, or another one in which they have objects, on either cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, encode
from konverge.errors import ForbiddenError, KonvergeError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, OwnerContext, RunOptions
from konverge.options import unowned
from konverge.primitives import ConfigMap
from konverge_cluster._internal.testing.audit_requests import AuditedRequest
from tests.operator.sample_operator import CONFIG_MAP, SHOP, OperatorHarness, Shop, ShopSpec, settings

pytestmark = pytest.mark.anyio

NAMESPACE = GroupVersionKind("", "v1", "Namespace")
POD = GroupVersionKind("", "v1", "Pod")


def shelves(shop: Shop) -> Component:
    """Two objects more."""
    builder = ComponentBuilder("shelves", condition_type="ShelvesReady")
    for part in ("left", "right"):
        metadata = {"name": f"{shop.metadata.name}-{part}", "namespace": shop.metadata.namespace}
        builder.with_resource(ConfigMap({"metadata": metadata}))
    return builder.build()


class TerminatingNamespace:
    """A namespace that is to be deleted, and a Pod in it without whose end nothing else of it goes."""

    def __init__(self, town: OperatorHarness, name: str) -> None:
        self.town = town
        self.name = name

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.name, name)

    async def open(self, name: str) -> None:
        await self.town.client.create(encode(Shop(Metadata(name=name, namespace=self.name), ShopSpec())))

    async def reports(self, name: str, condition_type: str, reason: str) -> None:
        async def reported() -> bool:
            condition = find_condition(await self.town.client.get(SHOP, self.key(name)), condition_type)
            return condition is not None and condition.reason == reason

        await self.town.cluster.eventually(reported, describe=f"{name} reports {condition_type} {reason}")

    async def delete(self) -> None:
        """Delete it when what is under way has ended, and wait until it refuses what is new.

        An event of what was created before is sent in the background: late, it would be one more refused write.
        """
        await self.town.wait_until_quiet()
        await self.town.client.delete(NAMESPACE, ObjectKey("", self.name))

        async def refuses() -> bool:
            try:
                await self.town.client.create(build_object("late", self.name))
            except ForbiddenError:
                return True
            return False

        await self.town.cluster.eventually(refuses, describe=f"namespace {self.name} refuses what is new")

    async def remove(self, *names: str) -> None:
        for name in names:
            await self.town.client.delete(CONFIG_MAP, self.key(name))

    async def finish(self) -> None:
        """Let it go, and wait until it is gone."""
        body = {"metadata": {"finalizers": None}}
        await self.town.client.patch(POD, self.key("holder"), body, patch_type="merge")

        async def gone() -> bool:
            try:
                await self.town.client.get(NAMESPACE, ObjectKey("", self.name))
            except NotFoundError:
                return True
            return False

        await self.town.cluster.eventually(gone, timeout_seconds=60, describe=f"namespace {self.name} is gone")

    def refusals(self) -> list[AuditedRequest]:
        return [request for request in self.town.writes() if request.code == 403 and self.name in request.path]


def build_object(name: str, namespace: str, kind: str = "ConfigMap", **more: Any) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace, **more}}


@asynccontextmanager
async def terminating_namespace(town: OperatorHarness) -> AsyncIterator[TerminatingNamespace]:
    """A namespace of which nothing goes by itself while the block runs."""
    name = f"{town.namespace}-doomed"
    await town.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    holder = build_object("holder", name, "Pod", finalizers=["operator.konverge.test/hold"])
    await town.client.create({**holder, "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]}})
    namespace = TerminatingNamespace(town, name)
    try:
        yield namespace
    finally:
        try:
            await namespace.town.client.delete(NAMESPACE, ObjectKey("", name))
        except NotFoundError:
            pass
        else:
            await namespace.finish()


async def test_one_write_is_refused_before_an_owner_rests(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, shelves)

    async with (
        terminating_namespace(town) as namespace,
        town.running_operator(operator, RunOptions(namespaces=(namespace.name,))),
    ):
        await namespace.open("corner")
        await namespace.reports("corner", "Ready", "Healthy")
        await namespace.delete()
        await namespace.remove("corner-settings", "corner-left", "corner-right")
        await namespace.reports("corner", "SettingsReady", "Error")
        await namespace.reports("corner", "ShelvesReady", "Error")
        await town.wait_until_quiet()
        assert len(namespace.refusals()) == 1

        spec = {"spec": {"replicas": 2}}
        await town.client.patch(SHOP, namespace.key("corner"), spec, patch_type="merge")
        await town.wait_until_quiet()
        assert len(namespace.refusals()) == 1


async def test_what_an_authors_own_function_creates_is_refused_once_too(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        passes.append(shop.spec.replicas)
        for part in ("left", "right"):
            name = f"{shop.metadata.name}-{part}"
            try:
                await ctx.cluster.get(CONFIG_MAP, ObjectKey(shop.metadata.namespace, name))
            except NotFoundError:
                await ctx.cluster.create(build_object(name, shop.metadata.namespace))

    async with (
        terminating_namespace(town) as namespace,
        town.running_operator(operator, RunOptions(namespaces=(namespace.name,))),
    ):
        await namespace.open("corner")
        await town.wait_until_quiet()
        await namespace.delete()
        await namespace.remove("corner-left", "corner-right")
        await town.cluster.eventually(namespace.refusals, describe="a write is refused")
        await town.wait_until_quiet()
        count = len(passes)
        await town.client.patch(SHOP, namespace.key("corner"), {"spec": {"replicas": 7}}, patch_type="merge")
        await town.cluster.eventually(lambda: 7 in passes, describe="a pass over the changed owner")
        await town.wait_until_quiet()

        assert len(namespace.refusals()) == 1
        assert len(passes) <= count + 2  # the change, and at most one more


async def test_an_owner_that_goes_with_its_namespace_is_finalized(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    closed = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> None:
        closed.append(shop.metadata.name)
        if len(closed) == 1:
            raise KonvergeError("the till does not open")

    async with (
        terminating_namespace(town) as namespace,
        town.running_operator(operator, RunOptions(namespaces=(namespace.name,))),
    ):
        await namespace.open("corner")
        await namespace.reports("corner", "Ready", "Healthy")
        await namespace.delete()
        await namespace.remove("corner-settings")
        await namespace.reports("corner", "SettingsReady", "Error")

        await namespace.finish()

    assert closed == ["corner", "corner"]


async def test_another_namespace_is_looked_at_again_after_a_while(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        branch = ConfigMap({"metadata": {"name": "branch", "namespace": f"{town.namespace}-doomed"}})
        component = ComponentBuilder("branch", condition_type="BranchReady").with_resource(branch, unowned()).build()
        async with ctx.flushing_status():
            await component.reconcile(ctx)

    options = replace(RunOptions(), namespaces=(town.namespace, f"{town.namespace}-doomed"))
    async with terminating_namespace(town) as namespace, town.running_operator(operator, options):
        await town.create_shop("corner")
        await town.wait_for_condition("corner", "Healthy", "BranchReady")
        await namespace.delete()
        await namespace.remove("branch")
        await town.wait_for_condition("corner", "Error", "BranchReady")
        await town.wait_until_quiet()
        assert len(namespace.refusals()) == 1

        await namespace.finish()
        await town.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.name}})
        again = build_object("holder", namespace.name, "Pod", finalizers=["operator.konverge.test/hold"])
        await town.client.create({**again, "spec": {"containers": [{"name": "main", "image": "konverge.test/app:1"}]}})

        async def is_back() -> bool:
            try:
                await town.client.get(CONFIG_MAP, namespace.key("branch"))
            except NotFoundError:
                return False
            return True

        await town.cluster.eventually(is_back, timeout_seconds=90, describe="the object in the new namespace")

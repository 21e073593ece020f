"""The deletion of an owner in waves, on either cluster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

import pytest

from konverge._internal.cli.explain_text import format_explanation
from konverge._internal.operator.dry_run import dry_run_owner
from konverge.component import Component, ComponentBuilder, delete_in_waves
from konverge.crd import crd_manifest
from konverge.errors import BuildError, ConfigurationError
from konverge.kube import GroupVersionKind, Object
from konverge.operator import Operator, OwnerContext, Result
from konverge.options import Option, delete, deletion_wave, orphan_when, read_only, unowned
from konverge.primitives import ConfigMap, StatefulSet
from tests.operator.faulty_transport import ErrorResponse, FaultyTransport, build_error_response
from tests.operator.sample_operator import (
    CONFIG_MAP,
    LOOSE_SHOP,
    SHOP,
    LooseShop,
    OperatorHarness,
    Shop,
    settings,
)

pytestmark = pytest.mark.anyio

EVENT = GroupVersionKind("events.k8s.io", "v1", "Event")
POD = GroupVersionKind("", "v1", "Pod")
WAVES = "waves.konverge.dev/shops"
BAILIFF = "example.com/bailiff"


def build_object(shop: Shop | LooseShop, part: str) -> ConfigMap:
    return ConfigMap({"metadata": {"name": f"{shop.metadata.name}-{part}", "namespace": shop.metadata.namespace}})


def counter(shop: Shop) -> Component:
    return (
        ComponentBuilder("counter", condition_type="CounterReady")
        .with_resource(build_object(shop, "till"), deletion_wave(2))
        .with_resource(build_object(shop, "door"), deletion_wave(1))
        .with_resource(build_object(shop, "sign"))
        .build()
    )


def cellar(shop: Shop) -> Component:
    return (
        ComponentBuilder("cellar", condition_type="CellarReady")
        .with_resource(build_object(shop, "stairs"), deletion_wave(1))
        .with_resource(build_object(shop, "wine"), deletion_wave(5))
        .build()
    )


def impatient(shop: Shop) -> Component:
    return (
        ComponentBuilder("impatient", condition_type="ImpatientReady")
        .with_resource(build_object(shop, "door"), deletion_wave(1, timeout=timedelta(seconds=6)))
        .with_resource(build_object(shop, "till"), deletion_wave(2))
        .build()
    )


def database(shop: Shop) -> Component:
    labels = {"shop": shop.metadata.name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "db", "image": "konverge.test/app:1"}]},
    }
    stateful_set = {
        "metadata": {"name": f"{shop.metadata.name}-db", "namespace": shop.metadata.namespace},
        "spec": {"serviceName": "db", "replicas": 1, "selector": {"matchLabels": labels}, "template": template},
    }
    return (
        ComponentBuilder("database", condition_type="DatabaseReady")
        .with_resource(StatefulSet(stateful_set), deletion_wave(1))
        .with_resource(build_object(shop, "till"), deletion_wave(2))
        .build()
    )


def build_operator(*factories: object) -> Operator:
    operator = Operator("shops")
    operator.manages(Shop, *factories)  # type: ignore[arg-type]  # a test passes factories of several kinds
    return operator


async def hold(town: OperatorHarness, part: str, *finalizers: str) -> None:
    """Set the finalizers of an object of the shop as another controller does."""
    body = {"metadata": {"finalizers": list(finalizers) or None}}
    await town.client.patch(CONFIG_MAP, town.key(f"corner-{part}"), body, patch_type="merge")


async def list_parts(town: OperatorHarness) -> set[str]:
    """The objects of the shop that exist and are not being deleted."""
    found = await town.client.list(CONFIG_MAP, namespace=town.namespace)
    return {
        obj["metadata"]["name"].removeprefix("corner-")
        for obj in found.items
        if obj["metadata"]["name"].startswith("corner-") and "deletionTimestamp" not in obj["metadata"]
    }


async def wait_for_parts(town: OperatorHarness, *parts: str) -> None:
    async def are_left() -> bool:
        return await list_parts(town) == set(parts)

    await town.cluster.eventually(are_left, describe=f"only {', '.join(parts) or 'nothing'} is left")


async def wait_for_message(town: OperatorHarness, text: str) -> str:
    async def has_message() -> str:
        condition = await town.condition("corner")
        return condition.message if condition is not None and text in condition.message else ""

    return await town.cluster.eventually(has_message, describe=f"Ready says {text!r}")


async def wait_until_gone(town: OperatorHarness) -> None:
    async def is_gone() -> bool:
        return not await town.exists(SHOP, "corner")

    await town.cluster.eventually(is_gone, describe="the shop is gone")


async def list_events(town: OperatorHarness, reason: str) -> list[Object]:
    found = await town.client.list(EVENT, namespace=town.namespace)
    return [event for event in found.items if event["reason"] == reason]


async def test_a_wave_begins_when_the_objects_of_all_earlier_ones_are_gone(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(counter, cellar)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await hold(town, "stairs", BAILIFF)
        await hold(town, "till", BAILIFF)
        await town.client.delete(SHOP, town.key("corner"))

        await wait_for_parts(town, "till", "sign", "wine")
        await wait_for_message(
            town,
            "The object is being deleted: wave 1 of the deletion waits for "
            f"v1/ConfigMap/{town.namespace}/corner-stairs (finalizer {BAILIFF}).",
        )
        await town.wait_until_quiet()
        assert await list_parts(town) == {"till", "sign", "wine"}
        await hold(town, "stairs")

        await wait_for_parts(town, "sign", "wine")
        await wait_for_message(town, f"wave 2 of the deletion waits for v1/ConfigMap/{town.namespace}/corner-till")
        await hold(town, "till")

        await wait_until_gone(town)
        await wait_for_parts(town)


async def test_the_explanation_of_a_deleting_owner_has_its_waves_and_who_holds_them(town: OperatorHarness) -> None:
    operator = build_operator(impatient, cellar)
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await hold(town, "stairs", BAILIFF)
        await town.client.delete(SHOP, town.key("corner"))
        await wait_for_message(town, "wave 1")
        await town.wait_until_quiet()
        owner = await town.client.get(SHOP, town.key("corner"))
        before = len(town.requests())

        found = await dry_run_owner(operator.registered.classes[0], owner, town.client, clock=town.clock)

        assert [request.verb for request in town.requests()[before:] if request.verb != "get"] == []
        await hold(town, "stairs")
        await wait_until_gone(town)
    text = "\n".join(format_explanation(found, town.clock.now()))
    place = f"v1/ConfigMap/{town.namespace}/corner"
    assert f"  is being deleted since {owner['metadata']['deletionTimestamp']}: " in text
    assert f"held by     finalizer {WAVES}" in re.sub(" {2,}finalizer", "     finalizer", text)
    assert f"waits for {place}-stairs (finalizer {BAILIFF})" in text
    assert f"{place}-wine, after wave 1" in text
    assert "The object is being deleted: wave 1 of the deletion waits for" in " ".join(text.split())


async def test_a_wait_sends_no_requests(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(counter)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await hold(town, "door", BAILIFF)
        await town.client.delete(SHOP, town.key("corner"))
        await wait_for_message(town, "wave 1")
        await town.wait_until_quiet()
        before = len(town.requests())
        await town.clock.sleep(20.0 if town.cluster.name == "embedded" else 3.0)

        assert town.requests()[before:] == []
        await hold(town, "door")
        await wait_until_gone(town)


async def test_an_owner_has_the_finalizer_before_its_objects_and_only_if_it_has_waves(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(settings, counter)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        writes = [request.path.partition("?")[0].rpartition("/")[2] for request in town.writes()]
        assert writes.index("corner") < writes.index("corner-till")
        shop = await town.client.get(SHOP, town.key("corner"))
        assert shop["metadata"]["finalizers"] == [WAVES]
    async with town.running_operator(build_operator(settings)):
        await town.create_shop("market")
        await town.wait_until_ready("market")
        shop = await town.client.get(SHOP, town.key("market"))
        assert "finalizers" not in shop["metadata"]


async def test_a_version_without_waves_deletes_an_owner_that_had_some(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(counter)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        await settings(shop).reconcile(ctx)

    async with town.running_operator(operator):
        await town.client.delete(SHOP, town.key("corner"))
        await wait_until_gone(town)


async def test_an_object_of_another_owner_stays_and_is_not_waited_for(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(counter)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        other = await town.create_shop("market")
        reference = {
            "apiVersion": SHOP.api_version,
            "kind": SHOP.kind,
            "name": "market",
            "uid": other.metadata.uid,
            "controller": True,
        }
        # Both owners are unknown to the operator's next reconcile, which only deletes.
        body = {"metadata": {"ownerReferences": [reference]}}
        await town.client.patch(CONFIG_MAP, town.key("corner-door"), body, patch_type="merge")
        await town.client.delete(SHOP, town.key("corner"))

        await wait_until_gone(town)
        await wait_for_parts(town, "door")


async def test_the_next_wave_begins_after_the_time_limit(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(impatient)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await hold(town, "door", BAILIFF)
        await hold(town, "till", BAILIFF)
        await town.client.delete(SHOP, town.key("corner"))
        await wait_for_message(town, "wave 1")
        assert await list_parts(town) == {"till"}

        message = await wait_for_message(town, "wave 2")
        assert message == (
            f"The object is being deleted: wave 2 of the deletion waits for v1/ConfigMap/{town.namespace}/corner-till "
            f"(finalizer {BAILIFF}), no longer for v1/ConfigMap/{town.namespace}/corner-door (finalizer {BAILIFF})."
        )
        await hold(town, "till")
        await wait_until_gone(town)
        events = await town.cluster.eventually(
            lambda: list_events(town, "DeletionOverdue"), describe="an event says so"
        )
    door = f"v1/ConfigMap/{town.namespace}/corner-door (finalizer {BAILIFF})"
    till = f"v1/ConfigMap/{town.namespace}/corner-till"
    assert {event["type"] for event in events} == {"Warning"}
    assert f"The time limit of {door} has passed: {till} is deleted although it still exists" in {
        event["note"] for event in events
    }
    await hold(town, "door")


async def test_a_workload_is_gone_when_its_pods_are(town: OperatorHarness) -> None:
    async with town.running_operator(build_operator(database)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        body = {"metadata": {"finalizers": [BAILIFF]}}
        await town.client.patch(POD, town.key("corner-db-0"), body, patch_type="merge")
        await town.client.delete(SHOP, town.key("corner"))

        await wait_for_message(town, f"apps/v1/StatefulSet/{town.namespace}/corner-db (its dependents)")
        await town.wait_until_quiet()
        assert await list_parts(town) == {"till"}
        await town.client.patch(POD, town.key("corner-db-0"), {"metadata": {"finalizers": None}}, patch_type="merge")

        await wait_until_gone(town)


async def test_an_object_without_an_owner_goes_in_its_wave(town: OperatorHarness) -> None:
    def sign(shop: Shop) -> Component:
        builder = ComponentBuilder("sign", condition_type="SignReady")
        return builder.with_resource(build_object(shop, "sign"), unowned(), deletion_wave(1)).build()

    async with town.running_operator(build_operator(sign)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        await wait_until_gone(town)

        assert await list_parts(town) == set()


async def test_a_component_that_cannot_be_built_holds_the_deletion(town: OperatorHarness) -> None:
    """It could have an object in an earlier wave."""
    is_broken = False

    def moody(shop: Shop) -> Component:
        if is_broken:
            raise ValueError("no shop greets like that")
        return counter(shop)

    async with town.running_operator(build_operator(moody, cellar)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        is_broken = True
        await town.client.delete(SHOP, town.key("corner"))
        await wait_for_message(town, "The object cannot be deleted: ValueError: no shop greets like that")
        assert await list_parts(town) == {"till", "door", "sign", "stairs", "wine"}

        is_broken = False
        await wait_until_gone(town)


async def test_the_function_of_the_author_runs_before_the_waves_and_is_complete_once(town: OperatorHarness) -> None:
    operator = build_operator(counter)
    calls: list[set[str]] = []

    @operator.finalizes(Shop)
    async def close(shop: Shop, ctx: OwnerContext) -> Result | None:
        calls.append(await list_parts(town))
        return None

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await hold(town, "door", BAILIFF)
        await town.client.delete(SHOP, town.key("corner"))
        await wait_for_message(town, "wave 1")
        await town.wait_until_quiet()
        shop = await town.client.get(SHOP, town.key("corner"))
        assert shop["metadata"]["finalizers"] == [WAVES]
        await hold(town, "door")
        await wait_until_gone(town)

    assert calls == [{"till", "door", "sign"}]


async def test_a_refused_deletion_holds_later_waves_until_the_time_limit(town: OperatorHarness) -> None:
    def rule(method: str, path: str) -> ErrorResponse | None:
        is_door = method == "DELETE" and path.endswith("corner-door")
        return build_error_response(403, "the door is locked", "Forbidden") if is_door else None

    transport = FaultyTransport(town.cluster.new_transport(), rule)
    async with town.running_operator(build_operator(impatient), transport=transport):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        message = await wait_for_message(town, "The object cannot be deleted")
        assert "the door is locked" in message
        assert await list_parts(town) == {"door", "till"}

        await wait_until_gone(town)
        await wait_for_parts(town)


async def test_a_missing_right_to_the_finalizer_stops_only_the_component_with_waves(town: OperatorHarness) -> None:
    """Without the finalizer, the order could not be kept: no object of the component is created."""

    def rule(method: str, path: str) -> ErrorResponse | None:
        is_owner = method == "PATCH" and path.endswith("/shops/corner")
        return build_error_response(403, "not your shop", "Forbidden") if is_owner else None

    transport = FaultyTransport(town.cluster.new_transport(), rule)
    async with town.running_operator(build_operator(counter, settings), transport=transport):
        await town.create_shop("corner")
        message = await wait_for_message(town, "not your shop")
        await town.wait_for_condition("corner", "Healthy", "SettingsReady")
        assert await list_parts(town) == {"settings"}
        transport.rule = lambda method, path: None
        await town.wait_until_ready("corner")

    assert message.startswith('the finalizer for component "counter": ')


async def test_a_function_of_the_author_deletes_in_waves(town: OperatorHarness) -> None:
    await town.cluster.install(crd_manifest(LooseShop))
    operator = Operator("shops")

    def build_parts(shop: LooseShop) -> Component:
        return (
            ComponentBuilder("parts", condition_type="PartsReady")
            .with_resource(build_object(shop, "door"), deletion_wave(1))
            .with_resource(build_object(shop, "till"), deletion_wave(2))
            .build()
        )

    @operator.reconciles(LooseShop)
    async def reconcile(shop: LooseShop, ctx: OwnerContext) -> None:
        await build_parts(shop).reconcile(ctx)

    @operator.finalizes(LooseShop)
    async def close(shop: LooseShop, ctx: OwnerContext) -> Result | None:
        return await ctx.delete_in_waves(build_parts(shop))

    loose = {"apiVersion": LOOSE_SHOP.api_version, "kind": LOOSE_SHOP.kind, "spec": {}}
    async with town.running_operator(operator):
        await town.client.create({**loose, "metadata": {"name": "corner", "namespace": town.namespace}})
        await town.wait_for_condition("corner", "Healthy", "PartsReady", LOOSE_SHOP)
        await hold(town, "door", BAILIFF)
        await town.client.delete(LOOSE_SHOP, town.key("corner"))
        await wait_for_parts(town, "till")
        condition = await town.wait_for_condition("corner", "Deleting", "Ready", LOOSE_SHOP)
        assert "wave 1 of the deletion waits for" in condition.message
        await hold(town, "door")
        await wait_for_parts(town)


async def test_waves_that_no_finalizer_would_keep_are_an_error(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        await counter(shop).reconcile(ctx)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        condition = await town.wait_for_condition("corner", "Error", "CounterReady")
        assert await list_parts(town) == set()

    assert condition.message.startswith('component "counter": it has deletion waves, and the owner has no finalizer')


async def test_an_owner_that_is_not_being_deleted_has_no_waves(town: OperatorHarness) -> None:
    operator = Operator("shops")
    errors: list[Exception] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        try:
            await delete_in_waves(ctx, counter(shop))
        except ConfigurationError as error:
            errors.append(error)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: errors, describe="the function is called")

    assert "expect an owner that is being deleted" in str(errors[0])


@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        ([deletion_wave(0)], "deletion_wave(): expected a whole number, 1 or more, found 0"),
        ([deletion_wave(True)], "deletion_wave(): expected a whole number, 1 or more, found True"),
        ([deletion_wave([1])], "deletion_wave(): expected a whole number, 1 or more, found [1]"),  # type: ignore[arg-type]  # the mistake
        (
            [deletion_wave(1, timeout=timedelta(0))],
            "deletion_wave(): expected a timeout above zero, found 0:00:00; None has no limit",
        ),
        (
            [deletion_wave(1, timeout=60)],  # type: ignore[arg-type]  # the mistake
            "deletion_wave(): expected a timedelta or None for timeout, found int",
        ),
        (
            [deletion_wave(1), deletion_wave(2)],
            "deletion_wave(1) and deletion_wave(2) exclude each other: an object is deleted in one wave",
        ),
        (
            [read_only(), deletion_wave(1)],
            "read_only() excludes deletion_wave(): the component does not write a read-only object",
        ),
        (
            [orphan_when(False), deletion_wave(1)],
            "orphan_when() excludes deletion_wave(): an object is either released or deleted",
        ),
    ],
)
def test_a_wave_that_cannot_be_is_refused(options: Sequence[Option], mistake: str) -> None:
    obj = ConfigMap({"metadata": {"name": "door", "namespace": "default"}})

    with pytest.raises(BuildError) as failure:
        ComponentBuilder("shop", condition_type="ShopReady").with_resource(obj, *options).build()

    assert failure.value.errors == (f"v1/ConfigMap/default/door: {mistake}",)


def test_a_deleted_object_can_have_a_wave() -> None:
    obj = ConfigMap({"metadata": {"name": "door", "namespace": "default"}})

    component = ComponentBuilder("shop", condition_type="ShopReady").with_resource(obj, delete(), deletion_wave(1))

    assert component.build().has_deletion_waves

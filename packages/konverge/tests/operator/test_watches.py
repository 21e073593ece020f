"""Watches of objects that owners neither control nor read; predicates, indexes and lists, on either cluster."""

from collections.abc import Iterable
from dataclasses import dataclass

import pytest

from konverge.cache import CacheOptions
from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Change, Operator, OwnerContext, generation_changed, kind_of
from tests.operator.sample_operator import AGENT, CONFIG_MAP, SHOP, LooseShop, OperatorHarness, Shop, ShopSpec, settings

pytestmark = pytest.mark.anyio


@custom_resource(group="operator.konverge.test", version="v1")
@dataclass
class Stall:
    """Served from some moment on."""

    metadata: Metadata
    spec: ShopSpec


STALL = find_definition(Stall).gvk


def licences(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}, "data": {"by": "us"}}


async def apply_licences(town: OperatorHarness, name: str, **labels: str) -> None:
    obj = licences(name, **labels)
    obj["metadata"]["namespace"] = town.namespace
    await town.client.apply(obj, field_manager="town-hall")


async def test_a_watched_object_wakes_the_owners_that_an_index_names(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes: list[str] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        passes.append(shop.metadata.name)

    @operator.index(Shop, "license")
    def license_of(shop: Shop) -> Iterable[str]:
        return [shop.spec.license]

    @operator.watches("v1/ConfigMap", requeues=Shop)
    def users(change: Change) -> Iterable[ObjectKey]:
        return change.list_keys_by_index(SHOP, "license", change.key.name)

    async with town.running_operator(operator):
        await town.create_shop("corner", license="food")
        await town.create_shop("market", license="drinks")
        await town.cluster.eventually(lambda: {"corner", "market"} <= set(passes), describe="first passes")
        await town.wait_until_quiet()
        passes.clear()

        await apply_licences(town, "food")
        await town.cluster.eventually(lambda: passes, describe="a pass")
        await town.wait_until_quiet()

    assert set(passes) == {"corner"}


async def test_a_pass_finds_by_an_index_and_is_woken_by_what_it_found(town: OperatorHarness) -> None:
    operator = Operator("shops")
    seen: list[list[str]] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        found = await ctx.cluster.list_by_index(CONFIG_MAP, "by", "us")
        seen.append(sorted(obj["metadata"]["name"] for obj in found))

    @operator.index("v1/ConfigMap", "by")
    def issued_by(obj: dict[str, dict[str, str]]) -> Iterable[str]:
        return [obj["data"]["by"]] if "by" in obj.get("data", {}) else []

    await apply_licences(town, "food")
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: seen and seen[-1] == ["food"], describe="the first is found")
        await apply_licences(town, "drinks")

        await town.cluster.eventually(lambda: seen[-1] == ["drinks", "food"], describe="both are found")


async def test_a_pass_that_lists_is_woken_by_what_comes_to_match(town: OperatorHarness) -> None:
    operator = Operator("shops")
    seen: list[int] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        seen.append(len(await ctx.cluster.list(CONFIG_MAP, namespace=town.namespace, labels={"sort": "food"})))

    await apply_licences(town, "bread", sort="food")
    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: seen and seen[-1] == 1, describe="one is found")
        await apply_licences(town, "beer", sort="drink")
        await town.wait_until_quiet()
        assert seen[-1] == 1
        await apply_licences(town, "beer", sort="food")

        await town.cluster.eventually(lambda: seen[-1] == 2, describe="two are found")


async def test_a_predicate_spares_passes_over_an_owner_whose_spec_stays(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes: list[str] = []

    @operator.reconciles(Shop, when=generation_changed)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        passes.append(shop.spec.greeting)

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: passes, describe="the first pass")
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"labels": {"a": "b"}}}, patch_type="merge")
        await town.wait_until_quiet()
        assert passes == ["Hello"]
        await town.change("corner", greeting="Ahoy")

        await town.cluster.eventually(lambda: passes == ["Hello", "Ahoy"], describe="the second pass")


async def test_a_kind_that_is_not_served_yet_is_watched_when_it_is(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes: list[str] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        passes.append(shop.metadata.name)

    @operator.watches(Stall, requeues=Shop)
    def neighbours(change: Change) -> Iterable[ObjectKey]:
        return [ObjectKey(change.key.namespace, "corner")]

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: passes, describe="the first pass, although a watched kind is absent")
        await town.wait_until_quiet()
        passes.clear()
        await town.cluster.install(crd_manifest(Stall))
        stall = {"apiVersion": STALL.api_version, "kind": "Stall", "spec": {}}
        await town.client.create(stall | {"metadata": {"name": "new", "namespace": town.namespace}})

        await town.cluster.eventually(lambda: passes, describe="the watch wakes", timeout_seconds=60.0)


async def test_what_the_caches_do_not_hold_wakes_nobody(town: OperatorHarness) -> None:
    operator = Operator("shops")
    passes: list[str] = []

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        passes.append(shop.metadata.name)

    operator.caches("v1/ConfigMap", CacheOptions(label_selector="sort=food"))

    @operator.watches("v1/ConfigMap", requeues=Shop)
    def everybody(change: Change) -> Iterable[ObjectKey]:
        return [ObjectKey(change.key.namespace, "corner")]

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.cluster.eventually(lambda: passes, describe="the first pass")
        await town.wait_until_quiet()
        passes.clear()
        await apply_licences(town, "beer", sort="drink")
        await town.wait_until_quiet()
        assert passes == []
        await apply_licences(town, "bread", sort="food")

        await town.cluster.eventually(lambda: passes, describe="the watch wakes")


@pytest.mark.embedded  # it takes minutes
@pytest.mark.parametrize("cluster_kind", ["embedded"])
async def test_a_kind_that_nobody_reads_any_more_is_watched_no_longer(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        if shop.spec.greeting == "read":
            await ctx.cluster.list(CONFIG_MAP, namespace=town.namespace)

    def collections() -> int:
        return sum("/configmaps" in request.path for request in town.cluster.list_requests(AGENT))

    async with town.running_operator(operator):
        await town.create_shop("corner", greeting="read")
        await town.cluster.eventually(lambda: collections() == 1, describe="the kind is watched")
        await town.change("corner", greeting="leave it")
        await town.clock.sleep(130.0)
        await town.change("corner", greeting="read")

        await town.cluster.eventually(lambda: collections() == 2, describe="the watch had ended, and begins anew")


def test_kinds_are_named_in_several_ways() -> None:
    assert kind_of("apps/v1/Deployment") == GroupVersionKind("apps", "v1", "Deployment")
    assert kind_of("v1/Secret") == GroupVersionKind("", "v1", "Secret")
    assert kind_of(Shop) == SHOP
    assert kind_of(SHOP) == SHOP


@pytest.mark.parametrize("text", ["Deployment", "apps/v1/deployments", "", "/Secret", "a/b/c/D"])
def test_a_kind_that_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match='expected for example "apps/v1/Deployment"'):
        kind_of(text)


async def test_a_watch_for_a_class_that_nothing_reconciles_is_refused(town: OperatorHarness) -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    operator.watches("v1/ConfigMap", requeues=LooseShop)(lambda change: [])

    with pytest.raises(BuildError, match="a watch of v1/ConfigMap requeues LooseShop, which has no reconcile"):
        await operator.run(town.client, clock=town.clock)


def test_an_index_and_what_is_cached_are_said_once() -> None:
    operator = Operator("shops")
    operator.index("v1/ConfigMap", "by")(lambda obj: [])
    operator.caches("v1/ConfigMap", CacheOptions())

    with pytest.raises(BuildError, match='ConfigMap has an index "by" already'):
        operator.index("v1/ConfigMap", "by")(lambda obj: [])
    with pytest.raises(BuildError, match="the kind ConfigMap has cache options already"):
        operator.caches("v1/ConfigMap", CacheOptions())


async def test_what_a_pass_writes_without_reading_it_wakes_its_owner(town: OperatorHarness) -> None:
    operator = Operator("shops")

    @operator.reconciles(Shop)
    async def reconcile(shop: Shop, ctx: OwnerContext) -> None:
        metadata = {"name": f"{shop.metadata.name}-note", "namespace": shop.metadata.namespace}
        note = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "open"}}
        await ctx.cluster.apply(note, field_manager="shops")

    async with town.running_operator(operator):
        await town.create_shop("corner")
        await town.wait_for_data("corner-note", text="open")
        await town.wait_until_quiet()
        await town.client.delete(CONFIG_MAP, town.key("corner-note"))

        await town.wait_for_data("corner-note", text="open")

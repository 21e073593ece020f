"""Data from one resource to the next: validation at build, blocked readers and visible values, on both clusters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from konverge._internal.component import Component, ComponentBuilder, DataEdge
from konverge.errors import BuildError, ConfigurationError, KonvergeError, ReconcileError
from konverge.feature import BooleanGate
from konverge.guards import blocked
from konverge.kube import Object
from konverge.mutation import Mutation, all_containers
from konverge.options import Option, delete, gated_by, ignore_if_absent, orphan_when, read_only
from konverge.primitives import ConfigMap, ConfigMapMutator, Data, Deployment, DeploymentMutator
from tests.component.app import CONFIG_MAP, DEPLOYMENT, ComponentHarness

NewApp = Callable[[str], Awaitable[ComponentHarness]]


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


def colour_of(live: Object) -> str | None:
    found: str | None = live.get("data", {}).get("colour")
    return found


def build_paint_mutation(colour: Data[str]) -> Mutation[ConfigMapMutator]:
    return Mutation("paint", lambda config: config.set_entry("painted", colour.get("not")))


# Built


def config(name: str, **options: Any) -> ConfigMap:
    return ConfigMap({"metadata": {"name": name, "namespace": "default"}}, **options)


COLOUR, SIZE = Data[str]("colour"), Data[int]("size")
FILLS = COLOUR.fill_with(colour_of)


@pytest.mark.parametrize(
    ("resources", "mistakes"),
    [
        pytest.param(
            [(config("a", requires=COLOUR), None)],
            [
                'v1/ConfigMap/default/a: it requires data "colour", which no resource fills: expected '
                "extract=cell.fill_with(...) on an earlier one"
            ],
            id="nobody fills it",
        ),
        pytest.param(
            [(config("a", optional_data=[COLOUR]), None), (config("b", extract=FILLS), None)],
            [
                'v1/ConfigMap/default/a: it reads data "colour", which only v1/ConfigMap/default/b fills: expected '
                "that one to be registered before"
            ],
            id="filled later",
        ),
        pytest.param(
            [(config("a", requires=COLOUR, extract=FILLS), None)],
            [
                'v1/ConfigMap/default/a: it requires data "colour", which only v1/ConfigMap/default/a fills: expected '
                "that one to be registered before"
            ],
            id="filled by the reader itself",
        ),
        pytest.param(
            [(config("a", extract=FILLS), delete()), (config("b", requires=COLOUR), None)],
            [
                'v1/ConfigMap/default/b: it requires data "colour", which v1/ConfigMap/default/a would fill, but that '
                "one is not applied (delete)"
            ],
            id="filled by what is removed",
        ),
        pytest.param(
            [(config("a", extract=[FILLS, Data[str]("colour").fill_with(colour_of)]), None)],
            ['two data cells are named "colour": conditions and errors refer to the name'],
            id="two cells of one name",
        ),
        pytest.param(
            [(config("a", extract=Data[str](" ").fill_with(colour_of)), None)],
            ["a data cell has no name: conditions and errors refer to it"],
            id="a cell without a name",
        ),
    ],
)
def test_data_that_cannot_arrive_is_a_build_error(
    resources: list[tuple[ConfigMap, Option | None]], mistakes: list[str]
) -> None:
    builder = frontend()
    for resource, option in resources:
        builder.with_resource(resource, option)
    with pytest.raises(BuildError) as raised:
        builder.build()
    assert list(raised.value.errors) == mistakes


@pytest.mark.parametrize("producer", [delete(), gated_by(BooleanGate(False)), orphan_when(True)])
def test_optional_data_of_what_is_removed_is_no_mistake(producer: Option) -> None:
    frontend().with_resource(config("a", extract=FILLS), producer).with_resource(
        config("b", optional_data=COLOUR)
    ).build()


def test_a_reader_that_is_removed_needs_nothing() -> None:
    frontend().with_resource(config("a", requires=COLOUR), delete()).build()


def test_a_preview_fills_cells_by_name_and_leaves_them_as_they_were() -> None:
    used = Mutation[ConfigMapMutator]("use", lambda b: b.set_entry("colour", f"{COLOUR.require()}, {SIZE.get(0)}"))
    component = (
        frontend()
        .with_resource(config("a", extract=[FILLS, SIZE.fill_with(lambda live: 1)]), read_only())
        .with_resource(config("b", requires=COLOUR, mutations=used))
        .build()
    )

    (previewed,) = component.preview(data={"colour": "blue", "size": 3})

    assert previewed["data"] == {"colour": "blue, 3"}
    assert not COLOUR.is_set
    with pytest.raises(KonvergeError, match='data "colour" is not extracted'):
        component.preview()
    with pytest.raises(
        ConfigurationError, match=r'expected the names of data cells \("colour", "size"\), found "color"$'
    ):
        component.preview(data={"colour": "blue", "color": "blue"})


def test_the_topology_tells_who_fills_and_who_reads_each_cell() -> None:
    fills_size = SIZE.fill_with(lambda live: 1)
    component = (
        frontend()
        .with_resource(config("a", extract=fills_size), read_only())
        .with_resource(config("b", extract=[FILLS, fills_size]))
        .with_resource(config("c", requires=[COLOUR, SIZE]))
        .with_resource(config("d", optional_data=COLOUR))
        .build()
    )

    identity = "v1/ConfigMap/default/{}".format
    assert component.data_topology() == (
        DataEdge("size", (identity("a"), identity("b")), (identity("c"),), ()),
        DataEdge("colour", (identity("b"),), (identity("c"),), (identity("d"),)),
    )


# Run


async def user_sets(app: ComponentHarness, **data: str) -> None:
    await app.cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", **app.build_config_map("users", **data)})


@pytest.mark.anyio
async def test_a_resource_waits_for_the_data_that_it_requires_and_its_guard_is_not_asked(app: ComponentHarness) -> None:
    colour, size, host = Data[str]("colour"), Data[str]("size"), Data[str]("host")
    asked: list[object] = []

    def guard(desired: Object) -> Any:
        asked.append(desired)
        return blocked("the guard")

    producers = [cell.fill_with(lambda live: None) for cell in (colour, size)]
    first = ConfigMap(app.build_config_map("first"), extract=[*producers, host.fill_with(lambda live: "here")])
    component = (
        frontend()
        .with_resource(first)
        .with_resource(ConfigMap(app.build_config_map("second"), requires=[colour, host, size], guard=guard))
        .with_resource(ConfigMap(app.build_config_map("third")))
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == ("Blocked", 'waiting for data "colour", "size"')
    assert asked == []
    assert await app.find(CONFIG_MAP, "first") is not None
    assert await app.find(CONFIG_MAP, "third") is None


@pytest.mark.anyio
async def test_data_reaches_a_later_mutation_and_the_last_producer_wins(app: ComponentHarness) -> None:
    await user_sets(app, colour="red")
    colour = Data[str]("colour")

    def fills() -> Any:
        return colour.fill_with(colour_of)

    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("users"), extract=fills()), read_only())
        .with_resource(ConfigMap(app.build_config_map("own", colour="blue"), extract=fills()))
        .with_resource(ConfigMap(app.build_config_map("silent", size="xl"), extract=fills()))
        .with_resource(
            ConfigMap(app.build_config_map("settings"), requires=colour, mutations=build_paint_mutation(colour))
        )
        .build()
    )

    condition = await app.reconcile(component)

    settings = await app.find(CONFIG_MAP, "settings")
    assert settings is not None
    assert (condition.reason, settings["data"]["painted"]) == ("Healthy", "blue")


@pytest.mark.anyio
async def test_optional_data_never_blocks(app: ComponentHarness) -> None:
    colour = Data[str]("colour")
    component = (
        frontend()
        .with_resource(
            ConfigMap(app.build_config_map("users"), extract=colour.fill_with(colour_of)),
            read_only(),
            ignore_if_absent(),
        )
        .with_resource(ConfigMap(app.build_config_map(), optional_data=colour, mutations=build_paint_mutation(colour)))
        .build()
    )

    absent = await app.reconcile(component)
    before = await app.find(CONFIG_MAP, "settings")
    await user_sets(app, colour="red")
    await app.reconcile(component)
    after = await app.find(CONFIG_MAP, "settings")

    assert absent.reason == "Healthy"
    assert before is not None
    assert after is not None
    assert (before["data"]["painted"], after["data"]["painted"]) == ("not", "red")


@pytest.mark.anyio
async def test_data_does_not_outlive_the_pass(app: ComponentHarness) -> None:
    colour = Data[str]("colour")
    component = (
        frontend()
        .with_resource(
            ConfigMap(app.build_config_map("users"), extract=colour.fill_with(colour_of)),
            read_only(),
            ignore_if_absent(),
        )
        .with_resource(ConfigMap(app.build_config_map(), requires=colour))
        .build()
    )
    await user_sets(app, colour="red")
    await app.reconcile(component)
    found = colour.get()
    users = await app.find(CONFIG_MAP, "users")
    assert users is not None
    await app.cluster.client.delete(CONFIG_MAP, app.key._replace(name="users"), uid=users["metadata"]["uid"])

    condition = await app.reconcile(component)

    assert (found, condition.message) == ("red", 'waiting for data "colour"')


@pytest.mark.anyio
async def test_data_that_is_read_without_being_declared_is_an_error_that_names_it(app: ComponentHarness) -> None:
    mutation: Mutation[ConfigMapMutator] = Mutation("paint", lambda config: config.set_entry("c", COLOUR.require()))
    component = frontend().with_resource(ConfigMap(app.build_config_map(), mutations=mutation)).build()

    with pytest.raises(ReconcileError, match='mutation intent for paint: data "colour" is not extracted'):
        await app.reconcile(component)


@pytest.mark.anyio
async def test_two_owners_that_share_a_cell_get_each_their_own_data(new_app: NewApp) -> None:
    apps = [await new_app("one"), await new_app("two")]
    shared = Data[str]("owner")
    both = asyncio.Barrier(2)

    class Meeting:
        """Lets a pass go on after its producer only when the other one is as far."""

        def __init__(self, client: Any, name: str) -> None:
            self._client, self._name = client, name
            self.mapping, self.update, self.delete, self.apply = (
                client.mapping,
                client.update,
                client.delete,
                client.apply,
            )

        async def get(self, gvk: Any, key: Any, *, live: bool = False) -> Object:
            if key.name == f"{self._name}-reader":
                await both.wait()
            found: Object = await self._client.get(gvk, key, live=live)
            return found

    def component(app: ComponentHarness) -> Component:
        name = app.key.name
        return (
            frontend()
            .with_resource(
                ConfigMap(
                    app.build_config_map(name), extract=shared.fill_with(lambda live: str(live["metadata"]["name"]))
                )
            )
            .with_resource(
                ConfigMap(
                    app.build_config_map(f"{name}-reader"), requires=shared, mutations=build_paint_mutation(shared)
                ),
            )
            .build()
        )

    for app in apps:
        app.client = Meeting(app.client, app.key.name)  # type: ignore[assignment]
    async with asyncio.TaskGroup() as tasks:
        for app in apps:
            tasks.create_task(app.reconcile(component(app)))

    painted_with = []
    for app in apps:
        reader = app.key._replace(name=f"{app.key.name}-reader")
        painted_with.append((await app.cluster.client.get(CONFIG_MAP, reader))["data"]["painted"])
    assert painted_with == ["one", "two"]


# Suspended


def build_pull_mutation(image: Data[str]) -> Mutation[DeploymentMutator]:
    def mutate(deployment: DeploymentMutator) -> None:
        deployment.edit_containers(all_containers(), lambda container: container.raw().update(image=image.require()))

    return Mutation("image", mutate)


def build_size_mutation(size: Data[int]) -> Mutation[DeploymentMutator]:
    return Mutation("size", lambda deployment: deployment.ensure_replicas(size.require()))


@pytest.mark.anyio
async def test_what_lacks_data_and_was_never_made_counts_as_suspended(app: ComponentHarness) -> None:
    size = Data[int]("size")
    component = (
        frontend()
        .with_resource(ConfigMap(app.build_config_map("users"), extract=size.fill_with(lambda live: 3)), read_only())
        .with_resource(Deployment(app.build_deployment(), requires=size, mutations=build_size_mutation(size)))
        .suspend(True)
        .build()
    )

    condition = await app.reconcile(component)

    assert (condition.reason, condition.message) == ("Suspended", "All resources are suspended.")
    assert await app.find(DEPLOYMENT, "web") is None


@pytest.mark.anyio
async def test_what_lacks_data_and_lives_is_suspended_as_it_is(app: ComponentHarness) -> None:
    await user_sets(app, colour="red")
    image = Data[str]("image")

    def component(suspended: bool) -> Component:
        return (
            frontend()
            .with_resource(
                ConfigMap(app.build_config_map("users"), extract=image.fill_with(lambda live: "konverge.test/app:2")),
                read_only(),
            )
            .with_resource(
                Deployment(app.build_deployment(replicas=2), requires=image, mutations=build_pull_mutation(image))
            )
            .suspend(suspended)
            .build()
        )

    await app.reconcile_until("Healthy", component(False))
    condition = await app.reconcile_until("Suspended", component(True))
    asleep = await app.find(DEPLOYMENT, "web")
    settled = await app.list_steady_writes(component(True))
    await app.reconcile_until("Healthy", component(False))
    awake = await app.find(DEPLOYMENT, "web")

    assert condition.status == "True"
    assert asleep is not None
    assert awake is not None
    (container,) = asleep["spec"]["template"]["spec"]["containers"]
    assert (asleep["spec"]["replicas"], container["image"]) == (0, "konverge.test/app:2")
    assert asleep["metadata"]["ownerReferences"] == awake["metadata"]["ownerReferences"]
    assert settled == []
    assert awake["spec"]["replicas"] == 2


@pytest.mark.anyio
async def test_what_has_its_data_is_created_suspended_whatever_its_guard_says(app: ComponentHarness) -> None:
    size = Data[int]("size")
    component = (
        frontend()
        .with_resource(Deployment(app.build_deployment("db"), extract=size.fill_with(lambda live: 3)))
        .with_resource(
            Deployment(
                app.build_deployment(),
                requires=size,
                mutations=build_size_mutation(size),
                guard=lambda _: blocked("no"),
            )
        )
        .suspend(True)
        .build()
    )

    await app.reconcile(component)

    found = await app.find(DEPLOYMENT, "web")
    assert found is not None
    assert found["spec"]["replicas"] == 0

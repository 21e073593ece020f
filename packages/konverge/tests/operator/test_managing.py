"""Reconciles of owners with components, on either cluster."""

from datetime import timedelta
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.crd import Metadata, encode
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.operator import ComponentFactory, Operator, RunOptions
from konverge.primitives import ConfigMap, GuardResult
from tests.operator.sample_operator import (
    CONFIG_MAP,
    DEPLOYMENT,
    SECRET,
    SHOP,
    OperatorHarness,
    Shop,
    ShopSpec,
    broken,
    build_licensed,
    build_refused,
    follower,
    hopeless,
    pages,
    settings,
)

pytestmark = pytest.mark.anyio


def managing(*factories: ComponentFactory[Shop]) -> Operator:
    operator = Operator("shops")
    operator.manages(Shop, *factories)
    return operator


def rival(shop: Shop) -> Component:
    """Wants the object of another component to be another one."""
    metadata = {"name": f"{shop.metadata.name}-settings", "namespace": shop.metadata.namespace}
    obj = {"metadata": metadata, "data": {"greeting": "Go away"}}
    return ComponentBuilder("rival", condition_type="RivalReady").with_resource(ConfigMap(obj)).build()


async def test_an_owner_becomes_ready_with_its_objects(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings, pages)):
        await town.create_shop("corner", greeting="Welcome")
        await town.wait_until_ready("corner")

    assert await town.data("corner-settings") == {"greeting": "Welcome"}
    ready = await town.condition("corner")
    assert ready is not None
    assert (ready.reason, ready.observed_generation) == ("Healthy", 1)


async def test_owners_that_were_there_before_are_looked_after(town: OperatorHarness) -> None:
    await town.create_shop("corner")

    async with town.running_operator(managing(settings)):
        await town.wait_until_ready("corner")


async def test_an_object_that_is_no_longer_registered_stays_until_its_owner_is_deleted(town: OperatorHarness) -> None:
    def greetings(shop: Shop) -> Component:
        builder = ComponentBuilder("greetings", condition_type="GreetingsReady")
        for number in range(shop.spec.replicas):
            metadata = {"name": f"{shop.metadata.name}-{number}", "namespace": shop.metadata.namespace}
            builder.with_resource(ConfigMap({"metadata": metadata, "data": {"greeting": shop.spec.greeting}}))
        return builder.build()

    async with town.running_operator(managing(greetings)):
        await town.create_shop("corner", replicas=2)
        await town.wait_for_data("corner-1", greeting="Hello")
        await town.change("corner", replicas=1, greeting="Bye")
        await town.wait_for_data("corner-0", greeting="Bye")
        await town.wait_until_ready("corner")
        left = await town.data("corner-1")
        await town.client.delete(SHOP, town.key("corner"))

        async def is_gone() -> bool:
            return not await town.exists(CONFIG_MAP, "corner-1")

        await town.cluster.eventually(is_gone, describe="the object is deleted with its owner")

    assert left == {"greeting": "Hello"}


async def test_the_condition_of_a_component_that_is_no_more_is_taken_away_after_a_restart(
    town: OperatorHarness,
) -> None:
    async with town.running_operator(managing(settings, pages)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
    operator = Operator("shops")
    operator.manages(Shop, settings, retired=["PagesReady"])

    async with town.running_operator(operator):

        async def is_gone() -> bool:
            return await town.condition("corner", "PagesReady") is None

        await town.cluster.eventually(is_gone, describe="the condition is gone")

    assert await town.condition("corner", "SettingsReady") is not None


@pytest.mark.slow
@pytest.mark.parametrize("place", ["factory", "guard"])
async def test_a_function_that_never_returns_holds_up_no_other_owner(town: OperatorHarness, place: str) -> None:
    def loops(*_: object) -> GuardResult:
        while True:
            pass

    def stuck(shop: Shop) -> Component:
        is_open = shop.metadata.name == "corner"
        if not is_open and place == "factory":
            loops()
        metadata = {"name": f"{shop.metadata.name}-stuck", "namespace": town.namespace}
        config = ConfigMap({"metadata": metadata}, guard=None if is_open else loops)
        return ComponentBuilder("stuck", condition_type="StuckReady").with_resource(config).build()

    options = RunOptions((town.namespace,), function_limit=timedelta(milliseconds=200))
    async with town.running_operator(managing(settings, stuck), options):
        await town.create_shop("market")
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

        async def is_reported() -> bool:
            ready = await town.condition("market")
            return ready is not None and "it did not return within 0.2 s; it was in loops" in ready.message

        await town.cluster.eventually(is_reported, describe="the other owner says what is wrong")

    others = await town.condition("market", "SettingsReady")
    assert others is not None
    assert others.reason == "Healthy"


async def test_retired_conditions_are_a_list() -> None:
    with pytest.raises(BuildError, match="retired: expected a list of condition types, found the text 'PagesReady'"):
        Operator("shops").manages(Shop, settings, retired="PagesReady")


async def test_a_function_is_given_once() -> None:
    with pytest.raises(BuildError, match="settings is given again: its two components would share their objects"):
        Operator("shops").manages(Shop, settings, pages, settings)


async def test_a_second_writer_of_an_object_settles_with_the_first_ones_name(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings, rival)):
        await town.create_shop("corner")
        expected = await town.wait_for_condition("corner", "Error", "RivalReady")
        await town.wait_until_quiet()
        settled = len(town.requests())
        await town.change("corner", replicas=2)
        await town.wait_until_quiet()
        later = [request for request in town.requests()[settled:] if "/configmaps/" in request.path]

    assert 'corner-settings belongs to component "settings" already' in expected.message
    assert later == []
    assert await town.data("corner-settings") == {"greeting": "Hello"}


async def test_a_change_of_the_owner_reaches_its_objects(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.change("corner", greeting="Servus")

        await town.wait_for_data("corner-settings", greeting="Servus")


async def test_a_child_deleted_by_hand_comes_back(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings, pages)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        deployment = await town.client.get(DEPLOYMENT, town.key("corner-pages"))
        await town.client.delete(DEPLOYMENT, town.key("corner-pages"))

        async def came_back() -> bool:
            found = await town.client.get(DEPLOYMENT, town.key("corner-pages"))
            return bool(found["metadata"]["uid"] != deployment["metadata"]["uid"])

        await town.cluster.eventually(came_back, describe="the Deployment comes back")
        await town.wait_until_ready("corner")


async def test_a_child_changed_by_hand_is_repaired(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner", greeting="Hello")
        await town.wait_until_ready("corner")
        await town.client.patch(
            CONFIG_MAP, town.key("corner-settings"), {"data": {"greeting": "Buy!"}}, patch_type="merge"
        )

        await town.wait_for_data("corner-settings", greeting="Hello")


async def test_what_others_add_to_a_child_is_left_alone(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.patch(CONFIG_MAP, town.key("corner-settings"), {"data": {"note": "x"}}, patch_type="merge")
        await town.wait_until_quiet()

        assert await town.data("corner-settings") == {"greeting": "Hello", "note": "x"}


async def test_settled_owners_cost_no_request(town: OperatorHarness) -> None:
    names = [f"shop-{number}" for number in range(50)]
    async with town.running_operator(managing(settings)):
        for name in names:
            await town.create_shop(name)
        await town.wait_until_ready(*names)
        await town.wait_until_quiet()
        settled = len(town.requests())
        await town.client.patch(SHOP, town.key("shop-7"), {"metadata": {"labels": {"a": "b"}}}, patch_type="merge")
        await town.clock.sleep(5.0)

        assert town.requests()[settled:] == []


async def test_creating_costs_what_it_must(town: OperatorHarness) -> None:
    silent = RunOptions(namespaces=(town.namespace,), records_events=False)
    async with town.running_operator(managing(settings), silent):
        await town.create_shop("warm-up")  # the first owner starts the informers
        await town.wait_until_ready("warm-up")
        await town.wait_until_quiet()
        before = len(town.requests())
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.wait_until_quiet()

    assert [request.verb for request in town.requests()[before:]] == ["patch", "update"]


async def test_a_restart_over_settled_owners_writes_nothing(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings, pages)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.wait_until_quiet()
    before = len(town.writes())

    async with town.running_operator(managing(settings, pages)):
        await town.clock.sleep(3.0)
        await town.wait_until_quiet()
        assert town.writes()[before:] == []
        await town.change("corner", greeting="Moin")
        await town.wait_for_data("corner-settings", greeting="Moin")


async def test_a_read_only_object_wakes_its_reader_when_it_comes_and_when_it_changes(town: OperatorHarness) -> None:
    license = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "trade", "namespace": town.namespace}}
    async with town.running_operator(managing(build_licensed)):
        await town.create_shop("corner", license="trade")
        await town.wait_for_condition("corner", "Blocked")
        await town.client.create(license | {"data": {"text": "Zmlyc3Q="}})
        await town.wait_for_data("corner-license", license="Zmlyc3Q=")

        await town.client.patch(SECRET, town.key("trade"), {"data": {"text": "bmV4dA=="}}, patch_type="merge")

        await town.wait_for_data("corner-license", license="bmV4dA==")


async def test_a_component_that_stands_before_its_prerequisite_goes_on(town: OperatorHarness) -> None:
    async with town.running_operator(managing(pages, settings)):
        await town.create_shop("corner")

        await town.wait_until_ready("corner")


async def test_a_component_that_read_before_another_wrote_goes_on(town: OperatorHarness) -> None:
    async with town.running_operator(managing(follower, settings)):
        await town.create_shop("corner")

        await town.wait_until_ready("corner")


async def test_the_end_of_a_grace_period_wakes_the_owner(town: OperatorHarness) -> None:
    async with town.running_operator(managing(hopeless)):
        await town.create_shop("corner")

        await town.wait_for_condition("corner", "Down")


async def test_a_component_that_failed_for_good_keeps_no_other_waiting(town: OperatorHarness) -> None:
    async with town.running_operator(managing(pages, settings, hopeless, build_refused)):
        await town.create_shop("corner")

        await town.wait_for_condition("corner", "Healthy", "PagesReady")
        await town.wait_for_condition("corner", "Down", "HopelessReady")
        await town.wait_until_quiet()


async def test_an_operator_of_one_namespace_leaves_the_others_alone(town: OperatorHarness) -> None:
    elsewhere = f"{town.namespace}-elsewhere"
    await town.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": elsewhere}})
    foreign = Shop(metadata=Metadata(name="foreign", namespace=elsewhere), spec=ShopSpec())
    await town.client.create(encode(foreign))
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.wait_until_quiet()

    untouched = await town.client.get(SHOP, ObjectKey(elsewhere, "foreign"))
    await town.client.delete(GroupVersionKind("", "v1", "Namespace"), ObjectKey("", elsewhere))
    assert "status" not in untouched


async def test_a_component_that_cannot_be_built_stops_no_other(town: OperatorHarness) -> None:
    async with town.running_operator(managing(broken, settings)):
        await town.create_shop("corner", greeting="rude")
        ready = await town.wait_for_condition("corner", "Error")
        await town.wait_for_condition("corner", "Healthy", "SettingsReady")
        assert ready.message == "broken: ValueError: no shop greets like that"

        await town.change("corner", greeting="polite")

        await town.wait_until_ready("corner")


async def test_a_component_that_cannot_be_built_any_more_does_not_stay_ready(town: OperatorHarness) -> None:
    async with town.running_operator(managing(broken, settings)):
        await town.create_shop("corner", greeting="polite")
        await town.wait_for_condition("corner", "Healthy", "MannersReady")
        await town.change("corner", greeting="rude")

        condition = await town.wait_for_condition("corner", "Error", "MannersReady")

    assert (condition.status, condition.message) == ("False", "ValueError: no shop greets like that")


def twin(shop: Shop) -> Component:
    """Reports where `settings` does."""
    return ComponentBuilder("twin", condition_type="SettingsReady").build()


def usurper(shop: Shop) -> Component:
    """Reports where the operator sums up."""
    return ComponentBuilder("usurper", condition_type="Ready").build()


def forgetful(shop: Shop) -> Component:
    """Returns the builder."""
    return ComponentBuilder("forgetful", condition_type="ForgetfulReady")  # type: ignore[return-value]  # the mistake


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        (forgetful, "expected a Component, found ComponentBuilder; does it end in .build()?"),
        (twin, 'component "settings" has condition type SettingsReady too'),
        (usurper, "its condition type Ready is that of the owner's summary"),
    ],
)
async def test_a_component_that_cannot_be_taken_is_an_error(
    town: OperatorHarness, factory: ComponentFactory[Shop], expected: str
) -> None:
    async with town.running_operator(managing(settings, factory)):
        await town.create_shop("corner")
        ready = await town.wait_for_condition("corner", "Error")

    assert expected in ready.message


async def test_an_owner_that_fails_backs_off_while_others_proceed(town: OperatorHarness) -> None:
    async with town.running_operator(managing(broken, settings)):
        await town.create_shop("rude", greeting="rude")
        await town.wait_for_condition("rude", "Error")
        await town.create_shop("nice")
        await town.wait_until_ready("nice")
        await town.wait_until_quiet()
        settled = len(town.requests())
        await town.clock.sleep(3.0)

        assert town.requests()[settled:] == [], "what fails in the same way each time has nothing to write"


async def test_an_owner_on_its_way_out_is_left_alone(town: OperatorHarness) -> None:
    finalizer: dict[str, Any] = {"metadata": {"finalizers": ["konverge.test/hold"]}}
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.client.patch(SHOP, town.key("corner"), finalizer, patch_type="merge")
        await town.client.delete(SHOP, town.key("corner"))
        await town.wait_until_quiet()
        await town.client.delete(CONFIG_MAP, town.key("corner-settings"))
        await town.clock.sleep(2.0)

        assert not await town.exists(CONFIG_MAP, "corner-settings")
        await town.client.patch(SHOP, town.key("corner"), {"metadata": {"finalizers": []}}, patch_type="merge")


async def test_an_owner_born_again_under_its_name_gets_objects_of_its_own(town: OperatorHarness) -> None:
    async with town.running_operator(managing(settings)):
        await town.create_shop("corner", greeting="first")
        await town.wait_until_ready("corner")
        await town.client.delete(SHOP, town.key("corner"))
        second = await town.create_shop("corner", greeting="second")
        await town.wait_until_ready("corner")

        async def belongs_to_the_second() -> bool:
            found = await town.client.get(CONFIG_MAP, town.key("corner-settings"))
            (owner,) = found["metadata"]["ownerReferences"]
            return bool(owner["uid"] == second.metadata.uid)

        await town.cluster.eventually(belongs_to_the_second, describe="the ConfigMap is the second one's")
        await town.wait_for_data("corner-settings", greeting="second")

from datetime import timedelta

import pytest

from konverge.component import Component, ReconcileContext
from konverge.crd import Metadata
from konverge.errors import BuildError, ConfigurationError
from konverge.operator import Operator
from konverge_cluster.testing import Cluster
from tests.operator.sample_operator import LooseShop, Shop, pages, settings


def mistakes_of(failure: pytest.ExceptionInfo[BuildError]) -> tuple[str, ...]:
    return failure.value.errors


def test_the_custom_resources_are_listed_in_order() -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings, pages)

    @operator.reconciles(LooseShop)
    async def reconcile(shop: LooseShop, ctx: ReconcileContext) -> None:
        pass

    assert operator.custom_resources == (Shop, LooseShop)


def test_a_kind_has_one_reconcile() -> None:
    operator = Operator("shops")
    operator.manages(Shop, settings)

    with pytest.raises(BuildError) as failure:
        operator.manages(Shop, pages)

    assert mistakes_of(failure) == ("Shop is registered already; one kind has one reconcile",)


def test_managing_nothing_is_a_mistake() -> None:
    with pytest.raises(BuildError) as failure:
        Operator("shops").manages(Shop)

    assert mistakes_of(failure) == ("manages needs at least one function that builds a component",)


@pytest.mark.parametrize("workers", [0, -1, 2.5, True])
def test_workers_that_reconcile_nothing_are_refused(workers: int) -> None:
    with pytest.raises(BuildError) as failure:
        Operator("shops").manages(Shop, settings, workers=workers)

    assert mistakes_of(failure) == (f"workers: expected a whole number, 1 or more, found {workers!r}",)


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(seconds=-1)])
def test_a_timeout_that_no_reconcile_meets_is_refused(timeout: timedelta) -> None:
    operator = Operator("shops")

    with pytest.raises(BuildError) as failure:

        @operator.reconciles(Shop, timeout=timeout)
        async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
            raise AssertionError("never called")

    assert mistakes_of(failure) == (f"timeout: expected a time above zero, found {timeout}",)


def test_a_class_that_is_no_custom_resource_is_refused() -> None:
    def component(metadata: Metadata) -> Component:
        raise AssertionError("never called")

    with pytest.raises(BuildError, match="the class has no @custom_resource"):
        Operator("shops").manages(Metadata, component)


def test_a_registered_function_stays_callable() -> None:
    async def reconcile(shop: Shop, ctx: ReconcileContext) -> None:
        pass

    assert Operator("shops").reconciles(Shop)(reconcile) is reconcile


@pytest.mark.anyio
async def test_an_operator_without_registrations_does_not_run(cluster: Cluster) -> None:
    with pytest.raises(ConfigurationError, match="the operator has no controllers"):
        await Operator("idle").run(cluster.client, clock=cluster.clock)


@pytest.mark.parametrize("name", ["", "Web App", "web_app", "a" * 64, "web.app", "-web"])
def test_a_name_that_no_lease_or_role_could_have_is_refused(name: str) -> None:
    with pytest.raises(BuildError) as failure:
        Operator(name)

    (mistake,) = mistakes_of(failure)
    assert mistake.startswith("its name: expected a DNS label (63 of a-z, 0-9 and '-' at most, ")
    assert mistake.endswith(f", found {name!r}")

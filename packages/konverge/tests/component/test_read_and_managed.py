"""One object that a component reads first and manages afterwards; on both clusters."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.dry_run import dry_run_component
from konverge.errors import BuildError
from konverge.feature import BooleanGate
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.options import block_on_absence, gated_by, ignore_if_absent, read_only
from konverge.primitives import Data, Deployment, Secret, SecretMutator
from tests.component.app import SECRET, ComponentHarness

pytestmark = pytest.mark.anyio


def build_name(app: ComponentHarness) -> Object:
    return {"metadata": {"name": "access", "namespace": app.key.namespace}}


def build_component(app: ComponentHarness, new_password: str, *, gate: bool = True) -> Component:
    """Keep the password that the Secret has; without one, use the new one."""
    password: Data[str] = Data("password")
    cell = password.fill_with(
        lambda live: b64decode(text).decode() if (text := (live.get("data") or {}).get("password")) else None
    )

    def set_password(secret: SecretMutator) -> None:
        secret.set_string_data("password", password.get(new_password))
        secret.set_string_data("url", f"postgres://app:{password.get(new_password)}@db/app")

    return (
        ComponentBuilder("access", condition_type="AccessReady")
        .with_resource(Secret(build_name(app), extract=cell), read_only(), ignore_if_absent())
        .with_resource(
            Secret(build_name(app), optional_data=password, mutations=Mutation("password", set_password)),
            gated_by(BooleanGate(gate)),
        )
        .build()
    )


async def read_data(app: ComponentHarness) -> dict[str, str]:
    live = await app.find(SECRET, "access")
    assert live is not None
    return {key: b64decode(value).decode() for key, value in live["data"].items()}


async def test_an_absent_secret_is_made_and_keeps_its_value(app: ComponentHarness) -> None:
    first = await app.reconcile(build_component(app, "one-horse"))
    second = await app.reconcile(build_component(app, "two-horse"))

    assert (first.reason, second.reason) == ("Healthy", "Healthy")
    assert await read_data(app) == {"password": "one-horse", "url": "postgres://app:one-horse@db/app"}
    assert await app.list_steady_writes(build_component(app, "three-horse"), is_restarted=True) == []


async def test_a_value_of_another_client_is_read_and_kept(app: ComponentHarness) -> None:
    theirs = {"apiVersion": "v1", "kind": "Secret", **build_name(app), "stringData": {"password": "their-horse"}}
    await app.cluster.client.create(theirs)

    await app.reconcile(build_component(app, "one-horse"))

    assert await read_data(app) == {"password": "their-horse", "url": "postgres://app:their-horse@db/app"}


async def test_a_gate_deletes_the_object_although_it_is_read_too(app: ComponentHarness) -> None:
    await app.reconcile(build_component(app, "one-horse"))
    await app.reconcile(build_component(app, "one-horse", gate=False))
    assert await app.find(SECRET, "access") is None


async def test_the_health_of_the_object_counts_once(app: ComponentHarness) -> None:
    obj = app.build_deployment(image="konverge.test/never-ready:1")
    component = (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(Deployment(obj), read_only(), ignore_if_absent())
        .with_resource(Deployment(obj))
        .build()
    )

    await app.reconcile(component)
    condition = await app.reconcile(component)

    assert ";" not in condition.message
    found = component.find_resource(f"apps/v1/Deployment/{app.key.namespace}/web")
    assert found is component.entries[1].resource


async def test_a_dry_run_has_a_report_for_each_registration(app: ComponentHarness) -> None:
    async def list_outcomes() -> list[tuple[str, str, bool]]:
        report = await dry_run_component(build_component(app, "one-horse"), app.client, await app.owner())
        assert "horse" not in repr(report)
        return [(entry.mode, entry.outcome, bool(entry.changes)) for entry in report.resources]

    assert await list_outcomes() == [("read-only", "ignored", False), ("managed", "applied", True)]
    await app.reconcile(build_component(app, "one-horse"))
    assert await list_outcomes() == [("read-only", "read", False), ("managed", "applied", False)]


@pytest.mark.parametrize(
    ("registrations", "problem"),
    [
        ([(read_only(),), ()], "read, then managed: expected ignore_if_absent(), because the component creates it"),
        ([(read_only(), block_on_absence()), ()], "read, then managed: expected ignore_if_absent()"),
        ([(), (read_only(), ignore_if_absent())], "managed, then read: expected extract= on the managed resource"),
        ([(read_only(), ignore_if_absent())] * 2, "registered twice (read-only, then read-only)"),
        ([(read_only(), ignore_if_absent()), (), ()], "registered twice (managed, then managed)"),
        ([(), ()], "registered twice (managed, then managed)"),
    ],
)
async def test_other_pairs_are_errors_of_the_declaration(registrations: list[Any], problem: str) -> None:
    builder = ComponentBuilder("access", condition_type="AccessReady")
    for options in registrations:
        builder.with_resource(Secret({"metadata": {"name": "access", "namespace": "shop"}}), *options)

    with pytest.raises(BuildError) as raised:
        builder.build()

    assert len(raised.value.errors) == 1
    assert f"v1/Secret/shop/access: {problem}" in str(raised.value)

"""The checksum pattern: pods restart only if the objects that they read change."""

from __future__ import annotations

import pytest

from konverge.component import Component, ComponentBuilder
from konverge.kube import Object
from konverge.mutation import Mutation
from konverge.primitives import ConfigMap, ConfigMapMutator, Deployment, DeploymentMutator, Secret
from tests.component.app import DEPLOYMENT, ComponentHarness

pytestmark = pytest.mark.anyio


def restarting(config: ConfigMap, access: Secret) -> Mutation[DeploymentMutator]:
    """Puts the hashes of what the pods read on the pod template."""

    def annotate(m: DeploymentMutator) -> None:
        m.edit_pod_template_metadata(lambda meta: meta.ensure_annotation("checksum/config", config.hash_desired_data()))
        m.edit_pod_template_metadata(lambda meta: meta.ensure_annotation("checksum/access", access.hash_desired_data()))

    return Mutation("restart", annotate)


def component(
    app: ComponentHarness,
    *mutations: Mutation[ConfigMapMutator],
    colour: str = "blue",
    password: str = "hunter2",
    label: str = "a",
    encoded: bool = False,
) -> Component:
    settings, credentials = app.build_config_map(colour=colour), app.build_config_map("access")
    settings["metadata"]["labels"] = credentials["metadata"]["labels"] = {"part": label}
    values = {"data": {"password": password.encode()}} if encoded else {"stringData": {"password": password}}
    config = ConfigMap(settings, mutations=mutations)
    access = Secret({"metadata": credentials["metadata"], **values})
    return (
        ComponentBuilder("web", condition_type="WebReady")
        .with_resource(config)
        .with_resource(access)
        .with_resource(Deployment(app.build_deployment(), mutations=restarting(config, access)))
        .build()
    )


async def template(app: ComponentHarness) -> Object:
    live = await app.find(DEPLOYMENT, "web")
    assert live is not None
    found: Object = live["spec"]["template"]
    return found


def recolour(m: ConfigMapMutator) -> None:
    m.set_entry("colour", "green")


async def test_a_change_of_the_data_changes_the_pod_template(app: ComponentHarness) -> None:
    await app.reconcile(component(app))
    first = await template(app)
    await app.reconcile(component(app, colour="red"))
    of_the_config = await template(app)
    await app.reconcile(component(app, password="hunter3"))
    of_the_secret = await template(app)
    await app.reconcile(component(app, Mutation("recolour", recolour)))
    of_a_mutation = await template(app)

    annotations = [each["metadata"]["annotations"] for each in (first, of_the_config, of_the_secret, of_a_mutation)]
    assert len({each["checksum/config"] for each in annotations}) == 3
    assert len({each["checksum/access"] for each in annotations}) == 2
    assert "hunter" not in str(annotations)


async def test_a_change_beside_the_data_leaves_the_pod_template_as_it_is(app: ComponentHarness) -> None:
    await app.reconcile(component(app))
    before = await template(app)
    await app.reconcile(component(app, label="b"))
    await app.reconcile(component(app, label="b", encoded=True))

    assert await template(app) == before

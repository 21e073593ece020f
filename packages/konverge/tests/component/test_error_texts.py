"""The error of a failed request has the step, the resource and the server's message, on both clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.component import Component, ComponentBuilder, ReconcileContext
from konverge.errors import KindNotServedError, ReconcileError, ServerError
from konverge.kube import GroupVersionKind
from konverge.options import delete, orphan_when, read_only
from konverge.primitives import ConfigMap, Resource, Static
from tests.component.app import APP, ComponentHarness

pytestmark = pytest.mark.anyio


def frontend() -> ComponentBuilder:
    return ComponentBuilder("frontend", condition_type="FrontendReady")


class Failing:
    """The app's client, of which one verb fails for ConfigMaps."""

    def __init__(self, app: ComponentHarness, verb: str) -> None:
        for name in ("mapping", "get", "apply", "update", "delete"):
            setattr(self, name, getattr(app.client, name))
        works = getattr(app.client, verb)

        async def fails(what: Any, *args: Any, **options: Any) -> Any:
            kind = what["kind"] if isinstance(what, dict) else what.kind
            if kind == "ConfigMap":
                raise ServerError("the disk is full")
            return await works(what, *args, **options)

        setattr(self, verb, fails)


def build_component(app: ComponentHarness) -> Component:
    return frontend().with_resource(ConfigMap(app.build_config_map(colour="red"))).build()


STEPS: list[tuple[str, str, Callable[[ComponentHarness], Component]]] = [
    ("get", "failed to check existence of resource", build_component),
    (
        "get",
        "failed to retrieve object for resource",
        lambda app: frontend().with_resource(ConfigMap(app.build_config_map()), read_only()).build(),
    ),
    ("mapping", "failed to determine GVK for resource", build_component),
    ("apply", "failed to apply resource", build_component),
    (
        "delete",
        "failed to delete resource",
        lambda app: frontend().with_resource(ConfigMap(app.build_config_map()), delete()).build(),
    ),
    (
        "update",
        "failed to orphan resource",
        lambda app: frontend().with_resource(ConfigMap(app.build_config_map()), orphan_when(True)).build(),
    ),
]


@pytest.mark.parametrize(("verb", "step", "build"), STEPS, ids=[step for _, step, _ in STEPS])
async def test_a_request_that_fails_is_told_with_its_step_and_resource(
    app: ComponentHarness, verb: str, step: str, build: Callable[[ComponentHarness], Component]
) -> None:
    await app.reconcile(frontend().with_resource(ConfigMap(app.build_config_map())).build())
    app.client = Failing(app, verb)  # type: ignore[assignment]

    with pytest.raises(ReconcileError) as raised:
        await app.reconcile(build(app))

    app.client = app.cluster.client
    condition = await app.condition("FrontendReady")
    assert str(raised.value) == f"{step} v1/ConfigMap/{app.key.namespace}/settings: the disk is full"
    assert (condition.reason, condition.message) == ("Error", str(raised.value))


@pytest.mark.parametrize("unknown", ["owner", "resource"])
async def test_a_kind_that_nobody_maps_is_an_error(app: ComponentHarness, unknown: str) -> None:
    nothing = GroupVersionKind("nowhere.konverge.test", "v1", "Nothing")
    metadata = {"name": "settings", "namespace": app.key.namespace}
    resources: dict[str, Resource] = {
        "owner": ConfigMap(app.build_config_map()),
        "resource": Static({"apiVersion": nothing.api_version, "kind": nothing.kind, "metadata": metadata}),
    }

    class Mapper:
        """The app's client, which does not know the owner's kind."""

        def __init__(self) -> None:
            self.get, self.apply, self.update, self.delete = (
                app.client.get,
                app.client.apply,
                app.client.update,
                app.client.delete,
            )

        async def mapping(self, gvk: GroupVersionKind) -> Any:
            if gvk == APP and unknown == "owner":
                raise KindNotServedError(f"the server does not serve {gvk}")
            return await app.client.mapping(gvk)

    ctx = ReconcileContext(client=Mapper(), owner=await app.owner(), clock=app.cluster.clock)
    component = frontend().with_resource(resources[unknown]).build()
    with pytest.raises(ReconcileError, match="does not serve"):
        async with ctx.flushing_status():
            await component.reconcile(ctx)

    assert (await app.condition("FrontendReady")).reason == "Error"


async def test_a_component_that_was_never_reconciled_says_so(app: ComponentHarness) -> None:
    owner = await app.owner()

    condition = build_component(app).condition(owner)

    assert (condition.type, condition.status, condition.reason) == ("FrontendReady", "Unknown", "Unknown")
    assert condition.message == "Component has not been reconciled yet."
    assert condition.observed_generation == owner["metadata"]["generation"]


async def test_a_component_knows_its_condition_on_an_owner(app: ComponentHarness) -> None:
    reported = await app.reconcile(build_component(app))
    assert build_component(app).condition(await app.owner()) == reported

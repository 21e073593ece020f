"""The definitions on either cluster: what the schema lets through decodes, and defaults mean the same to both."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pytest
from msgspec import Meta

from konverge.crd import Metadata, crd_manifest, custom_resource, decode, encode, find_definition
from konverge.errors import InvalidError, NotFoundError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.crd.webapps import Policy, Port, Queue, Tier, WebApp, WebAppSpec

pytestmark = pytest.mark.anyio


@dataclass
class GaugeSpec:
    waits: set[timedelta] = field(default_factory=lambda: {timedelta(minutes=1)})
    ports: frozenset[int | str] = frozenset({80, "http", 9})
    step: Annotated[float, Meta(multiple_of=0.1)] = 0.3
    share: Annotated[float, Meta(multiple_of=0.01)] = 0.07


@custom_resource(group="crd.konverge.test", version="v1")
@dataclass
class Gauge:
    metadata: Metadata
    spec: GaugeSpec


async def serve(cluster: Cluster, cls: type) -> None:
    await cluster.install(crd_manifest(cls))


def web_app(cluster: Cluster, **spec: Any) -> Object:
    gvk = find_definition(WebApp).gvk
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {"name": "web", "namespace": cluster.namespace},
        "spec": {"image": "app:1", **spec},
    }


async def test_the_servers_defaults_are_the_classs(cluster: Cluster) -> None:
    await serve(cluster, WebApp)

    stored = await cluster.client.create(web_app(cluster))

    assert decode(WebApp, stored).spec == WebAppSpec(image="app:1")
    assert stored["spec"] == encode(WebApp(Metadata(name="web"), WebAppSpec(image="app:1")))["spec"]


async def test_an_instance_comes_back_as_it_was_sent(cluster: Cluster) -> None:
    await serve(cluster, WebApp)
    sent = WebApp(
        Metadata(name="web", namespace=cluster.namespace, labels={"a": "b"}),
        WebAppSpec(
            image="app:2",
            replicas=3,
            tracing_enabled=True,
            tier=Tier.PAID,
            strategy="Recreate",
            max_unavailable="50%",
            ratio=0.5,
            ports=[Port("http", 80), Port("grpc", 81, app_protocol="h2c")],
            zones={"x", "y"},
            grace_period=timedelta(hours=1, seconds=1.5),
            not_before=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            values={"deep": {"er": [1, None, "x"]}},
        ),
    )

    received = decode(WebApp, await cluster.client.create(encode(sent)))

    assert received.spec == sent.spec
    assert received.metadata.labels == {"a": "b"}
    assert received.metadata.generation == 1
    assert received.metadata.uid


@pytest.mark.parametrize(
    "spec", [GaugeSpec(), GaugeSpec({timedelta(seconds=1), timedelta(hours=2)}, frozenset({"a", 1, 443}), 0.7)]
)
async def test_sets_and_fractional_steps_come_back_as_they_were_sent(cluster: Cluster, spec: GaugeSpec) -> None:
    await serve(cluster, Gauge)
    gauge = Gauge(Metadata(name="one", namespace=cluster.namespace), spec)

    stored = await cluster.client.create(encode(gauge))

    assert decode(Gauge, stored).spec == spec


@pytest.mark.parametrize(("field", "number"), [("step", 0.25), ("step", 1), ("share", 0.29), ("share", -0.005)])
async def test_a_number_that_is_no_multiple_of_the_step_is_rejected(
    cluster: Cluster, field: str, number: float
) -> None:
    # The server finds no integer to be a multiple of a fraction, and rounds no quotient up (0.29 / 0.01).
    await serve(cluster, Gauge)
    gauge = encode(Gauge(Metadata(name="one", namespace=cluster.namespace), GaugeSpec()))
    gauge["spec"][field] = number

    with pytest.raises(InvalidError, match=rf"spec\.{field}"):
        await cluster.client.create(gauge)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": 51}, "spec.replicas"),
        ({"replicas": "3"}, "spec.replicas"),
        ({"image": ""}, "spec.image"),
        ({"tier": "gold"}, "spec.tier"),
        ({"strategy": "Guess"}, "spec.strategy"),
        ({"ratio": 0.0}, "spec.ratio"),
        ({"ports": [{"name": "http"}]}, "spec.ports[0].port"),
        ({"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]}, "spec.ports[1]"),
        ({"zones": ["a", "a"]}, "spec.zones[1]"),
        ({"gracePeriod": "PT5M"}, "spec.gracePeriod"),
        ({"notBefore": "tomorrow"}, "spec.notBefore"),
    ],
)
async def test_the_server_refuses_what_would_not_decode(cluster: Cluster, spec: dict[str, Any], field: str) -> None:
    await serve(cluster, WebApp)

    with pytest.raises(InvalidError) as refusal:
        await cluster.client.create(web_app(cluster, **spec))

    assert field in {cause.field for cause in refusal.value.causes}


@pytest.mark.parametrize(
    "spec",
    [
        {"strategy": None},
        {"ratio": None},
        {"notBefore": None},
        {"replicas": None},
        {"maxUnavailable": "50%"},
        {"gracePeriod": "90s"},
        {"fromTheFuture": True},
    ],
)
async def test_what_the_server_accepts_decodes(cluster: Cluster, spec: dict[str, Any]) -> None:
    await serve(cluster, WebApp)

    stored = await cluster.client.create(web_app(cluster, **spec))

    assert decode(WebApp, stored).spec.image == "app:1"


async def test_a_spec_of_defaults_alone_may_be_left_out(cluster: Cluster) -> None:
    await serve(cluster, Queue)
    definition = find_definition(Queue)
    obj = {"apiVersion": definition.gvk.api_version, "kind": "Queue", "metadata": {"name": cluster.namespace}}

    stored = await cluster.client.create(obj)
    await cluster.client.delete(definition.gvk, ObjectKey("", cluster.namespace))

    assert decode(Queue, stored).spec.max_length == 100


async def test_a_status_holds_conditions_by_type_beside_the_declared_fields(cluster: Cluster) -> None:
    await serve(cluster, Queue)
    gvk = find_definition(Queue).gvk
    name = f"{cluster.namespace}-status"
    stored = await cluster.client.create(
        {"apiVersion": gvk.api_version, "kind": "Queue", "metadata": {"name": name}, "spec": {}}
    )
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Healthy",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    stored["status"] = {"currentLength": 4, "conditions": [condition], "unknown": 1}
    reported = await cluster.client.update(stored, subresource="status")
    twice = {**reported, "status": {"conditions": [condition, condition]}}
    with pytest.raises(InvalidError):
        await cluster.client.update(twice, subresource="status")
    await cluster.client.delete(gvk, ObjectKey("", name))

    assert reported["status"] == {"currentLength": 4, "conditions": [condition]}
    decoded = decode(Queue, reported)
    assert decoded.status is not None
    assert decoded.status.current_length == 4


async def test_a_kind_with_an_irregular_plural_is_served(cluster: Cluster) -> None:
    await serve(cluster, Policy)

    with pytest.raises(NotFoundError, match="accesspolicies"):
        await cluster.client.get(find_definition(Policy).gvk, ObjectKey(cluster.namespace, "none"))


@pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])
async def test_the_server_evaluates_the_rules(cluster: Cluster) -> None:
    await serve(cluster, WebApp)

    with pytest.raises(InvalidError, match="40 replicas are paid for"):
        await cluster.client.create(web_app(cluster, replicas=45))

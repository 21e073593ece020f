"""What a definition says beside its schema, as the servers understand it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from konverge.crd import Metadata, crd_manifest, decode, encode, find_definition
from konverge.errors import InvalidError
from konverge.kube import Object, ObjectKey
from konverge_cluster.controlplane import find_binaries
from konverge_cluster.testing import Cluster
from tests.crd.models import Mixed, MixedSpec, WebAppModel, WebAppModelSpec
from tests.crd.scaling import Fleet, FleetSpec, FleetV1Beta1, Route

pytestmark = pytest.mark.anyio

only_real = pytest.mark.parametrize("cluster_kind", [pytest.param("real", marks=pytest.mark.real)])


async def serve(cluster: Cluster, cls: type) -> None:
    await cluster.install(crd_manifest(cls))


async def kubectl(cluster: Cluster, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        str(find_binaries() / "kubectl"),
        f"--kubeconfig={await cluster.write_kubeconfig()}",
        f"--namespace={cluster.namespace}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode() + err.decode()


def fleet(cluster: Cluster, name: str = "home", **spec: Any) -> Object:
    gvk = find_definition(Fleet).gvk
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {"name": name, "namespace": cluster.namespace},
        "spec": {"region": "north", **spec},
    }


async def test_every_version_is_served_and_the_server_changes_the_api_version(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    await cluster.client.create(fleet(cluster, tier="paid"))

    old = await cluster.client.get(find_definition(FleetV1Beta1).gvk, ObjectKey(cluster.namespace, "home"))

    assert decode(FleetV1Beta1, old).spec.region == "north"
    assert old["apiVersion"] == "scaling.konverge.test/v1beta1"


async def test_the_servers_defaults_are_those_of_the_classes(cluster: Cluster) -> None:
    await serve(cluster, Fleet)

    stored = await cluster.client.create(fleet(cluster))

    assert decode(Fleet, stored).spec == FleetSpec(region="north")
    assert stored["spec"] == encode(Fleet(Metadata(name="home"), FleetSpec(region="north")))["spec"]


@pytest.mark.parametrize(("cls", "spec"), [(Mixed, MixedSpec()), (WebAppModel, WebAppModelSpec(image="app:1"))])
async def test_the_servers_defaults_are_those_of_a_model(cluster: Cluster, cls: Any, spec: Any) -> None:
    await serve(cluster, cls)
    sent = encode(cls(metadata=Metadata(name="m", namespace=cluster.namespace), spec=spec))
    least = {**sent, "spec": {"image": "app:1"} if cls is WebAppModel else {}}

    stored = await cluster.client.create(least)

    assert stored["spec"] == sent["spec"]
    assert decode(cls, stored).spec == spec


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"title": "A"}, "spec.title"),
        ({"weights": [0]}, "spec.weights[0]"),
        ({"weights": [1, 1, 1, 1]}, "spec.weights"),
        ({"pairs": [1, 2, 3]}, "spec.pairs"),
        ({"share": "x"}, "spec.share"),
        ({"window": {"firstHour": 24}}, "spec.window.firstHour"),
    ],
)
async def test_the_server_refuses_what_a_model_would(cluster: Cluster, spec: dict[str, Any], field: str) -> None:
    await serve(cluster, Mixed)
    sent = encode(Mixed(Metadata(name="m", namespace=cluster.namespace)))

    with pytest.raises(InvalidError) as refusal:
        await cluster.client.create({**sent, "spec": spec})

    assert field in {cause.field for cause in refusal.value.causes}


async def test_what_a_model_keeps_beyond_its_fields_the_server_keeps(cluster: Cluster) -> None:
    await serve(cluster, Mixed)
    sent = encode(Mixed(Metadata(name="m", namespace=cluster.namespace)))
    sent["spec"] = {"window": {"firstHour": 2, "soon": {"deep": [1]}}}

    stored = await cluster.client.create(sent)

    assert encode(decode(Mixed, stored))["spec"]["window"] == {"firstHour": 2, "lastHour": 23, "soon": {"deep": [1]}}


async def test_the_scale_subresource_reads_and_sets_the_declared_fields(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    gvk, key = find_definition(Fleet).gvk, ObjectKey(cluster.namespace, "home")
    stored = await cluster.client.create(fleet(cluster, replicas=3))
    stored["status"] = {"replicas": 2, "selector": "app=fleet"}
    await cluster.client.update(stored, subresource="status")

    scale = await cluster.client.get(gvk, key, subresource="scale")
    await cluster.client.patch(gvk, key, {"spec": {"replicas": 7}}, patch_type="merge", subresource="scale")

    assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 2, "selector": "app=fleet"})
    assert (await cluster.client.get(gvk, key))["spec"]["replicas"] == 7


async def test_items_of_a_list_map_have_an_owner_each(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    for host in ("a", "b"):
        await cluster.client.apply(fleet(cluster, routes=[{"host": host}]), field_manager=f"manager-{host}")

    stored = await cluster.client.get(find_definition(Fleet).gvk, ObjectKey(cluster.namespace, "home"))

    assert decode(Fleet, stored).spec.routes == [Route("a"), Route("b")]


async def test_an_atomic_list_is_replaced_as_a_whole(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    for argument in ("a", "b"):
        wanted = fleet(cluster, arguments=[argument], labels={argument: "1"})
        await cluster.client.apply(wanted, field_manager=f"manager-{argument}")

    stored = await cluster.client.get(find_definition(Fleet).gvk, ObjectKey(cluster.namespace, "home"))

    assert stored["spec"]["arguments"] == ["b"]
    assert stored["spec"]["labels"] == {"b": "1"}


@only_real
async def test_an_embedded_resource_is_checked_as_an_object(cluster: Cluster) -> None:
    await serve(cluster, Fleet)

    with pytest.raises(InvalidError, match="spec.template"):
        await cluster.client.create(fleet(cluster, template={"data": {}}))
    held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}
    stored = await cluster.client.create(fleet(cluster, template=held))

    assert decode(Fleet, stored).spec.template == held


@only_real
async def test_a_rule_of_a_class_is_enforced_with_its_message_field_and_reason(cluster: Cluster) -> None:
    await serve(cluster, Fleet)

    with pytest.raises(InvalidError, match="more than several") as refusal:
        await cluster.client.create(fleet(cluster, bounds={"minReplicas": 3, "maxReplicas": 2}))

    (cause,) = refusal.value.causes
    assert (cause.field, cause.reason) == ("spec.bounds.minReplicas", "FieldValueForbidden")


@only_real
async def test_a_rule_over_the_object_sees_its_name(cluster: Cluster) -> None:
    await serve(cluster, Fleet)

    with pytest.raises(InvalidError, match="no fleet is called so"):
        await cluster.client.create(fleet(cluster, name="armada"))


@only_real
async def test_an_immutable_field_keeps_its_value(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    stored = await cluster.client.create(fleet(cluster))
    stored["spec"]["region"] = "south"

    with pytest.raises(InvalidError, match=r"spec\.region.*a fleet does not move"):
        await cluster.client.update(stored)


@only_real
async def test_a_selectable_field_selects(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    await cluster.client.create(fleet(cluster, name="free"))
    await cluster.client.create(fleet(cluster, name="paid", tier="paid"))

    found = await cluster.client.list(
        find_definition(Fleet).gvk, namespace=cluster.namespace, field_selector="spec.tier=paid"
    )

    assert [obj["metadata"]["name"] for obj in found.items] == ["paid"]


@only_real
async def test_kubectl_shows_columns_scales_and_is_warned_of_the_old_version(cluster: Cluster) -> None:
    await serve(cluster, Fleet)
    await cluster.client.create(fleet(cluster))

    shown = await kubectl(cluster, "get", "fl")
    wide = await kubectl(cluster, "get", "konverge", "-o", "wide")
    await kubectl(cluster, "scale", "fleet/home", "--replicas=4")
    scaled = await kubectl(cluster, "get", "fleet.v1beta1.scaling.konverge.test", "home", "-o", "yaml")

    assert [line.split() for line in shown.splitlines()] == [["NAME", "REGION", "WANTED"], ["home", "north", "1"]]
    assert wide.split()[:4] == ["NAME", "REGION", "TIER", "WANTED"]
    assert "replicas: 4" in scaled
    assert "Warning: scaling.konverge.test/v1beta1 Fleet is replaced by v1" in scaled


@only_real
async def test_a_rule_without_bounds_is_too_costly_for_the_server(cluster: Cluster) -> None:
    """Why the documentation of rules asks for `max_length`."""
    manifest = crd_manifest(Fleet)
    manifest["metadata"]["name"] = "costlyfleets.scaling.konverge.test"
    manifest["spec"]["names"] = {"kind": "CostlyFleet", "plural": "costlyfleets"}
    spec = manifest["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    del spec["routes"]["maxItems"], spec["routes"]["items"]["properties"]["host"]["maxLength"]
    rule = {"rule": "self.all(one, self.all(other, one.host == other.host || one.host.contains(other.host)))"}
    spec["routes"]["x-kubernetes-validations"] = [rule]

    with pytest.raises(InvalidError, match="estimated rule cost exceeds budget"):
        await cluster.client.create(manifest)

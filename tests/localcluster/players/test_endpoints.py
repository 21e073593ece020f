from __future__ import annotations

import pytest

from konverge.kube import Object
from tests.localcluster.players.stage import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    NEVER_READY,
    POD,
    SERVICE,
    Stage,
    deployment,
    service,
    stateful_set,
)

pytestmark = pytest.mark.anyio


def the_slice(stage: Stage) -> Object:
    (found,) = stage.all(ENDPOINT_SLICE)
    return found


async def test_a_service_gets_a_slice_with_its_ready_pods(stage: Stage) -> None:
    created = stage.create(service())
    stage.create(deployment(replicas=2))
    await stage.settle()

    found = the_slice(stage)
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert found["metadata"]["labels"] == {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
    }
    assert found["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert {each["addresses"][0] for each in found["endpoints"]} == {pod["status"]["podIP"] for pod in stage.all(POD)}
    assert found["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert {each["targetRef"]["name"] for each in found["endpoints"]} == set(stage.names(POD))


async def test_a_service_gets_endpoints_of_its_own_name(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment(replicas=2))
    await stage.settle()

    (subset,) = stage.get(ENDPOINTS, "web")["subsets"]
    assert len(subset["addresses"]) == 2
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]


async def test_pods_that_are_not_ready_are_listed_as_such(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment(image=NEVER_READY))
    await stage.settle()

    (endpoint,) = the_slice(stage)["endpoints"]
    (subset,) = stage.get(ENDPOINTS, "web")["subsets"]
    assert endpoint["conditions"] == {"ready": False, "serving": False, "terminating": False}
    assert "addresses" not in subset
    assert len(subset["notReadyAddresses"]) == 1


async def test_pods_that_go_take_their_addresses_along(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment(replicas=2))
    await stage.settle()

    stage.change_spec(DEPLOYMENT, "web", replicas=0)
    await stage.settle()

    assert not the_slice(stage).get("endpoints")
    assert "subsets" not in stage.get(ENDPOINTS, "web")


async def test_named_target_ports_are_looked_up_in_the_pod(stage: Stage) -> None:
    wanted = deployment()
    ports = [{"name": "http", "containerPort": 9090, "protocol": "TCP"}]
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    stage.create(wanted)
    stage.create(service(ports=[{"name": "web", "port": 80, "targetPort": "http"}]))
    await stage.settle()

    assert the_slice(stage)["ports"] == [{"name": "web", "protocol": "TCP", "port": 9090}]


async def test_a_service_without_selector_is_left_alone(stage: Stage) -> None:
    stage.create(service(selector={}))
    await stage.settle()

    assert stage.names(ENDPOINT_SLICE) == []
    assert stage.find(ENDPOINTS, "web") is None


async def test_a_changed_selector_is_followed(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment("web"))
    stage.create(deployment("other"))
    await stage.settle()

    stage.change_spec(SERVICE, "web", selector={"app": "other"})
    await stage.settle()

    (endpoint,) = the_slice(stage)["endpoints"]
    assert endpoint["targetRef"]["name"].startswith("other-")


async def test_a_deleted_service_takes_its_slice_and_its_endpoints_along(stage: Stage) -> None:
    stage.create(service())
    await stage.settle()

    stage.delete(SERVICE, "web")
    await stage.settle()

    assert stage.names(ENDPOINT_SLICE) == []
    assert stage.find(ENDPOINTS, "web") is None


async def test_slices_that_somebody_deletes_are_made_anew(stage: Stage) -> None:
    stage.create(service())
    await stage.settle()
    first = the_slice(stage)["metadata"]["name"]

    stage.delete(ENDPOINT_SLICE, first)
    await stage.settle()

    assert the_slice(stage)["metadata"]["name"] != first


async def test_a_headless_service_names_the_pods_of_its_stateful_set(stage: Stage) -> None:
    stage.create(service("db", clusterIP="None"))
    stage.create(stateful_set(replicas=1))
    await stage.settle()

    found = the_slice(stage)
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert found["endpoints"][0]["hostname"] == "db-0"


async def test_more_than_a_hundred_pods_need_more_slices(stage: Stage) -> None:
    stage.create(service())
    stage.create(deployment(replicas=150))
    await stage.settle()

    assert sorted(len(found["endpoints"]) for found in stage.all(ENDPOINT_SLICE)) == [50, 100]


async def test_load_balancers_stay_without_address_by_default(stage: Stage) -> None:
    stage.create(service(type="LoadBalancer"))
    await stage.settle()

    assert stage.get(SERVICE, "web")["status"] == {"loadBalancer": {}}

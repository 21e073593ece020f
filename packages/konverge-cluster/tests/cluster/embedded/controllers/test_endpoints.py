from __future__ import annotations

import pytest

from konverge.kube import Object
from tests.cluster.embedded.controllers.controller_harness import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    ENDPOINTS,
    NEVER_READY,
    POD,
    SERVICE,
    ControllerHarness,
    build_deployment,
    build_service,
    build_stateful_set,
)

pytestmark = pytest.mark.anyio


def the_slice(stage: ControllerHarness) -> Object:
    (found,) = stage.list_objects(ENDPOINT_SLICE)
    return found


async def test_a_service_gets_a_slice_with_its_ready_pods(stage: ControllerHarness) -> None:
    created = stage.create(build_service())
    stage.create(build_deployment(replicas=2))
    await stage.advance()

    found = the_slice(stage)
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert found["metadata"]["labels"] == {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
    }
    assert found["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert {each["addresses"][0] for each in found["endpoints"]} == {
        pod["status"]["podIP"] for pod in stage.list_objects(POD)
    }
    assert found["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert {each["targetRef"]["name"] for each in found["endpoints"]} == set(stage.list_names(POD))


async def test_a_service_gets_endpoints_of_its_own_name(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment(replicas=2))
    await stage.advance()

    (subset,) = stage.get(ENDPOINTS, "web")["subsets"]
    assert len(subset["addresses"]) == 2
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]


async def test_pods_that_are_not_ready_are_listed_as_such(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment(image=NEVER_READY))
    await stage.advance()

    (endpoint,) = the_slice(stage)["endpoints"]
    (subset,) = stage.get(ENDPOINTS, "web")["subsets"]
    assert endpoint["conditions"] == {"ready": False, "serving": False, "terminating": False}
    assert "addresses" not in subset
    assert len(subset["notReadyAddresses"]) == 1


async def test_pods_that_go_take_their_addresses_along(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment(replicas=2))
    await stage.advance()

    stage.change_spec(DEPLOYMENT, "web", replicas=0)
    await stage.advance()

    assert not the_slice(stage).get("endpoints")
    assert "subsets" not in stage.get(ENDPOINTS, "web")


async def test_named_target_ports_are_looked_up_in_the_pod(stage: ControllerHarness) -> None:
    wanted = build_deployment()
    ports = [{"name": "http", "containerPort": 9090, "protocol": "TCP"}]
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    stage.create(wanted)
    stage.create(build_service(ports=[{"name": "web", "port": 80, "targetPort": "http"}]))
    await stage.advance()

    assert the_slice(stage)["ports"] == [{"name": "web", "protocol": "TCP", "port": 9090}]


async def test_a_service_without_selector_is_left_alone(stage: ControllerHarness) -> None:
    stage.create(build_service(selector={}))
    await stage.advance()

    assert stage.list_names(ENDPOINT_SLICE) == []
    assert stage.find(ENDPOINTS, "web") is None


async def test_a_changed_selector_is_followed(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment("web"))
    stage.create(build_deployment("other"))
    await stage.advance()

    stage.change_spec(SERVICE, "web", selector={"app": "other"})
    await stage.advance()

    (endpoint,) = the_slice(stage)["endpoints"]
    assert endpoint["targetRef"]["name"].startswith("other-")


async def test_a_deleted_service_takes_its_slice_and_its_endpoints_along(stage: ControllerHarness) -> None:
    stage.create(build_service())
    await stage.advance()

    stage.delete(SERVICE, "web")
    await stage.advance()

    assert stage.list_names(ENDPOINT_SLICE) == []
    assert stage.find(ENDPOINTS, "web") is None


async def test_slices_that_somebody_deletes_are_made_anew(stage: ControllerHarness) -> None:
    stage.create(build_service())
    await stage.advance()
    first = the_slice(stage)["metadata"]["name"]

    stage.delete(ENDPOINT_SLICE, first)
    await stage.advance()

    assert the_slice(stage)["metadata"]["name"] != first


async def test_a_headless_service_names_the_pods_of_its_stateful_set(stage: ControllerHarness) -> None:
    stage.create(build_service("db", clusterIP="None"))
    stage.create(build_stateful_set(replicas=1))
    await stage.advance()

    found = the_slice(stage)
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert found["endpoints"][0]["hostname"] == "db-0"


async def test_more_than_a_hundred_pods_need_more_slices(stage: ControllerHarness) -> None:
    stage.create(build_service())
    stage.create(build_deployment(replicas=150))
    await stage.advance()

    assert sorted(len(found["endpoints"]) for found in stage.list_objects(ENDPOINT_SLICE)) == [50, 100]


async def test_load_balancers_stay_without_address_by_default(stage: ControllerHarness) -> None:
    stage.create(build_service(type="LoadBalancer"))
    await stage.advance()

    assert stage.get(SERVICE, "web")["status"] == {"loadBalancer": {}}

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


def the_slice(harness: ControllerHarness) -> Object:
    (found,) = harness.list_objects(ENDPOINT_SLICE)
    return found


async def test_a_service_gets_a_slice_with_its_ready_pods(harness: ControllerHarness) -> None:
    created = harness.create(build_service())
    harness.create(build_deployment(replicas=2))
    await harness.advance()

    found = the_slice(harness)
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "http", "protocol": "TCP", "port": 8080}]
    assert found["metadata"]["labels"] == {
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": "web",
    }
    assert found["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert {each["addresses"][0] for each in found["endpoints"]} == {
        pod["status"]["podIP"] for pod in harness.list_objects(POD)
    }
    assert found["endpoints"][0]["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert {each["targetRef"]["name"] for each in found["endpoints"]} == set(harness.list_names(POD))


async def test_a_service_gets_endpoints_of_its_own_name(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment(replicas=2))
    await harness.advance()

    (subset,) = harness.get(ENDPOINTS, "web")["subsets"]
    assert len(subset["addresses"]) == 2
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]


async def test_pods_that_are_not_ready_are_listed_as_such(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment(image=NEVER_READY))
    await harness.advance()

    (endpoint,) = the_slice(harness)["endpoints"]
    (subset,) = harness.get(ENDPOINTS, "web")["subsets"]
    assert endpoint["conditions"] == {"ready": False, "serving": False, "terminating": False}
    assert "addresses" not in subset
    assert len(subset["notReadyAddresses"]) == 1


async def test_pods_that_go_take_their_addresses_along(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment(replicas=2))
    await harness.advance()

    harness.change_spec(DEPLOYMENT, "web", replicas=0)
    await harness.advance()

    assert not the_slice(harness).get("endpoints")
    assert "subsets" not in harness.get(ENDPOINTS, "web")


async def test_named_target_ports_are_looked_up_in_the_pod(harness: ControllerHarness) -> None:
    wanted = build_deployment()
    ports = [{"name": "http", "containerPort": 9090, "protocol": "TCP"}]
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] = ports
    harness.create(wanted)
    harness.create(build_service(ports=[{"name": "web", "port": 80, "targetPort": "http"}]))
    await harness.advance()

    assert the_slice(harness)["ports"] == [{"name": "web", "protocol": "TCP", "port": 9090}]


async def test_a_service_without_selector_is_left_alone(harness: ControllerHarness) -> None:
    harness.create(build_service(selector={}))
    await harness.advance()

    assert harness.list_names(ENDPOINT_SLICE) == []
    assert harness.find(ENDPOINTS, "web") is None


async def test_a_changed_selector_is_followed(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment("web"))
    harness.create(build_deployment("other"))
    await harness.advance()

    harness.change_spec(SERVICE, "web", selector={"app": "other"})
    await harness.advance()

    (endpoint,) = the_slice(harness)["endpoints"]
    assert endpoint["targetRef"]["name"].startswith("other-")


async def test_a_deleted_service_takes_its_slice_and_its_endpoints_along(harness: ControllerHarness) -> None:
    harness.create(build_service())
    await harness.advance()

    harness.delete(SERVICE, "web")
    await harness.advance()

    assert harness.list_names(ENDPOINT_SLICE) == []
    assert harness.find(ENDPOINTS, "web") is None


async def test_slices_that_somebody_deletes_are_made_anew(harness: ControllerHarness) -> None:
    harness.create(build_service())
    await harness.advance()
    first = the_slice(harness)["metadata"]["name"]

    harness.delete(ENDPOINT_SLICE, first)
    await harness.advance()

    assert the_slice(harness)["metadata"]["name"] != first


async def test_a_headless_service_names_the_pods_of_its_stateful_set(harness: ControllerHarness) -> None:
    harness.create(build_service("db", clusterIP="None"))
    harness.create(build_stateful_set(replicas=1))
    await harness.advance()

    found = the_slice(harness)
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    assert found["endpoints"][0]["hostname"] == "db-0"


@pytest.mark.slow
async def test_more_than_a_hundred_pods_need_more_slices(harness: ControllerHarness) -> None:
    harness.create(build_service())
    harness.create(build_deployment(replicas=150))
    await harness.advance()

    assert sorted(len(found["endpoints"]) for found in harness.list_objects(ENDPOINT_SLICE)) == [50, 100]


async def test_load_balancers_stay_without_address_by_default(harness: ControllerHarness) -> None:
    harness.create(build_service(type="LoadBalancer"))
    await harness.advance()

    assert harness.get(SERVICE, "web")["status"] == {"loadBalancer": {}}

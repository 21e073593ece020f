from __future__ import annotations

import ipaddress

import pytest

from konverge.errors import InvalidError
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from tests.cluster.embedded.objects import SERVICE, key, service

NETWORK = ipaddress.ip_network("10.96.0.0/12")


def spec_of(created: Object) -> Object:
    spec: Object = created["spec"]
    return spec


def test_each_service_gets_an_address_of_its_own(api: ApiServer) -> None:
    addresses = {spec_of(api.create(SERVICE, service(f"web-{number}")))["clusterIP"] for number in range(20)}

    assert len(addresses) == 20
    assert all(ipaddress.ip_address(address) in NETWORK for address in addresses)


def test_the_rest_of_the_addressing_follows(api: ApiServer) -> None:
    spec = spec_of(api.create(SERVICE, service()))

    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"], spec["internalTrafficPolicy"]) == (
        ["IPv4"],
        "SingleStack",
        "Cluster",
    )


@pytest.mark.parametrize(
    ("address", "message"),
    [("192.0.2.1", "is not in the valid range"), ("10.96.0.1", "provided IP is already allocated")],
)
def test_an_address_that_cannot_be_had_is_refused(api: ApiServer, address: str, message: str) -> None:
    with pytest.raises(InvalidError, match=message):
        api.create(SERVICE, service(clusterIP=address))


def test_a_headless_service_has_no_address(api: ApiServer) -> None:
    spec = spec_of(api.create(SERVICE, service(clusterIP="None")))

    assert (spec["clusterIP"], spec["clusterIPs"]) == ("None", ["None"])


def test_a_service_keeps_its_address_and_none_changes_it(api: ApiServer) -> None:
    before = spec_of(api.create(SERVICE, service()))

    after = spec_of(api.update(SERVICE, service(ports=[{"port": 81}])))

    assert after["clusterIP"] == before["clusterIP"]
    with pytest.raises(InvalidError, match="may not change once set"):
        api.patch(SERVICE, key("web"), {"spec": {"clusterIP": "10.96.7.7"}})


def test_node_ports_come_and_go_with_the_type(api: ApiServer) -> None:
    plain = spec_of(api.create(SERVICE, service()))
    exposed = spec_of(api.patch(SERVICE, key("web"), {"spec": {"type": "NodePort"}}))
    kept = spec_of(api.update(SERVICE, service(type="NodePort")))
    hidden = spec_of(api.patch(SERVICE, key("web"), {"spec": {"type": "ClusterIP"}}))

    assert "nodePort" not in plain["ports"][0]
    assert 30000 <= exposed["ports"][0]["nodePort"] <= 32767
    assert kept["ports"] == exposed["ports"]
    assert "nodePort" not in hidden["ports"][0]
    assert "externalTrafficPolicy" not in hidden


def test_a_node_port_is_taken_once(api: ApiServer) -> None:
    ports = [{"port": 80, "nodePort": 30080}]
    api.create(SERVICE, service("first", type="NodePort", ports=ports))

    with pytest.raises(InvalidError, match="provided port is already allocated"):
        api.create(SERVICE, service("second", type="NodePort", ports=ports))


def test_an_external_name_gives_the_address_back(api: ApiServer) -> None:
    api.create(SERVICE, service())

    outside = spec_of(api.patch(SERVICE, key("web"), {"spec": {"type": "ExternalName", "externalName": "example.com"}}))

    assert "clusterIP" not in outside


def test_the_api_servers_own_service_is_there(api: ApiServer) -> None:
    assert spec_of(api.get(SERVICE, key("kubernetes")))["clusterIP"] == "10.96.0.1"

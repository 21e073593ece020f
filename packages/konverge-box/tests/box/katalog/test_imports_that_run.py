"""Imports without findings work: what would fail in a cluster is converted, or is reported."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from konverge_box._internal.file import load_box
from konverge_box._internal.katalog import KatalogImport
from tests.box.katalog.katalogs import import_sample

API = {"group": "example.com", "version": "v1"}


def import_crds(**crds: dict[str, Any]) -> KatalogImport:
    entries = {
        name: {"apiTypes": {**API, "kind": name.capitalize(), "plural": f"{name}s"}, "operatorBox": box}
        for name, box in crds.items()
    }
    return import_sample(yaml.safe_dump({"kind": "Katalog", "spec": {"crds": entries}}, sort_keys=False))


def import_call(**call: Any) -> KatalogImport:
    return import_crds(app={"onReconcile": {"external": [{"name": "ask", "url": "https://example.com", **call}]}})


def convert(found: KatalogImport) -> Any:
    load_box(found.text)
    return yaml.safe_load(found.text)["spec"]


def test_a_katalog_without_a_resync_reconciles_as_often_as_before() -> None:
    unset, declared = (
        import_crds(app={"onReconcile": {"configMaps": [{"name": "a"}]}, **resync}) for resync in ({}, {"resync": "2m"})
    )

    assert convert(unset)["crds"]["app"]["reconcile"] == {"resync": "30s"}
    assert convert(declared)["crds"]["app"]["reconcile"] == {"resync": "2m"}


@pytest.mark.parametrize(
    ("url", "networks"),
    [
        ("http://10.3.4.5:8080/x", ["10.3.4.5/32"]),
        ("http://[fd00::1]/x", ["fd00::1/128"]),
        ("http://user@192.168.1.1", ["192.168.1.1/32"]),
        ("https://1.1.1.1/", None),
        ("https://example.com/", None),
    ],
)
def test_a_private_address_is_allowed(url: str, networks: list[str] | None) -> None:
    found = import_call(url=url)

    assert found.listed == ()
    assert convert(found).get("allowedNetworks") == networks


@pytest.mark.parametrize("host", ["hours", "hours.shop.svc", "hours.shop.svc.cluster.local:8080", "localhost:9090"])
def test_a_name_of_the_cluster_is_reported(host: str) -> None:
    (finding,) = import_call(url=f"http://{host}/now").listed

    assert host.partition(":")[0] in finding.what
    assert "spec.allowedNetworks" in finding.instead


def test_a_host_from_an_expression_has_a_comment() -> None:
    found = import_call(url="https://{{ .spec.host }}/now")

    assert found.listed == ()
    assert "allowedNetworks" in found.decisions[0].text


def test_the_secret_of_a_call_can_come_from_the_custom_resource() -> None:
    found = import_call(auth={"secretRef": {"name": "{{ .metadata.name }}-token", "key": "{{ .spec.key }}"}})

    (call,) = convert(found)["crds"]["app"]["external"]
    assert call["auth"]["secretRef"] == {"name": "{{ metadata.name }}-token", "key": "{{ spec.key }}"}


@pytest.mark.parametrize(
    ("token", "call"),
    [
        ("$API_TOKEN", {"auth": {"env": "API_TOKEN"}}),
        ("{{ .spec.token }}", {"headers": {"Authorization": "Bearer {{ spec.token }}"}}),
    ],
)
def test_a_token_of_an_early_generation_is_converted(token: str, call: dict[str, Any]) -> None:
    found = import_call(token=token)

    (converted,) = convert(found)["crds"]["app"]["external"]
    assert {key: converted[key] for key in call} == call
    assert found.listed == ()


def test_custom_resources_that_name_an_object_alike_are_reported() -> None:
    web = {"onReconcile": {"deployments": [{"image": "nginx"}], "services": [{"name": "a", "port": "80"}]}}
    other = {"onReconcile": {"deployments": [{"image": "nginx"}], "services": [{"name": "b", "port": "80"}]}}

    (finding,) = import_crds(app=web, worker=other).listed

    assert finding.path == "spec.crds.worker"
    assert "app declares deployments with the same name, {{ metadata.name }}-deployment" in finding.why
    assert import_crds(app=web).listed == ()

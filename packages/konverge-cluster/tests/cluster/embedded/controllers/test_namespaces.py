from __future__ import annotations

import logging

import pytest

from konverge.kube import GroupVersionKind, Object, ObjectKey
from tests.cluster.embedded.controllers.controller_harness import (
    CONFIG_MAP,
    NAMESPACE,
    POD,
    ControllerHarness,
    build_config_map,
    build_deployment,
    build_service,
    build_stateful_set,
    read_condition,
)

pytestmark = pytest.mark.anyio

SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def into(obj: Object, name: str) -> Object:
    obj["metadata"]["namespace"] = name
    return obj


async def test_a_namespace_gets_what_every_namespace_has(harness: ControllerHarness) -> None:
    harness.create(namespace("team"))
    await harness.advance()

    assert harness.list_names(SERVICE_ACCOUNT, "team") == ["default"]
    assert harness.list_names(CONFIG_MAP, "team") == ["kube-root-ca.crt"]


async def test_the_default_service_account_comes_back(harness: ControllerHarness) -> None:
    harness.delete(SERVICE_ACCOUNT, "default")
    await harness.advance()

    assert harness.list_names(SERVICE_ACCOUNT) == ["default"]


async def test_a_deleted_namespace_is_emptied_pods_first(harness: ControllerHarness) -> None:
    harness.create(namespace("team"))
    harness.create(into(build_deployment(), "team"))
    harness.create(into(build_config_map("settings"), "team"))
    await harness.advance()
    harness.changes.clear()

    harness.delete(NAMESPACE, "team", namespace="")
    await harness.advance()

    gone = [line.split()[1] for line in harness.list_changes() if line.startswith("DELETED")]
    assert gone[0] == "pods"
    assert gone[-1] == "namespaces"
    assert harness.list_names(POD, "team") == harness.list_names(CONFIG_MAP, "team") == []
    assert harness.api.find(NAMESPACE, ObjectKey("", "team")) is None


async def test_what_is_left_is_told_and_holds_the_namespace(harness: ControllerHarness) -> None:
    harness.create(namespace("team"))
    harness.create(into(build_config_map("held", finalizers=["konverge.test/hold"]), "team"))
    await harness.advance()

    harness.delete(NAMESPACE, "team", namespace="")
    await harness.advance(60)
    waiting = harness.get(NAMESPACE, "team", "")
    held = harness.get(CONFIG_MAP, "held", "team")
    held["metadata"]["finalizers"] = []
    harness.api.update(CONFIG_MAP, held)
    await harness.advance()

    messages = {each["type"]: each["message"] for each in waiting["status"]["conditions"]}
    assert waiting["status"]["phase"] == "Terminating"
    assert read_condition(waiting, "NamespaceContentRemaining") == ("True", "SomeResourcesRemain")
    assert messages["NamespaceContentRemaining"] == (
        "Some resources are remaining: configmaps. has 1 resource instances"
    )
    assert messages["NamespaceFinalizersRemaining"] == (
        "Some content in the namespace has finalizers remaining: konverge.test/hold in 1 resource instances"
    )
    assert harness.api.find(NAMESPACE, ObjectKey("", "team")) is None


async def test_nothing_is_complained_of_while_a_namespace_ends(
    harness: ControllerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    harness.create(namespace("team"))
    await harness.advance()
    with caplog.at_level(logging.WARNING):
        for kind in (build_deployment, build_stateful_set, build_service):
            harness.create(into(kind("busy"), "team"))
        harness.delete(NAMESPACE, "team", namespace="")
        await harness.advance(120)

    assert caplog.messages == []
    assert harness.api.find(NAMESPACE, ObjectKey("", "team")) is None

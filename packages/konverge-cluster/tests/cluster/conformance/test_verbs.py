"""Create, get, update, patch and delete, and their rejections."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from konverge.errors import (
    AlreadyExistsError,
    ApiError,
    ConflictError,
    InvalidError,
    KindNotServedError,
    NotFoundError,
)
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    SECRET,
    SERVICE,
    config_map,
    deployment,
    new,
    pod_spec,
    service,
)
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio


# Create


async def test_created_object_has_an_identity_and_reads_back_the_same(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, colour="blue"))

    assert created["metadata"]["uid"]
    assert int(created["metadata"]["resourceVersion"]) > 0
    age = cluster.clock.now() - datetime.fromisoformat(created["metadata"]["creationTimestamp"]).astimezone(UTC)
    assert abs(age.total_seconds()) < 60
    assert created["data"] == {"colour": "blue"}
    assert await cluster.client.get(CONFIG_MAP, ObjectKey.of(created)) == created


async def test_create_says_which_name_is_taken(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster.namespace, "settings"))

    with pytest.raises(AlreadyExistsError) as refused:
        await cluster.client.create(config_map(cluster.namespace, "settings"))

    assert refused.value.message == 'configmaps "settings" already exists'
    assert refused.value.details == {"name": "settings", "kind": "configmaps"}


async def test_generated_names_begin_as_asked_and_differ(cluster: Cluster) -> None:
    template = new(CONFIG_MAP, cluster.namespace, "", metadata={"generateName": "run-"})

    names = {(await cluster.client.create(template))["metadata"]["name"] for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("run-") and len(name) == len("run-") + 5 for name in names)


async def test_create_in_an_absent_namespace_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError, match='namespaces "nowhere" not found'):
        await cluster.client.create(config_map("nowhere"))


async def test_an_impossible_name_is_refused_with_its_field(cluster: Cluster) -> None:
    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(config_map(cluster.namespace, "Not_A_Name"))

    assert [(cause.field, cause.reason) for cause in refused.value.causes] == [("metadata.name", "FieldValueInvalid")]


async def test_every_mistake_of_an_object_is_named_at_once(cluster: Cluster) -> None:
    broken = deployment(cluster.namespace, replicas=-1, selector={"matchLabels": {"app": "other"}})

    with pytest.raises(InvalidError) as refused:
        await cluster.client.create(broken)

    assert {cause.field for cause in refused.value.causes} == {"spec.replicas", "spec.template.metadata.labels"}


async def test_fields_that_the_kind_does_not_have_are_dropped(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace) | {"surprise": 1})

    assert "surprise" not in created


async def test_a_kind_that_nobody_serves_is_told_from_an_absent_object(cluster: Cluster) -> None:
    gvk = GroupVersionKind("unserved.example", "v1", "Nothing")

    with pytest.raises(KindNotServedError):
        await cluster.client.create(new(gvk, cluster.namespace, "one"))


async def test_string_data_of_a_secret_is_stored_as_data(cluster: Cluster) -> None:
    created = await cluster.client.create(new(SECRET, cluster.namespace, "login", stringData={"user": "ann"}))

    assert created["data"] == {"user": "YW5u"}
    assert "stringData" not in created
    assert created["type"] == "Opaque"


async def test_quantities_are_stored_in_their_canonical_form(cluster: Cluster) -> None:
    wanted = deployment(cluster.namespace, replicas=0)
    requests = {"cpu": "1000m", "memory": "1024Mi"}
    wanted["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": requests}

    created = await cluster.client.create(wanted)

    stored = created["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
    assert stored == {"cpu": "1", "memory": "1Gi"}


async def test_defaults_of_the_kind_are_filled_in(cluster: Cluster) -> None:
    created = await cluster.client.create(deployment(cluster.namespace, replicas=0))

    assert created["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
    }
    assert created["spec"]["revisionHistoryLimit"] == 10
    assert created["spec"]["progressDeadlineSeconds"] == 600
    container = created["spec"]["template"]["spec"]["containers"][0]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"


async def test_yaml_of_dates_and_signs_is_text(cluster: Cluster) -> None:
    path = f"/api/v1/namespaces/{cluster.namespace}/configmaps"
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\ndata: {date: 2026-01-31, sign: =}\n"

    answer = await cluster.new_transport().request(
        "POST", path, headers={"content-type": "application/yaml"}, body=body, timeout_seconds=30
    )

    assert json.loads(answer.body)["data"] == {"date": "2026-01-31", "sign": "="}


async def test_a_service_gets_an_address_of_its_own(cluster: Cluster) -> None:
    first = await cluster.client.create(service(cluster.namespace, "first"))
    second = await cluster.client.create(service(cluster.namespace, "second"))

    assert first["spec"]["clusterIP"] != second["spec"]["clusterIP"]
    assert first["spec"]["clusterIPs"] == [first["spec"]["clusterIP"]]
    assert first["spec"]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert first["spec"]["type"] == "ClusterIP"


# Get


async def test_get_of_an_absent_object_says_which(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError) as refused:
        await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "absent"))

    assert refused.value.message == 'configmaps "absent" not found'
    assert refused.value.details == {"name": "absent", "kind": "configmaps"}


async def test_absent_objects_of_a_group_are_named_with_it(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError) as refused:
        await cluster.client.get(DEPLOYMENT, ObjectKey(cluster.namespace, "absent"))

    assert refused.value.message == 'deployments.apps "absent" not found'
    assert refused.value.details == {"name": "absent", "group": "apps", "kind": "deployments"}


# Update


async def test_update_replaces_what_the_object_had(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1", b="2"))

    updated = await cluster.client.update({**created, "data": {"b": "3"}})

    assert updated["data"] == {"b": "3"}
    assert int(updated["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])
    assert updated["metadata"]["uid"] == created["metadata"]["uid"]


async def test_update_of_an_object_that_has_changed_conflicts(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1"))
    await cluster.client.update({**created, "data": {"a": "2"}})

    with pytest.raises(ConflictError, match="the object has been modified"):
        await cluster.client.update({**created, "data": {"a": "3"}})


async def test_update_without_a_resource_version_is_unconditional(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster.namespace, a="1"))

    updated = await cluster.client.update(config_map(cluster.namespace, a="2"))

    assert updated["data"] == {"a": "2"}


async def test_update_that_changes_nothing_is_not_stored(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1"))

    updated = await cluster.client.update(created)

    assert updated["metadata"]["resourceVersion"] == created["metadata"]["resourceVersion"]


async def test_update_of_an_absent_object_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError):
        await cluster.client.update(config_map(cluster.namespace, "absent"))


async def test_update_of_an_object_that_was_created_anew_conflicts(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))
    await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created))
    await cluster.client.create(config_map(cluster.namespace))

    with pytest.raises(ConflictError):
        await cluster.client.update(created)


async def test_identity_cannot_be_updated(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))
    forged = {**created, "metadata": {**created["metadata"], "creationTimestamp": "2001-01-01T00:00:00Z"}}

    updated = await cluster.client.update(forged)

    assert updated["metadata"]["creationTimestamp"] == created["metadata"]["creationTimestamp"]


async def test_selector_of_a_deployment_is_immutable(cluster: Cluster) -> None:
    await cluster.client.create(deployment(cluster.namespace, replicas=0))
    labels = {"app": "renamed"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec()}
    changed = deployment(cluster.namespace, selector={"matchLabels": labels}, template=template)

    with pytest.raises(InvalidError) as refused:
        await cluster.client.update(changed)

    assert [(cause.field, cause.reason) for cause in refused.value.causes] == [("spec.selector", "FieldValueInvalid")]
    assert "field is immutable" in refused.value.message


async def test_address_of_a_service_survives_an_update_that_does_not_name_it(cluster: Cluster) -> None:
    created = await cluster.client.create(service(cluster.namespace))

    updated = await cluster.client.update(service(cluster.namespace, ports=[{"port": 81}]))

    assert updated["spec"]["clusterIP"] == created["spec"]["clusterIP"]
    assert updated["spec"]["ports"][0]["port"] == 81


# Patch


async def test_merge_patch_sets_and_removes(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1", b="2"))

    patched = await cluster.client.patch(
        CONFIG_MAP, ObjectKey.of(created), {"data": {"a": None, "c": "3"}}, patch_type="merge"
    )

    assert patched["data"] == {"b": "2", "c": "3"}


async def test_merge_patch_replaces_a_list_as_a_whole(cluster: Cluster) -> None:
    created = await cluster.client.create(service(cluster.namespace, ports=[{"name": "a", "port": 80}]))

    patched = await cluster.client.patch(
        SERVICE, ObjectKey.of(created), {"spec": {"ports": [{"name": "b", "port": 81}]}}, patch_type="merge"
    )

    assert [port["name"] for port in patched["spec"]["ports"]] == ["b"]


async def test_strategic_patch_merges_a_list_by_its_key(cluster: Cluster) -> None:
    created = await cluster.client.create(deployment(cluster.namespace, replicas=0))
    sidecar = {"name": "proxy", "image": "konverge.test/proxy:1"}
    change = {"spec": {"template": {"spec": {"containers": [sidecar]}}}}

    patched = await cluster.client.patch(DEPLOYMENT, ObjectKey.of(created), change, patch_type="strategic")

    containers = patched["spec"]["template"]["spec"]["containers"]
    assert {container["name"]: container["image"] for container in containers} == {
        "app": "konverge.test/app:1",
        "proxy": "konverge.test/proxy:1",
    }


async def test_strategic_patch_deletes_a_list_item_by_directive(cluster: Cluster) -> None:
    created = await cluster.client.create(
        service(cluster.namespace, ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}])
    )
    change = {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}

    patched = await cluster.client.patch(SERVICE, ObjectKey.of(created), change, patch_type="strategic")

    assert [port["name"] for port in patched["spec"]["ports"]] == ["b"]


async def test_strategic_patch_is_not_for_custom_resources(widgets: Widgets, cluster: Cluster) -> None:
    created = await cluster.client.create(widgets.new())

    with pytest.raises(ApiError) as refused:
        await cluster.client.patch(widgets.gvk, ObjectKey.of(created), {"spec": {"size": 2}}, patch_type="strategic")

    assert refused.value.code == 415


async def test_json_patch_changes_what_its_paths_name(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1", b="2"))
    operations: list[Object] = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "remove", "path": "/data/b"},
        {"op": "add", "path": "/metadata/labels", "value": {}},
        {"op": "add", "path": "/metadata/labels/konverge.test~1part", "value": "yes"},
    ]

    patched = await cluster.client.patch(CONFIG_MAP, ObjectKey.of(created), operations, patch_type="json")

    assert patched["data"] == {"a": "9"}
    assert patched["metadata"]["labels"] == {"konverge.test/part": "yes"}


async def test_json_patch_whose_test_fails_changes_nothing(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1"))
    operations = [
        {"op": "test", "path": "/data/a", "value": "other"},
        {"op": "remove", "path": "/data/a"},
    ]

    with pytest.raises(InvalidError):
        await cluster.client.patch(CONFIG_MAP, ObjectKey.of(created), operations, patch_type="json")

    assert (await cluster.client.get(CONFIG_MAP, ObjectKey.of(created)))["data"] == {"a": "1"}


async def test_patch_with_an_old_resource_version_conflicts(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, a="1"))
    await cluster.client.update({**created, "data": {"a": "2"}})
    change = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"a": "3"}}

    with pytest.raises(ConflictError):
        await cluster.client.patch(CONFIG_MAP, ObjectKey.of(created), change, patch_type="merge")


async def test_patch_of_an_absent_object_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError):
        await cluster.client.patch(
            CONFIG_MAP, ObjectKey(cluster.namespace, "absent"), {"data": {"a": "1"}}, patch_type="merge"
        )


async def test_patch_that_makes_an_object_invalid_is_refused(cluster: Cluster) -> None:
    created = await cluster.client.create(deployment(cluster.namespace, replicas=0))

    with pytest.raises(InvalidError) as refused:
        await cluster.client.patch(DEPLOYMENT, ObjectKey.of(created), {"spec": {"replicas": -1}}, patch_type="merge")

    assert [cause.field for cause in refused.value.causes] == ["spec.replicas"]


# Delete


async def test_deleted_object_is_gone(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))

    held = await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created))

    assert held is None
    with pytest.raises(NotFoundError):
        await cluster.client.get(CONFIG_MAP, ObjectKey.of(created))


async def test_delete_of_an_absent_object_is_not_found(cluster: Cluster) -> None:
    with pytest.raises(NotFoundError):
        await cluster.client.delete(CONFIG_MAP, ObjectKey(cluster.namespace, "absent"))


async def test_delete_of_another_uid_conflicts_and_deletes_nothing(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace))

    with pytest.raises(ConflictError, match="the UID in the precondition"):
        await cluster.client.delete(CONFIG_MAP, ObjectKey.of(created), uid="00000000-0000-4000-8000-000000000000")

    assert await cluster.client.get(CONFIG_MAP, ObjectKey.of(created)) == created

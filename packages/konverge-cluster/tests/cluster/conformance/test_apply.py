"""Server-side apply: field ownership and its consequences."""

from __future__ import annotations

from typing import Any

import pytest

from konverge.errors import ConflictError, InvalidError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.objects import CONFIG_MAP, DEPLOYMENT, config_map, deployment, new, pod_spec
from tests.cluster.conformance.widgets import Widgets

pytestmark = pytest.mark.anyio


def managers(obj: Object) -> list[tuple[str, str, str]]:
    """Return (manager, operation, subresource) of each entry, sorted."""
    entries = obj["metadata"]["managedFields"]
    return sorted((entry["manager"], entry["operation"], entry.get("subresource", "")) for entry in entries)


def fields_of(obj: Object, manager: str) -> Any:
    """Return the set of fields of a manager."""
    (fields,) = [entry["fieldsV1"] for entry in obj["metadata"]["managedFields"] if entry["manager"] == manager]
    return fields


async def test_apply_creates_what_is_absent_and_records_the_manager(cluster: Cluster) -> None:
    applied = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    assert applied.created
    assert managers(applied.object) == [("ann", "Apply", "")]
    assert fields_of(applied.object, "ann") == {"f:data": {"f:a": {}}}


async def test_apply_of_the_same_again_stores_nothing(cluster: Cluster) -> None:
    first = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    second = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    assert not second.created
    assert second.object == first.object


async def test_apply_of_a_rich_object_again_stores_nothing(cluster: Cluster) -> None:
    wanted = deployment(cluster.namespace, replicas=0)
    first = await cluster.client.apply(wanted, field_manager="ann")

    second = await cluster.client.apply(wanted, field_manager="ann")

    generations = [applied.object["metadata"]["generation"] for applied in (first, second)]
    assert generations == [1, 1]
    assert second.object["metadata"]["managedFields"][0] == first.object["metadata"]["managedFields"][0]


async def test_apply_changes_a_field(cluster: Cluster) -> None:
    first = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    second = await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann")

    assert second.object["data"] == {"a": "2"}
    assert int(second.object["metadata"]["resourceVersion"]) > int(first.object["metadata"]["resourceVersion"])


async def test_an_apply_that_names_a_version_is_refused_for_another_one(cluster: Cluster) -> None:
    first = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")
    await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann")
    late = config_map(cluster.namespace, a="3")
    late["metadata"]["resourceVersion"] = first.object["metadata"]["resourceVersion"]

    with pytest.raises(ConflictError, match="has been modified"):
        await cluster.client.apply(late, field_manager="ann")


async def test_an_apply_that_names_a_version_creates_an_absent_object_unless_it_names_a_uid_too(
    cluster: Cluster,
) -> None:
    absent = config_map(cluster.namespace, a="1")
    absent["metadata"] |= {"resourceVersion": "5", "uid": "00000000-0000-0000-0000-000000000000"}
    with pytest.raises(ConflictError):
        await cluster.client.apply(absent, field_manager="ann")
    del absent["metadata"]["uid"]

    assert (await cluster.client.apply(absent, field_manager="ann")).created


async def test_a_field_that_is_no_longer_applied_is_removed(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1", b="2"), field_manager="ann")

    applied = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    assert applied.object["data"] == {"a": "1"}


async def test_fields_of_others_stay(cluster: Cluster) -> None:
    created = await cluster.client.create(config_map(cluster.namespace, theirs="1"), field_manager="bob")

    applied = await cluster.client.apply(config_map(cluster.namespace, ours="2"), field_manager="ann")

    assert applied.object["data"] == {"theirs": "1", "ours": "2"}
    assert applied.object["metadata"]["uid"] == created["metadata"]["uid"]
    assert managers(applied.object) == [("ann", "Apply", ""), ("bob", "Update", "")]


async def test_without_force_another_manager_s_value_is_a_conflict_that_names_both(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="bob")

    with pytest.raises(ConflictError) as refused:
        await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann", force=False)

    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "bob": .data.a'
    assert [(cause.reason, cause.message, cause.field) for cause in refused.value.causes] == [
        ("FieldManagerConflict", 'conflict with "bob"', ".data.a")
    ]


async def test_every_conflict_is_named(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1", b="1"), field_manager="bob")
    await cluster.client.apply(config_map(cluster.namespace, c="1"), field_manager="cid")

    with pytest.raises(ConflictError) as refused:
        await cluster.client.apply(config_map(cluster.namespace, a="2", b="2", c="2"), field_manager="ann", force=False)

    assert sorted((cause.message, cause.field) for cause in refused.value.causes) == [
        ('conflict with "bob"', ".data.a"),
        ('conflict with "bob"', ".data.b"),
        ('conflict with "cid"', ".data.c"),
    ]


async def test_force_takes_the_field_over(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1", b="1"), field_manager="bob")

    applied = await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann", force=True)

    assert applied.object["data"] == {"a": "2", "b": "1"}
    assert fields_of(applied.object, "ann") == {"f:data": {"f:a": {}}}
    assert "f:a" not in fields_of(applied.object, "bob")["f:data"]


async def test_the_same_value_is_shared_and_stays_until_both_let_go(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="bob")
    shared = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann", force=False)

    left = await cluster.client.apply(config_map(cluster.namespace), field_manager="ann")
    gone = await cluster.client.apply(config_map(cluster.namespace), field_manager="bob")

    assert managers(shared.object) == [("ann", "Apply", ""), ("bob", "Apply", "")]
    assert left.object["data"] == {"a": "1"}
    assert "data" not in gone.object


async def test_an_update_takes_the_field_from_the_applier(cluster: Cluster) -> None:
    await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")
    live = await cluster.client.get(CONFIG_MAP, ObjectKey(cluster.namespace, "settings"))
    updated = await cluster.client.update({**live, "data": {"a": "2"}}, field_manager="kubectl-edit")

    with pytest.raises(ConflictError, match='conflict with "kubectl-edit" using v1: .data.a'):
        await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann", force=False)

    assert managers(updated) == [("kubectl-edit", "Update", "")]


async def test_two_managers_have_containers_of_their_own_in_one_list(cluster: Cluster) -> None:
    await cluster.client.apply(deployment(cluster.namespace, replicas=0), field_manager="ann")
    sidecar = new(
        DEPLOYMENT,
        cluster.namespace,
        "web",
        spec={"template": {"spec": {"containers": [{"name": "proxy", "image": "konverge.test/proxy:1"}]}}},
    )

    applied = await cluster.client.apply(sidecar, field_manager="bob", force=False)
    without = await cluster.client.apply(new(DEPLOYMENT, cluster.namespace, "web"), field_manager="bob")

    names = [
        [container["name"] for container in answer.object["spec"]["template"]["spec"]["containers"]]
        for answer in (applied, without)
    ]
    assert names == [["app", "proxy"], ["app"]]


async def test_items_of_a_keyed_list_are_recorded_by_their_keys(cluster: Cluster) -> None:
    wanted = deployment(cluster.namespace, replicas=0)
    wanted["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]

    applied = await cluster.client.apply(wanted, field_manager="ann")

    containers = fields_of(applied.object, "ann")["f:spec"]["f:template"]["f:spec"]["f:containers"]
    assert containers == {
        'k:{"name":"app"}': {
            ".": {},
            "f:name": {},
            "f:image": {},
            "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
        }
    }


async def test_applied_labels_leave_those_of_others_alone(cluster: Cluster) -> None:
    await cluster.client.create(config_map(cluster.namespace, labels={"theirs": "yes"}))

    applied = await cluster.client.apply(config_map(cluster.namespace, labels={"ours": "yes"}), field_manager="ann")

    assert applied.object["metadata"]["labels"] == {"theirs": "yes", "ours": "yes"}


async def test_status_is_applied_apart_from_the_rest(widgets: Widgets, cluster: Cluster) -> None:
    await cluster.client.apply(widgets.new(size=1), field_manager="ann")
    status = widgets.new(size=9) | {"status": {"phase": "Ready"}}

    applied = await cluster.client.apply(status, field_manager="ann", subresource="status")

    assert applied.object["status"] == {"phase": "Ready"}
    assert applied.object["spec"]["size"] == 1
    assert managers(applied.object) == [("ann", "Apply", ""), ("ann", "Apply", "status")]


async def test_custom_resources_are_merged_by_their_schema(widgets: Widgets, cluster: Cluster) -> None:
    first = widgets.new(parts=[{"name": "wheel", "weight": 5}], tags=["a"], order=["x"])
    await cluster.client.apply(first, field_manager="ann")
    second = widgets.new(parts=[{"name": "door"}], tags=["b"], order=["y"])

    applied = await cluster.client.apply(second, field_manager="bob", force=True)

    spec = applied.object["spec"]
    assert spec["parts"] == [{"name": "wheel", "weight": 5}, {"name": "door", "weight": 1}]
    assert spec["tags"] == ["a", "b"]
    assert spec["order"] == ["y"]


async def test_dry_run_answers_what_would_be_and_stores_nothing(cluster: Cluster) -> None:
    applied = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")

    dry = await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann", dry_run=True)

    assert dry.object["data"] == {"a": "2"}
    assert await cluster.client.get(CONFIG_MAP, ObjectKey.of(applied.object)) == applied.object


async def test_dry_run_of_something_new_does_not_create_it(cluster: Cluster) -> None:
    dry = await cluster.client.apply(config_map(cluster.namespace, "draft"), field_manager="ann", dry_run=True)

    found = await cluster.client.list(CONFIG_MAP, namespace=cluster.namespace, field_selector="metadata.name=draft")
    assert dry.created
    assert found.items == []


async def test_apply_guarded_by_an_old_resource_version_conflicts(cluster: Cluster) -> None:
    first = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")
    await cluster.client.apply(config_map(cluster.namespace, a="2"), field_manager="ann")
    guarded = config_map(cluster.namespace, a="3")
    guarded["metadata"]["resourceVersion"] = first.object["metadata"]["resourceVersion"]

    with pytest.raises(ConflictError, match="the object has been modified"):
        await cluster.client.apply(guarded, field_manager="ann")


async def test_apply_for_another_uid_does_not_touch_the_object(cluster: Cluster) -> None:
    first = await cluster.client.apply(config_map(cluster.namespace, a="1"), field_manager="ann")
    guarded = config_map(cluster.namespace, a="2")
    guarded["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000"

    with pytest.raises(InvalidError, match="metadata.uid: Invalid value: .*: field is immutable"):
        await cluster.client.apply(guarded, field_manager="ann")

    assert await cluster.client.get(CONFIG_MAP, ObjectKey.of(first.object)) == first.object


async def test_an_atomic_value_is_managed_as_one(cluster: Cluster) -> None:
    wanted = deployment(cluster.namespace, replicas=0)

    applied = await cluster.client.apply(wanted, field_manager="ann")

    assert fields_of(applied.object, "ann")["f:spec"]["f:selector"] == {}
    assert pod_spec()["containers"][0]["name"] == "app"

"""Foreign objects without an owner reference, for which the server accepts a second owner: they are not changed."""

from __future__ import annotations

import pytest

from konverge._internal.primitives.value_generation import GENERATED_AT
from konverge.errors import BadRequestError
from konverge.kube import Object, ObjectKey
from konverge_box._internal.steps.labels import OWNER_UID
from konverge_cluster.testing import Cluster
from tests.box.steps.sample_plans import (
    UID,
    ObjectListReader,
    build_applied_object,
    build_plan,
    describe_plan,
    list_entries,
)
from tests.box.steps.site_harness import SECRET, SiteHarness

ROTATED = "onCreate: {secrets: [{rotateAfter: 1h, stringData: {password: '{{ randomHex(16) }}'}}]}"
COPIES = """
onReconcile:
  secrets:
    - name: "{{ spec.secret }}"
      namespace: "{{ namespace }}"
      forEach: {field: spec.namespaces, as: namespace}
      fromSecret: {name: "{{ spec.secret }}", namespace: "{{ metadata.namespace }}"}
"""


def secret(name: str, namespace: str, value: str, **labels: str) -> Object:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": value}}


@pytest.mark.parametrize("labels", [{}, {OWNER_UID: "another's"}])
def test_an_object_of_somebody_else_in_another_namespace_is_a_problem_and_no_child(labels: dict[str, str]) -> None:
    spec = {"secret": "db", "namespaces": ["there", "free"]}
    plan = build_plan(COPIES, spec, secret("db", "here", "mine"), secret("db", "there", "theirs", **labels))

    there, free = list_entries(plan)
    assert there.object is None
    assert "Secret there/db exists already, does not belong to this object" in there.problem
    assert f"{OWNER_UID}: {UID}" in there.problem
    assert free.object is not None
    assert [child.is_desired for child in plan.children] == [False, True]


def test_one_that_has_our_label_is_kept_as_declared_without_asking_the_server() -> None:
    reader = ObjectListReader(secret("db", "here", "mine"), secret("db", "there", "old", **{OWNER_UID: UID}))
    plan = build_plan(COPIES, {"secret": "db", "namespaces": ["there"]}, reader=reader)

    assert (describe_plan(plan), [entry.problem for entry in list_entries(plan)]) == (
        {"Secret there/db": "apply"},
        [""],
    )
    assert [asked for asked in reader.asked if asked.startswith("live")] == []


def test_an_object_without_a_namespace_has_one_owner() -> None:
    taken = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "site"}}

    (entry,) = list_entries(build_plan("onReconcile: {namespaces: [{}]}", None, taken))
    assert "Namespace site exists already" in entry.problem


def test_what_the_server_refuses_for_us_is_not_asked_for_beforehand() -> None:
    reader = ObjectListReader()
    build_plan("onReconcile: {configMaps: [{data: {a: b}}]}", reader=reader)

    assert reader.asked == []


def test_a_name_that_is_none_is_a_problem_of_its_own() -> None:
    class Strict(ObjectListReader):
        async def get(self, *args: object, **named: object) -> Object:
            raise BadRequestError("it may not contain '/'")

    (entry,) = list_entries(
        build_plan("onReconcile: {configMaps: [{name: \"{{ 'a/b' }}\", namespace: there}]}", reader=Strict())
    )
    assert "it may not contain '/'" in entry.problem


@pytest.mark.parametrize("moment", ["9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "soon", ""])
def test_whatever_time_somebody_writes_on_a_secret_the_pass_goes_on(moment: str) -> None:
    made = build_applied_object(build_plan(ROTATED))
    made["metadata"]["annotations"][GENERATED_AT] = moment

    assert describe_plan(build_plan(ROTATED, None, made)).keys() == {"Secret here/site"}


@pytest.mark.anyio
async def test_a_secret_of_another_namespace_is_neither_overwritten_nor_deleted(cluster: Cluster) -> None:
    site = SiteHarness(cluster)
    other = f"{cluster.namespace}-theirs"
    await cluster.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    theirs = await cluster.client.create(secret("db", other, "theirs"))
    await cluster.client.create(secret("db", cluster.namespace, "mine"))
    await site.open(COPIES, secret="db", namespaces=[other])

    await site.reconcile()

    condition = await site.condition()
    assert (condition.status, condition.reason) == ("False", "Error")
    assert f"Secret {other}/db exists already" in condition.message
    assert await cluster.client.get(SECRET, ObjectKey(other, "db")) == theirs
    assert await site.groups.find_leftovers(await site.owner(), site.reader) == []

    await cluster.client.delete(SECRET, ObjectKey(other, "db"))
    await site.reconcile()
    copy = await site.find(SECRET, "db", other)
    assert copy is not None
    assert copy["data"] == {"password": "bWluZQ=="}

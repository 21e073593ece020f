"""The way of docs/upgrades.md to a new version of a kind: what the check says before each step, and the server then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from konverge import Component, ComponentBuilder, Operator
from konverge._internal.upgrade import CheckLimits, StorageMigration, UpgradeCheck, UpgradeReport
from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import InvalidError
from konverge.kube import GroupVersionKind, ObjectKey
from konverge.primitives import ConfigMap
from konverge_cluster.testing import Cluster

pytestmark = pytest.mark.anyio


@dataclass
class PlanSpec:
    size: int = 1


def settings(plan: Any) -> Component:
    metadata = {"name": plan.metadata.name, "namespace": plan.metadata.namespace}
    config = ConfigMap({"metadata": metadata, "data": {"size": str(plan.spec.size)}})
    return ComponentBuilder("settings", condition_type="SettingsReady").with_resource(config).build()


def declare(group: str, version: str, *others: Any, served: bool = True) -> Any:
    """Return a class of one version, which is stored, with classes of other versions."""

    @custom_resource(group=group, version=version, kind="Plan", also_serves=others, served=served)
    @dataclass
    class Plan:
        metadata: Metadata
        spec: PlanSpec

    return Plan


def build_operator(cls: Any) -> Operator:
    operator = Operator("plans")
    operator.manages(cls, settings)
    return operator


def list_levels(report: UpgradeReport) -> list[tuple[str, str]]:
    [definition] = report.definitions
    return [(finding.level, finding.path) for finding in definition.findings]


async def test_a_version_is_added_stored_migrated_and_removed(cluster: Cluster) -> None:
    group = f"{cluster.namespace}.way.konverge.test"
    first = declare(group, "v1beta1")
    added = declare(group, "v1beta1", declare(group, "v1"))
    stored = declare(group, "v1", declare(group, "v1beta1"))
    unserved = declare(group, "v1", declare(group, "v1beta1", served=False))
    last = declare(group, "v1")
    name = find_definition(last).name

    async def check(cls: Any) -> UpgradeReport:
        account = ObjectKey(cluster.namespace, "plans")
        limits = CheckLimits(max_objects=10, max_owners=10, seconds=60)
        checked = UpgradeCheck(cluster.client, build_operator(cls), account, limits, cluster.clock, cluster.namespace)
        report = await checked.run()
        assert checked.failures == []
        return report

    async def step(cls: Any) -> list[tuple[str, str]]:
        report = await check(cls)
        assert report.definitions[0].checked_objects == report.owners.checked == 1
        await cluster.install(crd_manifest(cls))
        return list_levels(report)

    await cluster.install(crd_manifest(first))
    metadata = {"name": "a", "namespace": cluster.namespace}
    await cluster.client.create(
        {"apiVersion": f"{group}/v1beta1", "kind": "Plan", "metadata": metadata, "spec": {"size": 2}}
    )

    assert list_levels(await check(stored)) == [("note", "v1"), ("note", "v1")], "both steps at once"
    assert await step(added) == [("note", "v1")]
    assert await step(stored) == [("note", "v1")]
    assert ("refused", "v1beta1") in list_levels(await check(last))
    with pytest.raises(InvalidError, match="storedVersions"):
        await cluster.install(crd_manifest(last))

    report = await StorageMigration(cluster.client, name, cluster.clock, rate=1000).run()

    assert (report.rewritten, report.stored_versions) == (1, ("v1",))
    assert list_levels(await check(last)) == [("breaking", "v1beta1")], "clients may still use it"
    assert await step(unserved) == [("breaking", "v1beta1")]
    assert await step(last) == [("note", "v1beta1")]
    plan = await cluster.client.get(GroupVersionKind(group, "v1", "Plan"), ObjectKey(cluster.namespace, "a"))
    assert plan["spec"] == {"size": 2}

"""`UpgradeCheck` against a cluster that an older version has written; the server then confirms each prediction."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from konverge import Operator
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge._internal.upgrade import CheckLimits, UpgradeCheck, UpgradeReport
from konverge.crd import Metadata, crd_manifest, custom_resource, find_definition
from konverge.errors import ForbiddenError, InvalidError
from konverge.kube import Object, ObjectKey
from konverge_cluster.testing import Cluster
from tests.upgrade.upgraded_operator import NewApp, NewSpec, OldApp, OldSpec, TitledSpec, new, new_settings, old, title

pytestmark = pytest.mark.anyio

APP = find_definition(OldApp).gvk
OBJECTS: dict[str, dict[str, Any]] = {
    "big": {"replicas": 8},
    "fine": {},
    "huge": {"size": "huge"},
    "noted": {"note": "keep me"},
}


@dataclass
class UpgradeHarness:
    """A cluster that the old version has written."""

    cluster: Cluster

    def key(self, name: str) -> ObjectKey:
        return ObjectKey(self.cluster.namespace, name)

    async def create(self, name: str, spec: dict[str, Any]) -> None:
        metadata = {"name": name, "namespace": self.cluster.namespace}
        await self.cluster.client.create(
            {"apiVersion": APP.api_version, "kind": APP.kind, "metadata": metadata, "spec": spec}
        )

    async def check(
        self, operator: Operator = new, *, max_objects: int = 100, max_owners: int = 100, client: Any = None
    ) -> tuple[UpgradeReport, list[BaseException]]:
        check = UpgradeCheck(
            client or self.cluster.client,
            operator,
            ObjectKey(self.cluster.namespace, "apps"),
            CheckLimits(max_objects, max_owners, seconds=60),
            self.cluster.clock,
            self.cluster.namespace,
        )
        return await check.run(), check.failures

    async def label(self, name: str, **spec: Any) -> Object:
        patch = {"metadata": {"labels": {"touched": "yes"}}, **({"spec": spec} if spec else {})}
        return await self.cluster.client.patch(APP, self.key(name), patch, patch_type="merge")


@pytest.fixture
async def upgrade(cluster: Cluster) -> UpgradeHarness:
    harness = UpgradeHarness(cluster)
    await cluster.install(crd_manifest(OldApp))
    for name, spec in OBJECTS.items():
        await harness.create(name, spec)
    account = ObjectKey(cluster.namespace, "apps")
    for manifest in build_role_manifests(derive_permissions(old.registered.declaration), account, [cluster.namespace]):
        await cluster.client.apply(manifest, field_manager="test")
    async with cluster.run_operator(old):
        for name in OBJECTS:
            await cluster.wait_for_condition(APP, name, type="Ready", status="True")
    return harness


async def test_each_prediction_is_what_the_server_does(upgrade: UpgradeHarness) -> None:
    before = await upgrade.cluster.list_versions()

    report, failures = await upgrade.check()

    assert failures == []
    assert report.not_checked == ()
    assert report.breaks
    assert await upgrade.cluster.list_versions() == before, "it writes nothing"
    [definition] = report.definitions
    changes = {(finding.level, finding.path, finding.change) for finding in definition.findings}
    assert changes == {
        ("breaking", "v1", "rule added: self.spec.size != 'huge'"),
        ("breaking", "v1 .spec.note", "removed"),
        ("breaking", "v1 .spec.replicas", "maximum changed from 10 to 5"),
        ("note", "v1 .spec.theme", "added"),
    }
    assert definition.checked_objects == 4
    named = {entry.name.partition("/")[2]: entry for entry in definition.objects}
    assert {name: entry.outcome for name, entry in named.items()} == {
        "big": "survives",
        "huge": "refused",
        "noted": "loses fields",
    }
    assert named["noted"].dropped == ("spec.note",)
    assert "less than or equal to 5" in named["big"].errors[0]

    await upgrade.cluster.install(crd_manifest(NewApp))
    await upgrade.cluster.eventually(lambda: _is_followed(upgrade), describe="the new schema is in force")
    await upgrade.label("big")
    with pytest.raises(InvalidError):
        await upgrade.label("big", replicas=9)
    with pytest.raises(InvalidError, match="no huge ones"):
        await upgrade.label("huge")
    assert "note" not in (await upgrade.label("noted"))["spec"]
    await upgrade.label("fine")


async def _is_followed(upgrade: UpgradeHarness) -> bool:
    try:
        await upgrade.cluster.client.patch(
            APP, upgrade.key("fine"), {"spec": {"replicas": 9}}, patch_type="merge", dry_run=True
        )
    except InvalidError:
        return True
    return False


async def test_the_writes_of_the_next_reconciles_are_listed_by_owner(upgrade: UpgradeHarness) -> None:
    report, _ = await upgrade.check()

    owners = {owner.name.partition("/")[2]: owner for owner in report.owners.owners}
    assert report.owners.checked == len(owners) == 4
    assert report.owners.writes == {"create": 3, "update": 3}
    assert "replicas" in owners["big"].unreadable
    assert {owner.unreadable for name, owner in owners.items() if name != "big"} == {""}
    namespace = upgrade.cluster.namespace
    assert owners["fine"].writes == (f"update v1/ConfigMap/{namespace}/fine", f"create v1/Secret/{namespace}/fine")
    [immutable] = owners["fine"].immutable
    assert "selector" in immutable
    assert "immutable" in immutable
    assert "swordfish" not in repr(report)


async def test_missing_and_unneeded_rules_of_the_account_are_listed(upgrade: UpgradeHarness) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}
    metadata = {"name": "apps", "namespace": upgrade.cluster.namespace}
    rules = [{"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list"]}]
    needed = derive_permissions(old.registered.declaration).rules
    rules += [rule.to_manifest() for rule in needed]
    await upgrade.cluster.client.apply({**role, "metadata": metadata, "rules": rules}, field_manager="test")

    report, _ = await upgrade.check()

    assert report.permissions is not None
    assert f"Role {upgrade.cluster.namespace}/apps" in report.permissions.roles
    [missing] = report.permissions.missing
    assert missing.startswith(f"missing permission: add to Role apps in namespace {upgrade.cluster.namespace}: ")
    assert "resources: [secrets], verbs: [create, get, list, patch, watch]" in missing
    assert report.permissions.unneeded == (
        f"Role apps in namespace {upgrade.cluster.namespace}: get, list of services",
    )


async def test_the_same_version_breaks_nothing(upgrade: UpgradeHarness) -> None:
    report, failures = await upgrade.check(old)

    assert failures == []
    assert not report.breaks
    [definition] = report.definitions
    assert definition.findings == ()
    assert definition.objects == ()
    assert report.owners.owners == ()
    assert report.permissions is not None
    assert report.permissions.missing == report.permissions.unneeded == ()


async def test_a_cut_check_says_so(upgrade: UpgradeHarness) -> None:
    report, _ = await upgrade.check(max_objects=2, max_owners=3)

    [definition] = report.definitions
    assert (definition.checked_objects, definition.is_cut) == (2, True)
    assert (report.owners.checked, report.owners.is_cut) == (3, True)


async def test_a_part_that_may_not_be_read_is_named_and_the_rest_goes_on(upgrade: UpgradeHarness) -> None:
    client = upgrade.cluster.client

    class Restricted:
        """A user who may not list apps: the embedded cluster of this fixture has no roles."""

        def __getattr__(self, name: str) -> Any:
            return getattr(client, name)

        async def items(self, gvk: Any, **options: Any) -> AsyncIterator[Object]:
            if gvk == APP:
                raise ForbiddenError("apps is forbidden")
            async for obj in client.items(gvk, **options):
                yield obj

    report, failures = await upgrade.check(client=Restricted())

    assert len(failures) == 2
    assert report.not_checked == (
        "objects of apps.upgrade.konverge.test: apps is forbidden",
        "owners of the kind App: apps is forbidden",
    )
    assert report.breaks, "the definition is compared all the same"
    assert report.permissions is not None


async def test_a_definition_that_is_not_there_would_be_created(cluster: Cluster) -> None:
    @custom_resource(group="new.upgrade.konverge.test", version="v1", kind="App")
    @dataclass
    class FirstApp:
        metadata: Metadata
        spec: NewSpec

    operator = Operator("apps")
    operator.manages(FirstApp, new_settings)
    rival = copy.deepcopy(crd_manifest(FirstApp))
    rival["metadata"]["name"] = "apps.rival.upgrade.konverge.test"
    rival["spec"]["group"] = "rival.upgrade.konverge.test"
    await cluster.install(rival)

    report, failures = await UpgradeHarness(cluster).check(operator)

    assert failures == []
    assert not report.breaks
    [definition] = report.definitions
    assert not definition.is_installed
    assert "apps.rival.upgrade.konverge.test has the kind App too" in [each.change for each in definition.findings]
    assert report.owners.checked == 0


async def test_a_renamed_plural_is_refused(upgrade: UpgradeHarness) -> None:
    @custom_resource(group=APP.group, version="v1", kind="App", plural="applications")
    @dataclass
    class Renamed:
        metadata: Metadata
        spec: NewSpec

    operator = Operator("apps")
    operator.manages(Renamed, new_settings)

    report, _ = await upgrade.check(operator)

    [definition] = report.definitions
    refused = [finding.change for finding in definition.findings if finding.level == "refused"]
    assert refused == [f"the kind App of the group {APP.group} belongs to apps.{APP.group}"]
    assert report.breaks


async def test_objects_are_converted_by_the_operators_own_functions(upgrade: UpgradeHarness) -> None:
    @custom_resource(group=APP.group, version="v2", kind="App", also_serves=[OldApp])
    @dataclass
    class App:
        metadata: Metadata
        spec: TitledSpec

    operator = Operator("apps")
    operator.manages(App, title)

    @operator.converts(OldApp, App)
    def upgraded(app: OldApp) -> App:
        if app.metadata.name == "big":
            raise RuntimeError("too big to convert")
        return App(app.metadata, TitledSpec(title=app.spec.size))

    @operator.converts(App, OldApp)
    def downgraded(app: App) -> OldApp:
        return OldApp(app.metadata, OldSpec(size=app.spec.title))

    report, failures = await upgrade.check(operator)

    assert failures == []
    [definition] = report.definitions
    assert (definition.checked_objects, definition.outcomes) == (4, {"not converted": 1})
    [failed] = definition.objects
    assert failed.name == f"{upgrade.cluster.namespace}/big"
    assert "too big to convert" in failed.errors[0]
    assert ("note", "conversion") in [(finding.level, finding.path) for finding in definition.findings]
    assert report.owners.checked == 3
    owners = {owner.name.partition("/")[2]: owner for owner in report.owners.owners}
    assert owners["huge"].writes[0] == f"update v1/ConfigMap/{upgrade.cluster.namespace}/huge"
    assert report.breaks

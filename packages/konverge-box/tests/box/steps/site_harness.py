"""Reconciles of the groups of one custom resource on a cluster, as in an operator, but without its caches."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.kube.selectors import LabelSelector
from konverge.client import Client
from konverge.clock import SeededEntropy
from konverge.component import AppliedCache, ReconcileContext
from konverge.errors import AlreadyExistsError, NotFoundError, ReconcileError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, RestMapping, find_condition
from konverge_box._internal.steps import build_scope
from konverge_box._internal.steps.component_builder import build_component
from konverge_box._internal.steps.creation_marks import plan_marks
from konverge_box._internal.steps.labels import CREATED
from konverge_box._internal.steps.resource_plan import ResourcePlan
from konverge_box.expressions import EvaluationEnvironment
from konverge_cluster.testing import Cluster
from tests.box.steps.sample_plans import parse_groups
from tests.component.app import APP, APP_CRD, RecordingEvents

AGENT = "box-under-test"
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
JOB = GroupVersionKind("batch", "v1", "Job")
SECRET = GroupVersionKind("", "v1", "Secret")


class UncachedReader:
    """A reader that sends requests. Another test covers reads from caches."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        return await self._client.get(gvk, key)

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        return await self._client.mapping(gvk)

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        assert isinstance(labels, Mapping)
        selector = str(LabelSelector.from_labels(labels))
        return (await self._client.list(gvk, namespace=namespace, label_selector=selector)).items


class SiteHarness:
    """A custom resource ``site`` on a cluster, and the box that reconciles it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.new_client(AGENT)
        self.reader = UncachedReader(self.client)
        self.key = ObjectKey(cluster.namespace, "site")
        self.memory = AppliedCache()
        self.events = RecordingEvents()
        self.entropy = SeededEntropy(7)
        self.groups = parse_groups("onReconcile: {}")
        self.ahead = timedelta(0)
        """The lead of the box's time over the cluster's: the time of a real cluster cannot be moved."""

    async def open(self, steps: str, **spec: Any) -> None:
        """Create it, with a box of these steps."""
        self.groups = parse_groups(steps)
        with contextlib.suppress(AlreadyExistsError):
            await self.cluster.client.create(APP_CRD)
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        obj = {"apiVersion": APP.api_version, "kind": APP.kind, "metadata": metadata, "spec": spec}

        async def created() -> Object | None:
            try:
                return await self.cluster.client.create(obj)
            except NotFoundError:  # its kind is not served yet
                return None

        await self.cluster.eventually(created, describe="the custom resource can be created")

    def reload(self, steps: str) -> None:
        """Change the file of the box."""
        self.groups = parse_groups(steps)

    def now(self) -> datetime:
        return self.cluster.clock.now() + self.ahead

    async def owner(self) -> Object:
        return await self.client.get(APP, self.key)

    async def change_spec(self, **spec: Any) -> None:
        """Change its spec. None removes a field."""
        await self.cluster.client.patch(APP, self.key, {"spec": spec}, patch_type="merge")

    async def reconcile(self, **results: Any) -> ResourcePlan:
        """Reconcile once: plan, components, marks, status. Failures are reported in conditions."""
        owner, now = await self.owner(), self.now()
        scope = build_scope(owner, EvaluationEnvironment(now=now, entropy=self.entropy)).with_names(**results)
        plan = await self.groups.plan(scope, owner, self.reader, now)
        ctx = ReconcileContext(
            client=self.client, owner=owner, clock=self.cluster.clock, events=self.events, applied_cache=self.memory
        )
        async with ctx.flushing_status():
            for place in range(len(plan.groups)):
                plan = await self.groups.complete_group(plan, place, scope, owner, self.reader)
                with contextlib.suppress(ReconcileError):
                    await build_component(plan.groups[place]).reconcile(ctx)
        marks = await plan_marks(plan, owner, self.reader)
        if marks is not None:
            body = {"metadata": {"annotations": {CREATED: json.dumps(marks)}}}
            await self.client.patch(APP, self.key, body, patch_type="merge")
        return plan

    async def condition(self, condition_type: str = "ResourcesReady") -> Condition:
        found = find_condition(await self.owner(), condition_type)
        assert found is not None, f"there is no condition {condition_type}"
        return found

    async def reconcile_until(self, reason: str, condition_type: str = "ResourcesReady") -> Condition:
        """Reconcile, as events would trigger it, until the condition has that reason."""

        async def has_reason() -> Condition | None:
            await self.reconcile()
            condition = await self.condition(condition_type)
            return condition if condition.reason == reason else None

        return await self.cluster.eventually(has_reason, describe=f"{condition_type} becomes {reason}")

    async def find(self, gvk: GroupVersionKind, name: str, namespace: str = "") -> Object | None:
        try:
            return await self.client.get(gvk, ObjectKey(namespace or self.key.namespace, name))
        except NotFoundError:
            return None

    async def get(self, gvk: GroupVersionKind, name: str) -> Object:
        return await self.client.get(gvk, ObjectKey(self.key.namespace, name))

    async def remove(self, gvk: GroupVersionKind, name: str) -> None:
        """Delete an object as a user, and wait until it is gone."""
        await self.cluster.client.delete(gvk, ObjectKey(self.key.namespace, name))

        async def absent() -> bool:
            return await self.find(gvk, name) is None

        await self.cluster.eventually(absent, describe=f"{gvk.kind} {name} is gone")

    def writes(self) -> list[str]:
        """Return the write requests of the box so far, except those of its status."""
        found = [entry for entry in self.cluster.list_requests(AGENT) if entry.verb not in ("get", "list", "watch")]
        return [f"{entry.verb} {entry.path}" for entry in found if not entry.path.endswith("/status")]

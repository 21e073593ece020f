"""A test owner of components on either cluster, and its reconciles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from konverge.clock import Clock
from konverge.component import AppliedCache, Component, Diagnosis, ReconcileContext
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge_cluster.testing import Cluster

APP = GroupVersionKind("component.konverge.test", "v1", "TestApp")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SECRET = GroupVersionKind("", "v1", "Secret")
SERVICE = GroupVersionKind("", "v1", "Service")
AGENT = "component-under-test"

APP_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "testapps.component.konverge.test"},
    "spec": {
        "group": APP.group,
        "names": {"kind": APP.kind, "plural": "testapps", "singular": "testapp", "listKind": "TestAppList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": APP.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


@dataclass
class RecordingEvents:
    """Notes every event as (reason, message, action), and the Warning events once more by themselves."""

    noted: list[tuple[str, str, str]] = field(default_factory=list)
    warned: list[tuple[str, str]] = field(default_factory=list)

    def event(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        self.noted.append((reason, message, action))

    def warning(self, owner: Object, *, reason: str, message: str, action: str, related: Object | None = None) -> None:
        self.event(owner, reason=reason, message=message, action=action, related=related)
        self.warned.append((reason, message))


class LaterClock:
    """The clock of a cluster, some time ahead."""

    def __init__(self, clock: Clock, ahead: timedelta = timedelta(0)) -> None:
        self._clock = clock
        self.ahead = ahead

    def now(self) -> datetime:
        return self._clock.now() + self.ahead

    def monotonic(self) -> float:
        return self._clock.monotonic() + self.ahead.total_seconds()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class ComponentHarness:
    """One owner on one cluster, and what a controller does with it: passes."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.client = cluster.new_client(AGENT)
        self.key = ObjectKey(cluster.namespace, name)
        self.memory = AppliedCache()
        self.events = RecordingEvents()
        self.wake_after: timedelta | None = None
        self.clock: Clock = cluster.clock
        self.diagnosis: Diagnosis | None = None

    async def owner(self) -> Object:
        """The owner as the server has it."""
        return await self.client.get(APP, self.key)

    async def reconcile(self, *components: Component) -> Condition:
        """One pass over the components, flushed; answers the last one's condition as the server stored it."""
        ctx = ReconcileContext(
            client=self.client,
            owner=await self.owner(),
            clock=self.clock,
            events=self.events,
            applied_cache=self.memory,
            diagnosis=self.diagnosis,
        )
        try:
            async with ctx.flushing_status():
                for component in components:
                    await component.reconcile(ctx)
        finally:
            self.wake_after = ctx.requeue_after
        return await self.condition(components[-1].condition_type)

    async def condition(self, condition_type: str) -> Condition:
        """The stored condition of that type."""
        found = find_condition(await self.owner(), condition_type)
        assert found is not None, f"the owner has no condition {condition_type}"
        return found

    async def reconcile_until(self, reason: str, *components: Component) -> Condition:
        """Passes, as events would cause them, until the last component says so."""

        async def attempt() -> Condition | None:
            condition = await self.reconcile(*components)
            return condition if condition.reason == reason else None

        return await self.cluster.eventually(attempt, describe=f"the condition becomes {reason}")

    async def find(self, gvk: GroupVersionKind, name: str) -> Object | None:
        """An object in the owner's namespace, None when absent."""
        try:
            return await self.client.get(gvk, ObjectKey(self.key.namespace, name))
        except NotFoundError:
            return None

    async def wait_until_gone(self, gvk: GroupVersionKind, name: str) -> None:
        """Wait until there is no such object."""

        async def absent() -> bool:
            return await self.find(gvk, name) is None

        await self.cluster.eventually(absent, describe=f"{gvk.kind} {name} is gone")

    async def list_steady_writes(self, *components: Component, is_restarted: bool = False) -> list[str]:
        """Return the writes of a reconcile after one without writes, while no other client writes.

        Controllers of the cluster may come late, and what they write is a reason for a write of ours. So a pass during
        which, or since the beginning of the one before which, somebody else has written does not count.

        Args:
            components: What is reconciled.
            is_restarted: The pass that counts knows nothing of those before.
        """

        async def counted() -> tuple[list[str]]:
            versions, before = await self.cluster.list_versions(), len(self.writes())
            await self.reconcile(*components)
            assert (found := self._list_writes(before)) == [], f"a pass still writes {found}"
            if is_restarted:
                self.memory = AppliedCache()
            await self.reconcile(*components)
            written = self._list_writes(before)
            changed = {path for path, _ in versions.items() ^ (await self.cluster.list_versions()).items()}
            others = [path for path in changed if not any(path in line for line in written)]
            assert others == [], f"others write {others}"
            return (written,)  # a tuple, since nothing is what most tests expect

        (written,) = await self.cluster.eventually(counted, describe="nobody else writes during two passes")
        return written

    def _list_writes(self, since: int) -> list[str]:
        return [f"{entry.verb} {entry.path}" for entry in self.writes()[since:]]

    def writes(self) -> Sequence[Any]:
        """The requests so far that were no reads."""
        return [entry for entry in self.cluster.list_requests(AGENT) if entry.verb not in {"get", "list", "watch"}]

    def build_config_map(self, name: str = "settings", **data: str) -> Object:
        """A desired ConfigMap."""
        return {"metadata": {"name": name, "namespace": self.key.namespace}, "data": data or {"colour": "blue"}}

    def build_deployment(self, name: str = "web", *, image: str = "konverge.test/app:1", replicas: int = 1) -> Object:
        """A desired Deployment."""
        labels = {"app": name}
        return {
            "metadata": {"name": name, "namespace": self.key.namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": image}]},
                },
            },
        }

    def build_service(self, name: str = "web") -> Object:
        """A desired Service."""
        return {
            "metadata": {"name": name, "namespace": self.key.namespace},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80}]},
        }

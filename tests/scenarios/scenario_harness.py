"""The owners of the scenarios, and the harness that runs an operator for them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from konverge.crd import Metadata, custom_resource, encode, find_definition
from konverge.errors import NotFoundError
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
from konverge_cluster.testing import Cluster

__all__ = ["AGENT", "CLUSTER_SAMPLE", "SAMPLE", "ClusterSample", "Sample", "SampleSpec", "ScenarioHarness", "get_at"]

AGENT = "scenarios"
# The garbage collector of the real cluster checks for new kinds of owners twice a minute.
_TIMEOUT_SECONDS = 90.0


@dataclass
class SampleSpec:
    """The spec of a sample.

    Attributes:
        scenario: The name of the scenario.
        namespace: The namespace of the objects.
        version: The deployed version, for the gates of mutations.
        enabled: The component's feature gate.
        suspended: True to suspend the component.
        released: True to release the objects that can be orphaned.
        failing: True to break the dependency of the others.
    """

    scenario: str
    namespace: str
    version: str = "1.0.0"
    enabled: bool = True
    suspended: bool = False
    released: bool = False
    failing: bool = False


@custom_resource(group="scenarios.konverge.test", version="v1")
@dataclass
class Sample:
    """An owner in a namespace, with a component."""

    metadata: Metadata
    spec: SampleSpec


@custom_resource(group="scenarios.konverge.test", version="v1", scope="Cluster")
@dataclass
class ClusterSample:
    """The cluster-scoped counterpart of a sample."""

    metadata: Metadata
    spec: SampleSpec


SAMPLE = find_definition(Sample).gvk
CLUSTER_SAMPLE = find_definition(ClusterSample).gvk


def get_at(obj: Any, path: str) -> Any:
    """Return the value at a path such as ``spec.ports.1.port``; None if there is none."""
    found = obj
    for step in path.split("."):
        if isinstance(found, list):
            found = found[int(step)] if int(step) < len(found) else None
        else:
            found = (found or {}).get(step)
    return found


class ScenarioHarness:
    """A cluster with samples and a record of their conditions.

    Attributes:
        cluster: The cluster.
        history: The conditions of each sample by type, one entry for each change of status or reason:
            ``"False Creating"``.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.namespace = cluster.namespace
        self.history: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._noted: frozenset[GroupVersionKind] = frozenset()

    @asynccontextmanager
    async def running_operator(
        self, operator: Operator, *kinds: GroupVersionKind, options: RunOptions | None = None
    ) -> AsyncIterator[None]:
        """Run the operator, by default in the test's namespace, and record the reported conditions of these kinds."""
        async with (
            self.cluster.run_operator(operator, options),
            asyncio.TaskGroup() as notes,
        ):
            starts = [(await self.client.list(kind)).resource_version for kind in kinds]
            noting = [notes.create_task(self._note(*each)) for each in zip(kinds, starts, strict=True)]
            self._noted = frozenset(kinds)
            try:
                yield
            finally:
                self._noted = frozenset()
                for each in noting:
                    each.cancel()

    async def _note(self, kind: GroupVersionKind, start: str) -> None:
        async with self.client.watch(kind, resource_version=start) as events:
            async for event in events:
                for condition in get_at(event.object, "status.conditions") or ():
                    history = self.history[event.object["metadata"]["name"], condition["type"]]
                    words = f"{condition['status']} {condition['reason']}"
                    if history[-1:] != [words]:
                        history.append(words)

    async def create(self, cls: type[Any], name: str, scenario: str = "", **spec: Any) -> Object:
        """Create a sample of that class and name."""
        namespace = self.namespace if find_definition(cls).namespaced else ""
        metadata = Metadata(name=name, namespace=namespace)
        return await self.client.create(
            encode(cls(metadata=metadata, spec=SampleSpec(scenario or name, self.namespace, **spec)))
        )

    async def change(self, sample: Object, **spec: Any) -> Object:
        """Change fields of the sample's spec."""
        gvk, key = GroupVersionKind.of(sample), ObjectKey.of(sample)
        return await self.client.patch(gvk, key, {"spec": spec}, patch_type="merge")

    async def condition(self, sample: Object, condition_type: str) -> Condition | None:
        """Return the condition for the sample's current spec; None if it is not reported yet."""
        live = await self.client.get(GroupVersionKind.of(sample), ObjectKey.of(sample))
        found = find_condition(live, condition_type)
        is_of_now = found is not None and found.observed_generation == live["metadata"]["generation"]
        return found if is_of_now else None

    async def wait_for_condition(
        self,
        sample: Object,
        words: str,
        condition_type: str = "SampleReady",
        *,
        meanwhile: Callable[[], Any] | None = None,
    ) -> Condition:
        """Wait until the sample's condition for its current spec, as ``"True Healthy"``, is recorded.

        Args:
            sample: The sample.
            words: The condition's status and reason.
            condition_type: The type of the condition.
            meanwhile: Awaited before each check.
        """

        async def has_reason() -> Condition:
            if meanwhile is not None:
                await meanwhile()
            condition = await self.condition(sample, condition_type)
            assert condition is not None, f"nothing is said of {condition_type} yet"
            assert f"{condition.status} {condition.reason}" == words, condition
            is_noted = self.history[name, condition_type][-1:] == [words]
            assert is_noted or GroupVersionKind.of(sample) not in self._noted, "the watch has not reported it yet"
            return condition

        name = sample["metadata"]["name"]
        try:
            found: Condition = await self.wait_for(has_reason, describe=f"{name} says {condition_type} {words}")
        except AssertionError as error:
            error.add_note(f"what it said: {', '.join(self.history[name, condition_type])}")
            raise
        return found

    async def wait_for(self, check: Callable[[], Any], *, describe: str) -> Any:
        """Wait until the check returns a truthy value."""
        return await self.cluster.eventually(check, _TIMEOUT_SECONDS, describe)

    async def find(self, gvk: GroupVersionKind, key: ObjectKey) -> Object | None:
        """Return an object; None if it does not exist."""
        try:
            return await self.client.get(gvk, key)
        except NotFoundError:
            return None

    async def wait_until_gone(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Wait until the object does not exist."""

        async def is_gone() -> bool:
            return await self.find(gvk, key) is None

        await self.wait_for(is_gone, describe=f"{gvk.kind} {key} is gone")

    async def delete(self, gvk: GroupVersionKind, key: ObjectKey) -> None:
        """Delete an object if it exists."""
        with suppress(NotFoundError):
            await self.client.delete(gvk, key)

"""Plans without a cluster: a custom resource ``web`` of a box, and the objects that there are."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from konverge.box.expressions import Environment
from konverge.box.file import KINDS
from konverge.box.steps import scope_of
from konverge.box.steps.groups import Groups
from konverge.box.steps.keeping import Decision
from konverge.box.steps.planned import Plan, PlannedResource
from konverge.clock import SeededEntropy
from konverge.errors import KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, ResourceMapping
from konverge.kube.selectors import LabelSelector
from tests.box.file.boxes import loaded

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
CLUSTER_KINDS = frozenset({"Namespace", "Node", "Fleet"})


def owner_of(spec: Mapping[str, Any] | None = None, **metadata: Any) -> Object:
    """A custom resource ``site`` in the namespace ``here``."""
    return {
        "apiVersion": "test.konverge.dev/v1",
        "kind": "Web",
        "metadata": {"name": "site", "namespace": "here", "uid": UID, **metadata},
        "spec": dict(spec or {}),
    }


class Objects:
    """A reader of these objects, which notes what it is asked for."""

    def __init__(
        self, *objects: Object, unserved: tuple[str, ...] = (), error: type[KindNotServedError] = KindNotServedError
    ) -> None:
        self.error = error
        self.found = {(GroupVersionKind.of(obj), ObjectKey.of(obj)): obj for obj in objects}
        self.unserved = unserved
        self.asked: list[str] = []

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        self.asked.append(f"{'live ' if live else ''}{gvk.kind} {key}")
        if gvk.kind in self.unserved:
            raise self.error(f"{gvk} is not served")
        if (gvk, key) not in self.found:
            raise NotFoundError(f"no {gvk.kind} {key}")
        return self.found[gvk, key]

    async def mapping(self, gvk: GroupVersionKind) -> ResourceMapping:
        if gvk.kind in self.unserved:
            raise self.error(f"{gvk} is not served")
        return ResourceMapping(gvk, gvk.kind.lower(), namespaced=gvk.kind not in CLUSTER_KINDS)

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        assert isinstance(labels, Mapping)
        [(name, value)] = labels.items()
        self.asked.append(f"{gvk.kind} by {name}")
        if gvk.kind in self.unserved:
            raise self.error(f"{gvk} is not served")
        return [obj for (kind, _), obj in self.found.items() if kind == gvk and _label(obj, name) == value]


def _label(obj: Object, name: str) -> str:
    return str((obj["metadata"].get("labels") or {}).get(name, ""))


def groups_of(steps: str) -> Groups:
    """The groups of a box whose custom resource has those steps."""
    declared = loaded(steps)
    return Groups(declared.on_create, declared.on_reconcile, "spec.crds.web", "test-box")


def plan_of(
    steps: str | Groups,
    spec: Mapping[str, Any] | None = None,
    *objects: Object,
    owner: Object | None = None,
    reader: Objects | None = None,
    now: datetime = NOW,
    **results: Any,
) -> Plan:
    """What one pass plans.

    Args:
        steps: The steps of the custom resource, or its groups.
        spec: The custom resource's.
        *objects: What there is in the cluster.
        owner: The custom resource, instead of one with that spec.
        reader: Instead of one with those objects.
        now: The time.
        **results: What earlier steps have made, such as ``cross``.
    """
    groups = groups_of(steps) if isinstance(steps, str) else steps
    owner = owner_of(spec) if owner is None else owner
    scope = scope_of(owner, Environment(now=now, entropy=SeededEntropy(3))).plus(**results)
    return asyncio.run(groups.plan(scope, owner, reader or Objects(*objects), now))


def entries_of(plan: Plan) -> list[PlannedResource]:
    """All objects of a plan."""
    return [entry for group in plan.groups for entry in group.entries]


def told(plan: Plan) -> dict[str, str]:
    """What is done with each object: ``{"ConfigMap here/a": "apply"}``."""
    return {f"{entry.gvk.kind} {entry.key}": entry.decision.value for entry in entries_of(plan)}


def made_by(plan: Plan, name: str = "") -> Object:
    """The object of that name, or the only one, as a server would store it: with the owner's reference."""
    (found,) = [
        entry for entry in entries_of(plan) if entry.decision is Decision.APPLY and name in ("", entry.key.name)
    ]
    assert found.object is not None, found.problem or found.blocked
    return stored(found.object, owned=found.is_owned)


def stored(obj: Object, *, owned: bool = True) -> Object:
    """As a server has it after it was applied."""
    reference = {"apiVersion": "test.konverge.dev/v1", "kind": "Web", "name": "site", "uid": UID, "controller": True}
    entry = {"manager": f"Web/resources/{UID}", "operation": "Apply", "apiVersion": "v1", "fieldsV1": {}}
    entry["fieldsType"] = "FieldsV1"
    more = {
        "uid": f"uid-of-{obj['metadata']['name']}",
        "ownerReferences": [reference] if owned else [],
        "managedFields": [entry],
    }
    return {**obj, "metadata": {**obj["metadata"], **more}}


ORDER = [kind.gvk.kind for kind in KINDS.values() if kind.gvk is not None]

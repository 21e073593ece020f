"""Plans without a cluster: a custom resource of a box, and the existing objects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from konverge._internal.kube.selectors import LabelSelector
from konverge.clock import SeededEntropy
from konverge.errors import KindNotServedError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey, RestMapping
from konverge_box._internal.file import KINDS
from konverge_box._internal.steps import build_scope
from konverge_box._internal.steps.apply_policy import ObjectAction
from konverge_box._internal.steps.resource_groups import ResourceGroups
from konverge_box._internal.steps.resource_plan import PlannedResource, ResourcePlan
from konverge_box.expressions import EvaluationEnvironment
from tests.box.file.sample_boxes import load_custom_resource

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
UID = "11111111-2222-3333-4444-555555555555"
CLUSTER_KINDS = frozenset({"Namespace", "Node", "Fleet"})


def build_owner(spec: Mapping[str, Any] | None = None, **metadata: Any) -> Object:
    """Return a custom resource ``site`` in the namespace ``here``."""
    return {
        "apiVersion": "test.konverge.dev/v1",
        "kind": "Web",
        "metadata": {"name": "site", "namespace": "here", "uid": UID, **metadata},
        "spec": dict(spec or {}),
    }


class ObjectListReader:
    """A reader of these objects, which records its reads."""

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

    async def mapping(self, gvk: GroupVersionKind) -> RestMapping:
        if gvk.kind in self.unserved:
            raise self.error(f"{gvk} is not served")
        return RestMapping(gvk, gvk.kind.lower(), namespaced=gvk.kind not in CLUSTER_KINDS)

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


def parse_groups(steps: str) -> ResourceGroups:
    """Compile the groups of a box whose custom resource has those steps."""
    declared = load_custom_resource(steps)
    return ResourceGroups(declared.on_create, declared.on_reconcile, "spec.crds.web", "test-box")


def build_plan(
    steps: str | ResourceGroups,
    spec: Mapping[str, Any] | None = None,
    *objects: Object,
    owner: Object | None = None,
    reader: ObjectListReader | None = None,
    now: datetime = NOW,
    **results: Any,
) -> ResourcePlan:
    """Plan one reconcile.

    Args:
        steps: The steps of the custom resource, or its groups.
        spec: The custom resource's.
        *objects: What there is in the cluster.
        owner: The custom resource, instead of one with that spec.
        reader: Instead of one with those objects.
        now: The time.
        **results: What earlier steps have made, such as ``cross``.
    """
    groups = parse_groups(steps) if isinstance(steps, str) else steps
    owner = build_owner(spec) if owner is None else owner
    scope = build_scope(owner, EvaluationEnvironment(now=now, entropy=SeededEntropy(3))).with_names(**results)
    return asyncio.run(groups.plan(scope, owner, reader or ObjectListReader(*objects), now))


def list_entries(plan: ResourcePlan) -> list[PlannedResource]:
    """Return all objects of a plan."""
    return [entry for group in plan.groups for entry in group.entries]


def describe_plan(plan: ResourcePlan) -> dict[str, str]:
    """Return the action on each object: ``{"ConfigMap here/a": "apply"}``."""
    return {f"{entry.gvk.kind} {entry.key}": entry.action.value for entry in list_entries(plan)}


def build_applied_object(plan: ResourcePlan, name: str = "") -> Object:
    """Return the object of that name, or the only one, as a server stores it: with the owner reference."""
    (found,) = [
        entry for entry in list_entries(plan) if entry.action is ObjectAction.APPLY and name in ("", entry.key.name)
    ]
    assert found.object is not None, found.problem or found.blocked
    return to_stored_object(found.object, owned=found.is_owned)


def to_stored_object(obj: Object, *, owned: bool = True) -> Object:
    """Return the object as a server has it after it was applied."""
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

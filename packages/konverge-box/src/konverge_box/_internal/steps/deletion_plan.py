"""The plan of a deletion, from the file and the custom resource: groups of Jobs and of objects, with their names.

All groups are rendered before anything is deleted, so that an error in the last group is reported in time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.errors import ConfigurationError
from konverge_box._internal.expressions import (
    ConditionSet,
    Structure,
    Template,
    compile_expression,
    compile_structure,
    reveal_sensitive,
)
from konverge_box._internal.expressions.values import describe_value_type
from konverge_box._internal.file import CUSTOM, KINDS, BoxResource, DeleteGroup, DeleteTarget
from konverge_box._internal.steps.entry_conditions import compile_entry_conditions
from konverge_box._internal.steps.errors import StepError
from konverge_box._internal.steps.for_each import Repetition
from konverge_box._internal.steps.labels import ENTRY, MANAGED_BY, OWNER_UID, compute_short_hash, to_label_value
from konverge_box._internal.steps.scope import Scope

__all__ = [
    "JOB",
    "MAX_JOBS",
    "CompiledDeletionGroup",
    "PlannedDeletionGroup",
    "PlannedJob",
    "PlannedTarget",
    "plan_deletion",
]

JOB = GroupVersionKind("batch", "v1", "Job")

MAX_JOBS = 1000
"""Maximum number of Jobs in the deletion of one custom resource."""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A Job that must run to completion.

    Args:
        where: Its path in the file.
        key: Its namespace and name.
        entry: The value of its label `ENTRY`.
        object: The Job to create.
    """

    where: str
    key: ObjectKey
    entry: str
    object: Object

    def __str__(self) -> str:
        return f"Job {self.key}"


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """An object to delete. An empty namespace stands for that of the custom resource, if the kind is namespaced."""

    where: str
    gvk: GroupVersionKind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PlannedDeletionGroup:
    """The Jobs and objects of one group.

    Args:
        where: Its path in the file.
        name: Its name in messages.
        jobs: The Jobs, which run first.
        targets: The objects, which are deleted when all Jobs are complete.
    """

    where: str
    name: str
    jobs: tuple[PlannedJob, ...]
    targets: tuple[PlannedTarget, ...]


class CompiledDeletionGroup:
    """One compiled group of ``onDelete``.

    Args:
        declared: The group.
        where: Its path in the file.
        name: Its name in messages.
        box_name: The name of the box.

    Raises:
        konverge.errors.ConfigurationError: A part of it cannot be compiled.
    """

    def __init__(self, declared: DeleteGroup, where: str, name: str, box_name: str) -> None:
        self._where = where
        self._name = name
        self._conditions = compile_entry_conditions(declared, where)
        self._jobs = tuple(_CompiledJob(each, box_name) for each in declared.run)
        self._targets = tuple(
            _CompiledTarget(key, each, f"{where}.delete.{key}[{i}]")
            for key, targets in declared.delete.items()
            for i, each in enumerate(targets)
        )

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds of the objects that it creates or deletes."""
        return frozenset([*(each.gvk for each in self._targets), *([JOB] if self._jobs else ())])

    def plan_group(self, scope: Scope, owner: Object) -> PlannedDeletionGroup | None:
        """Plan the group; return None when its conditions do not hold."""
        if not scope.holds(self._conditions):
            return None
        jobs = tuple(job for each in self._jobs for job in each.plan_jobs(scope, owner))
        return PlannedDeletionGroup(
            self._where, self._name, jobs, tuple(each.plan_target(scope) for each in self._targets)
        )


def plan_deletion(
    groups: tuple[CompiledDeletionGroup, ...], scope: Scope, owner: Object
) -> tuple[PlannedDeletionGroup, ...]:
    """Plan all groups, in their order.

    Raises:
        StepError: Two Jobs have one name, or there are too many.
        konverge_box.expressions.ExpressionError: An expression has no value.
    """
    planned = [found for each in groups if (found := each.plan_group(scope, owner)) is not None]
    seen: dict[ObjectKey, str] = {}
    for job in (job for group in planned for job in group.jobs):
        if job.key in seen:
            # The second Job would count as complete together with the first.
            raise StepError(job.where, f"{job} is also declared by {seen[job.key]}; give each Job its own name")
        seen[job.key] = job.where
        if len(seen) > MAX_JOBS:
            raise StepError(job.where, f"expected at most {MAX_JOBS} Jobs in a deletion, found more")
    return tuple(planned)


class _CompiledJob:
    def __init__(self, declared: BoxResource, box_name: str) -> None:
        self._where = declared.path
        self._managed_by = to_label_value(box_name)
        self._conditions: ConditionSet = compile_entry_conditions(declared, declared.path)
        self._object: Structure = compile_structure(declared.object, where=declared.path)
        self._turns = Repetition(declared.for_each, declared.path)

    def plan_jobs(self, scope: Scope, owner: Object) -> Iterator[PlannedJob]:
        for each in self._turns.list_scopes(scope):
            if each.holds(self._conditions):
                yield self._render_job(each, owner)

    def _render_job(self, scope: Scope, owner: Object) -> PlannedJob:
        obj: Object = reveal_sensitive(scope.render(self._object))
        metadata = obj["metadata"]
        metadata.setdefault("namespace", ObjectKey.of(owner).namespace)
        key = ObjectKey.of(obj)
        if not key.namespace:
            problem = f"expected a namespace for Job {key.name}, found none: {owner['kind']} is cluster-scoped"
            raise StepError(self._where, problem)
        uid = owner["metadata"]["uid"]
        # With the UID: a user can copy the annotations with the completed Jobs to another custom resource.
        entry = compute_short_hash(f"onDelete {uid} {key}")
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            MANAGED_BY: self._managed_by,
            OWNER_UID: uid,
            ENTRY: entry,
        }
        # No owner reference: a foreground delete of the owner would delete the Job first. No TTL: a Job that is
        # deleted before its completion is recorded would run again.
        metadata.pop("ownerReferences", None)
        if isinstance(obj.get("spec"), dict):
            obj["spec"].pop("ttlSecondsAfterFinished", None)
        return PlannedJob(self._where, key, entry, obj)


class _CompiledTarget:
    def __init__(self, key: str, declared: DeleteTarget, where: str) -> None:
        self._where = where
        self._name = compile_expression(declared.name, where=f"{where}.name")
        self._namespace = compile_expression(declared.namespace, where=f"{where}.namespace")
        kind = KINDS.get(key)
        if kind is None or (key == CUSTOM and not (declared.api_version and declared.kind)):
            raise ConfigurationError(f"{where}: expected a kind of the box, or apiVersion and kind under custom")
        self.gvk = kind.gvk or GroupVersionKind.parse(declared.api_version or "", declared.kind or "")

    def plan_target(self, scope: Scope) -> PlannedTarget:
        name = self._render_text(scope, self._name)
        if not name:
            raise StepError(self._where, f"expected the name of a {self.gvk.kind}, found empty text")
        return PlannedTarget(self._where, self.gvk, self._render_text(scope, self._namespace), name)

    def _render_text(self, scope: Scope, template: Template) -> str:
        value = reveal_sensitive(scope.render(template))
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise StepError(template.where, f"expected text, found {describe_value_type(value)}")
        return str(value)

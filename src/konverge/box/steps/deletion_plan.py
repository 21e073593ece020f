"""What a deletion has to do, from the file and the custom resource: groups of Jobs and of objects, with their names.

All of it is rendered before anything is done, so that a mistake in the last group is told before the first is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from konverge.box.expressions import (
    Conditions,
    Structure,
    Template,
    compile_expression,
    compile_structure,
    revealed,
)
from konverge.box.file import CUSTOM, KINDS, DeleteGroup, DeleteTarget, Resource
from konverge.box.steps.conditional import conditions_of
from konverge.box.steps.errors import StepError
from konverge.box.steps.for_each import Repetition
from konverge.box.steps.labels import ENTRY, MANAGED_BY, OWNER_UID, label_value, short_hash
from konverge.box.steps.scope import Scope
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind, Object, ObjectKey

__all__ = ["JOB", "MOST_JOBS", "CompiledGroup", "PlannedGroup", "PlannedJob", "PlannedTarget", "plan"]

JOB = GroupVersionKind("batch", "v1", "Job")

MOST_JOBS = 1000
"""Jobs that the deletion of one custom resource may have."""


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A Job that is to run to its end.

    Args:
        where: Its path in the file.
        key: Which Job it is.
        entry: The value of its label `ENTRY`.
        object: The Job as it is to be created.
    """

    where: str
    key: ObjectKey
    entry: str
    object: Object

    def __str__(self) -> str:
        return f"Job {self.key}"


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """An object that is to be deleted; an empty namespace is the custom resource's, if the kind has namespaces."""

    where: str
    gvk: GroupVersionKind
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """What is done together.

    Args:
        where: Its path in the file.
        name: What it is called in messages.
        jobs: They run first.
        targets: They are deleted when all Jobs have run.
    """

    where: str
    name: str
    jobs: tuple[PlannedJob, ...]
    targets: tuple[PlannedTarget, ...]


class CompiledGroup:
    """One group of the file, compiled.

    Args:
        declared: The group.
        where: Its path in the file.
        name: What messages call it.
        box_name: The box.

    Raises:
        konverge.errors.ConfigurationError: Something of it cannot be compiled.
    """

    def __init__(self, declared: DeleteGroup, where: str, name: str, box_name: str) -> None:
        self._where = where
        self._name = name
        self._conditions = conditions_of(declared, where)
        self._jobs = tuple(_Job(each, box_name) for each in declared.run)
        self._targets = tuple(
            _Target(key, each, f"{where}.delete.{key}[{i}]")
            for key, targets in declared.delete.items()
            for i, each in enumerate(targets)
        )

    @property
    def kinds(self) -> frozenset[GroupVersionKind]:
        """The kinds that it creates or deletes."""
        return frozenset([*(each.gvk for each in self._targets), *([JOB] if self._jobs else ())])

    def plan(self, scope: Scope, owner: Object) -> PlannedGroup | None:
        """What it has to do; None when its conditions do not hold."""
        if not scope.holds(self._conditions):
            return None
        jobs = tuple(job for each in self._jobs for job in each.plan(scope, owner))
        return PlannedGroup(self._where, self._name, jobs, tuple(each.plan(scope) for each in self._targets))


def plan(groups: tuple[CompiledGroup, ...], scope: Scope, owner: Object) -> tuple[PlannedGroup, ...]:
    """All that is to be done, in order.

    Raises:
        StepError: Two Jobs have one name, or there are too many.
        konverge.box.expressions.ExpressionError: An expression has no value.
    """
    planned = [found for each in groups if (found := each.plan(scope, owner)) is not None]
    seen: dict[ObjectKey, str] = {}
    for job in (job for group in planned for job in group.jobs):
        if job.key in seen:
            # The second would be taken to have run with the first.
            raise StepError(job.where, f"{job} is that of {seen[job.key]} already: give each Job a name of its own")
        seen[job.key] = job.where
        if len(seen) > MOST_JOBS:
            raise StepError(job.where, f"expected at most {MOST_JOBS} Jobs in a deletion")
    return tuple(planned)


class _Job:
    def __init__(self, declared: Resource, box_name: str) -> None:
        self._where = declared.path
        self._managed_by = label_value(box_name)
        self._conditions: Conditions = conditions_of(declared, declared.path)
        self._object: Structure = compile_structure(declared.object, where=declared.path)
        self._turns = Repetition(declared.for_each, declared.path)

    def plan(self, scope: Scope, owner: Object) -> Iterator[PlannedJob]:
        for each in self._turns.scopes(scope):
            if each.holds(self._conditions):
                yield self._rendered(each, owner)

    def _rendered(self, scope: Scope, owner: Object) -> PlannedJob:
        obj: Object = revealed(scope.render(self._object))
        metadata = obj["metadata"]
        metadata.setdefault("namespace", ObjectKey.of(owner).namespace)
        key = ObjectKey.of(obj)
        if not key.namespace:
            raise StepError(self._where, f"expected a namespace for Job {key.name}, since {owner['kind']} has none")
        uid = owner["metadata"]["uid"]
        # With the UID: annotations, and the notes in them, may be copied to another custom resource.
        entry = short_hash(f"onDelete {uid} {key}")
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            MANAGED_BY: self._managed_by,
            OWNER_UID: uid,
            ENTRY: entry,
        }
        # No reference to the owner: who deletes that in the foreground would delete the Job first. And no TTL: a Job
        # that goes before it was seen to have run would run again.
        metadata.pop("ownerReferences", None)
        if isinstance(obj.get("spec"), dict):
            obj["spec"].pop("ttlSecondsAfterFinished", None)
        return PlannedJob(self._where, key, entry, obj)


class _Target:
    def __init__(self, key: str, declared: DeleteTarget, where: str) -> None:
        self._where = where
        self._name = compile_expression(declared.name, where=f"{where}.name")
        self._namespace = compile_expression(declared.namespace, where=f"{where}.namespace")
        kind = KINDS.get(key)
        if kind is None or (key == CUSTOM and not (declared.api_version and declared.kind)):
            raise ConfigurationError(f"{where}: expected a kind that a box knows, or apiVersion and kind under custom")
        self.gvk = kind.gvk or GroupVersionKind.parse(declared.api_version or "", declared.kind or "")

    def plan(self, scope: Scope) -> PlannedTarget:
        name = self._text(scope, self._name)
        if not name:
            raise StepError(self._where, f"expected the name of a {self.gvk.kind}, found none")
        return PlannedTarget(self._where, self.gvk, self._text(scope, self._namespace), name)

    def _text(self, scope: Scope, template: Template) -> str:
        found = revealed(scope.render(template))
        if isinstance(found, bool) or not isinstance(found, str | int):
            raise StepError(template.where, "expected a text")
        return str(found)

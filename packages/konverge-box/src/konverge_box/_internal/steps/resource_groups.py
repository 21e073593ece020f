"""The groups of ``onCreate`` and ``onReconcile``: from the declarations of the file to the plan for each object.

Both steps are planned together, before anything is written: no group deletes an object that an entry of any group
declares. An object that cannot be rendered is a failure of its own group only. Names and conditions alone decide which
objects exist; so the objects of a group that reads earlier groups can be rendered later (`complete_group`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, has_owner
from konverge._internal.kube.secret_values import SecretValues
from konverge_box._internal.file import Group
from konverge_box._internal.steps.children import Child, ChildrenReader
from konverge_box._internal.steps.compiled_group import CompiledGroup
from konverge_box._internal.steps.object_reader import MappingReader, list_owned_objects
from konverge_box._internal.steps.ownership import is_ours
from konverge_box._internal.steps.planner import Planner, is_namespaced_resource
from konverge_box._internal.steps.resource_plan import ResourcePlan
from konverge_box._internal.steps.scope import Scope

__all__ = ["ResourceGroups"]

_NAMES = {"onCreate": "created", "onReconcile": "resources"}


class ResourceGroups:
    """The compiled groups of one custom resource of the file.

    Args:
        on_create: The groups of ``onCreate``.
        on_reconcile: The groups of ``onReconcile``.
        where: The path of the custom resource in the file, for example ``spec.crds.website``.
        box_name: The name of the box.

    Attributes:
        kinds: The kinds of its objects.
        listed_kinds: The kinds whose objects of one owner each reconcile lists by its label.
        first_after_providers: The index of the first group that reads ``providers``; it and all later groups are
            reconciled after the items of providers. The number of groups, if none reads them.
    """

    def __init__(
        self, on_create: tuple[Group, ...], on_reconcile: tuple[Group, ...], where: str, box_name: str
    ) -> None:
        names: dict[str, str] = {}
        compiled: list[CompiledGroup] = []
        for step, groups in (("onCreate", on_create), ("onReconcile", on_reconcile)):
            unnamed = [group for group in groups if group.name is None]
            for index, group in enumerate(groups):
                name = group.name or _NAMES[step] + (str(index) if len(unnamed) > 1 else "")
                compiled.append(CompiledGroup(group, name, f"{where}.{step}", index, names, box_name))
                names[name] = compiled[-1].condition_type
        self._groups = tuple(compiled)
        places = [
            place for place, group in enumerate(compiled) if any(path[0] == "providers" for path in group.late_paths)
        ]
        self.first_after_providers = min(places, default=len(compiled))
        self._children = tuple(
            ChildrenReader((*on_create, *on_reconcile), group.late_paths) if group.late_paths else None
            for group in compiled
        )
        resources = [resource for group in compiled for resource in group.resources]
        self.kinds = frozenset(each.gvk for each in resources)
        self.listed_kinds = frozenset(
            each.gvk for each in resources if each.apply_policy.can_remove and not each.has_fixed_key
        )

    @property
    def condition_types(self) -> tuple[str, ...]:
        """The condition types of all groups, in their order."""
        return tuple(group.condition_type for group in self._groups)

    async def plan(self, scope: Scope, owner: Object, reader: MappingReader, now: datetime) -> ResourcePlan:
        """Plan the action on each object in this reconcile.

        Args:
            scope: The scope with the results of earlier steps.
            owner: The custom resource as it was read.
            reader: Reads from the caches. Later changes of read objects queue the custom resource.
            now: The time of the reconcile.

        Raises:
            StepError: There are too many objects, two entries declare the same one, or a name is invalid.
            konverge_box.expressions.ExpressionError: A condition or a name has no value.
            konverge.errors.KonvergeError: The cluster could not be read.
        """
        return await Planner(self._groups, scope, owner, reader, now).plan()

    async def complete_group(
        self,
        plan: ResourcePlan,
        place: int,
        scope: Scope,
        owner: Object,
        reader: MappingReader,
        secrets: SecretValues | None = None,
        *,
        adopts: bool = True,
    ) -> ResourcePlan:
        """Return the plan with the objects of a group that reads ``children`` or ``providers``.

        Entries whose values do not exist yet are blocked. Other groups are rendered by `plan` already. Where adoption
        is refused, the values of an existing object of another owner are not used here either.

        Args:
            plan: The plan, whose earlier groups are reconciled.
            place: The index of the group.
            scope: The scope with the results of earlier steps; with ``providers`` after that step.
            owner: The custom resource.
            reader: Reads from the caches, with own writes.
            secrets: Secret values that are redacted in the conditions of children.
            adopts: Tells whether existing objects are adopted, unless the resource declares ``adopt``.

        Raises:
            konverge.errors.KonvergeError: The cluster could not be read.
        """
        children = self._children[place]
        if children is None:
            return plan
        earlier = [
            Child(entry.resource, entry.key, is_desired=entry.is_desired and entry.may_adopt(default=adopts))
            for group in plan.groups[:place]
            for entry in group.entries
        ]
        names: dict[str, Any] = {"children": await children.read(owner, earlier, reader, secrets)}
        if "providers" in scope.names:
            names["providers"] = scope.names["providers"]
        group = plan.groups[place]
        entries = [each if each.complete is None else await each.complete(each, names) for each in group.entries]
        groups = (*plan.groups[:place], replace(group, entries=tuple(entries)), *plan.groups[place + 1 :])
        return replace(plan, groups=groups)

    async def find_leftovers(self, owner: Object, reader: MappingReader) -> list[Object]:
        """Find the objects of this custom resource that the garbage collector does not delete with it.

        They have no owner reference: they are in another namespace, or in none. The finalizer must delete them.

        Raises:
            konverge.errors.KonvergeError: The cluster could not be read.
        """
        if not ObjectKey.of(owner).namespace:
            return []  # a cluster-scoped object can own every object
        kinds: dict[GroupVersionKind, None] = {}
        for group in self._groups:
            for resource in group.resources:
                if resource.gvk not in kinds and resource.may_leave_namespace(
                    is_namespaced=await is_namespaced_resource(resource, reader)
                ):
                    kinds[resource.gvk] = None
        leftovers: list[Object] = []
        for gvk in kinds:
            labeled = await list_owned_objects(gvk, owner, reader)
            leftovers += [
                obj for obj in labeled if is_ours(obj, owner) and not has_owner(obj, owner["metadata"]["uid"])
            ]
        return leftovers

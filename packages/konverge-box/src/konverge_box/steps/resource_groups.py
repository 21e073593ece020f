"""The groups of ``onCreate`` and ``onReconcile``: from what the file declares to what is done with each object.

Both steps are planned at once, before anything is written: an object that any entry wants is deleted by none, whichever
group it is in. One that cannot be rendered is a failure of its own group.
"""

from __future__ import annotations

from datetime import datetime

from konverge.kube import GroupVersionKind, Object, ObjectKey, has_owner
from konverge_box.file import Group
from konverge_box.steps.compiled_group import CompiledGroup
from konverge_box.steps.object_reader import MappingReader, list_owned_objects
from konverge_box.steps.ownership import is_ours
from konverge_box.steps.planner import Planner, is_namespaced_resource
from konverge_box.steps.resource_plan import ResourcePlan
from konverge_box.steps.scope import Scope

__all__ = ["ResourceGroups"]

_NAMES = {"onCreate": "created", "onReconcile": "resources"}


class ResourceGroups:
    """The groups of one custom resource of the file, compiled.

    Args:
        on_create: Those of ``onCreate``.
        on_reconcile: Those of ``onReconcile``.
        where: The path of the custom resource in the file, for example ``spec.crds.website``.
        box_name: The box.

    Attributes:
        kinds: The kinds of which it makes objects.
        listed_kinds: Those of which objects of one owner are looked for by its label in each pass.
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
        resources = [resource for group in compiled for resource in group.resources]
        self.kinds = frozenset(each.gvk for each in resources)
        self.listed_kinds = frozenset(
            each.gvk for each in resources if each.apply_policy.can_remove and not each.has_fixed_key
        )

    @property
    def condition_types(self) -> tuple[str, ...]:
        """Those of all groups, in their order."""
        return tuple(group.condition_type for group in self._groups)

    async def plan(self, scope: Scope, owner: Object, reader: MappingReader, now: datetime) -> ResourcePlan:
        """Decide what is done with each object in this pass.

        Args:
            scope: What the steps before have made.
            owner: The custom resource as it was read.
            reader: Reads from the caches; what is read wakes the custom resource.
            now: The time of the pass.

        Raises:
            StepError: There are too many objects, two entries want the same one, or a name is none.
            konverge_box.expressions.ExpressionError: A condition or a name has no value.
            konverge.errors.KonvergeError: The cluster could not be read.
        """
        return await Planner(self._groups, scope, owner, reader, now).plan()

    async def find_leftovers(self, owner: Object, reader: MappingReader) -> list[Object]:
        """The objects that have been made for this custom resource and do not go with it by themselves.

        They have no owner reference: they are in another namespace, or in none. Whoever ends the custom resource
        deletes them.

        Raises:
            konverge.errors.KonvergeError: The cluster could not be read.
        """
        if not ObjectKey.of(owner).namespace:
            return []  # it can own everything
        kinds: dict[GroupVersionKind, None] = {}
        for group in self._groups:
            for resource in group.resources:
                if resource.gvk not in kinds and resource.may_leave_namespace(
                    is_namespaced=await is_namespaced_resource(resource, reader)
                ):
                    kinds[resource.gvk] = None
        found: list[Object] = []
        for gvk in kinds:
            of_owner = await list_owned_objects(gvk, owner, reader)
            found += [obj for obj in of_owner if is_ours(obj, owner) and not has_owner(obj, owner["metadata"]["uid"])]
        return found

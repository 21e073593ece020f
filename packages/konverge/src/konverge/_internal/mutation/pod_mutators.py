"""Mutators that kinds with pods share: for a pod's spec, for a pod template, and for workloads that keep running.

A mutation for a `WorkloadMutator` works with a Deployment, a StatefulSet and a DaemonSet, so one function adds the same
tracing sidecar to all of them. A type checker rejects it for a ReplicaSet, a Pod, a Job or a CronJob. These are only
partly mutable or have to end: a sidecar that never ends would keep a Job from completing. A mutation that is intended
for these kinds, too, uses `PodTemplateMutator` or `PodSpecMutator`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from konverge._internal.kube import Object
from konverge._internal.mutation.container_selectors import ContainerSelector, all_containers
from konverge._internal.mutation.editors.container import ContainerEditor
from konverge._internal.mutation.editors.object_meta import ObjectMetaEditor
from konverge._internal.mutation.editors.pod_spec import PodSpecEditor
from konverge._internal.mutation.field_editing import (
    ensure_list,
    ensure_mapping,
    match_names,
    read_name,
    remove_items,
    set_item,
)
from konverge._internal.mutation.mutator import EditCategory, EditFunction, Mutator

__all__ = ["PodSpecMutator", "PodTemplateMutator", "WorkloadMutator"]

_ContainerEdit: TypeAlias = tuple[ContainerSelector, EditFunction[ContainerEditor]]


class PodSpecMutator(Mutator):
    """Records edits of a pod's spec and its containers, at the path of the kind.

    A selector or an edit of None is ignored.
    """

    pod_spec: ClassVar[tuple[str, ...]] = ("spec",)
    """Path of the pod spec in the object."""

    def __init__(self) -> None:
        super().__init__()
        self._container_edits: dict[str, list[_ContainerEdit]] = {}

    def edit_pod_spec(self, edit: EditFunction[PodSpecEditor] | None) -> None:
        """Record an edit of the parts that containers share: volumes, tolerations, the service account."""
        self._edit(EditCategory.POD_SPEC, PodSpecEditor, self.pod_spec, edit)

    def edit_containers(self, selector: ContainerSelector | None, edit: EditFunction[ContainerEditor] | None) -> None:
        """Record an edit of the selected containers, applied after all additions and removals of containers."""
        self._edit_containers("containers", EditCategory.CONTAINER_EDITS, selector, edit)

    def edit_init_containers(
        self, selector: ContainerSelector | None, edit: EditFunction[ContainerEditor] | None
    ) -> None:
        """Record an edit of the selected init containers."""
        self._edit_containers("initContainers", EditCategory.INIT_CONTAINER_EDITS, selector, edit)

    def ensure_container(self, container: Mapping[str, Any]) -> None:
        """Replace the container of the same name, else append it."""
        self._set_container("containers", EditCategory.CONTAINER_PRESENCE, container)

    def remove_container(self, name: str) -> None:
        """Remove the container of this name."""
        self._remove_containers("containers", EditCategory.CONTAINER_PRESENCE, (name,))

    def remove_containers(self, names: Iterable[str]) -> None:
        """Remove the containers of these names."""
        self._remove_containers("containers", EditCategory.CONTAINER_PRESENCE, names)

    def ensure_init_container(self, container: Mapping[str, Any]) -> None:
        """Replace the init container of the same name, else append it."""
        self._set_container("initContainers", EditCategory.INIT_CONTAINER_PRESENCE, container)

    def remove_init_container(self, name: str) -> None:
        """Remove the init container of this name."""
        self._remove_containers("initContainers", EditCategory.INIT_CONTAINER_PRESENCE, (name,))

    def remove_init_containers(self, names: Iterable[str]) -> None:
        """Remove the init containers of these names."""
        self._remove_containers("initContainers", EditCategory.INIT_CONTAINER_PRESENCE, names)

    def ensure_container_env_var(self, variable: Mapping[str, Any]) -> None:
        """Set an environment variable in all containers (not in init containers)."""
        self.edit_containers(all_containers(), lambda container: container.ensure_env_var(variable))

    def remove_container_env_var(self, name: str) -> None:
        """Remove an environment variable from all containers."""
        self.remove_container_env_vars((name,))

    def remove_container_env_vars(self, names: Iterable[str]) -> None:
        """Remove environment variables from all containers."""
        unwanted = tuple(names)
        self.edit_containers(all_containers(), lambda container: container.remove_env_vars(unwanted))

    def ensure_container_arg(self, argument: str) -> None:
        """Add an argument to all containers that do not have exactly this one."""
        self.edit_containers(all_containers(), lambda container: container.ensure_arg(argument))

    def remove_container_arg(self, argument: str) -> None:
        """Remove an argument from all containers."""
        self.remove_container_args((argument,))

    def remove_container_args(self, arguments: Iterable[str]) -> None:
        """Remove arguments from all containers."""
        unwanted = tuple(arguments)
        self.edit_containers(all_containers(), lambda container: container.remove_args(unwanted))

    def _set_container(self, field: str, category: EditCategory, container: Mapping[str, Any]) -> None:
        is_same = match_names(read_name(container))
        self._record(category, lambda obj: set_item(self._find_pod_spec(obj), field, container, is_same))

    def _remove_containers(self, field: str, category: EditCategory, names: Iterable[str]) -> None:
        is_unwanted = match_names(*names)
        self._record(category, lambda obj: remove_items(self._find_pod_spec(obj), field, is_unwanted))

    def _edit_containers(
        self,
        field: str,
        category: EditCategory,
        selector: ContainerSelector | None,
        edit: EditFunction[ContainerEditor] | None,
    ) -> None:
        if selector is None or edit is None:
            return
        edits = self._container_edits.get(field)
        if edits is None:
            edits = self._container_edits[field] = []
            self._record(category, lambda obj: _edit_selected_containers(self._find_pod_spec(obj), field, edits))
        edits.append((selector, edit))

    def _find_pod_spec(self, obj: Object) -> Object:
        return ensure_mapping(obj, *self.pod_spec)


class PodTemplateMutator(PodSpecMutator):
    """Records edits of a pod template, for kinds that create their pods from one."""

    pod_spec: ClassVar[tuple[str, ...]] = ("spec", "template", "spec")

    def edit_pod_template_metadata(self, edit: EditFunction[ObjectMetaEditor] | None) -> None:
        """Record an edit of the labels and annotations of the pods."""
        self._edit(EditCategory.POD_TEMPLATE_METADATA, ObjectMetaEditor, (*self.pod_spec[:-1], "metadata"), edit)


class WorkloadMutator(PodTemplateMutator):
    """Records edits that a Deployment, a StatefulSet and a DaemonSet share."""


def _edit_selected_containers(pod_spec: Object, field: str, edits: list[_ContainerEdit]) -> None:
    """Apply the edits container by container.

    Every selector is evaluated before the first edit: it sees the containers after all additions and removals.
    """
    if pod_spec.get(field) is None:
        return
    containers = [container for container in ensure_list(pod_spec, field) if isinstance(container, dict)]
    selected = [
        (container, [edit for selector, edit in edits if selector(index, container)])
        for index, container in enumerate(containers)
    ]
    for container, container_edits in selected:
        editor = ContainerEditor(container)
        for edit in container_edits:
            edit(editor)

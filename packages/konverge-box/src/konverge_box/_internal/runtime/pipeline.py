"""The compiled steps of one custom resource."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from konverge._internal.kube import GroupVersionKind, Object
from konverge_box._internal.calls import ExternalCalls
from konverge_box._internal.expressions.schedules import parse_period
from konverge_box._internal.file import KINDS, CustomResource, OperatorBox
from konverge_box._internal.providers import PROVIDERS_ANNOTATION, ProviderPool, ProvidersStep
from konverge_box._internal.runtime.pause import DRY_RUN_ANNOTATION, PAUSED_ANNOTATION, Pause, is_annotated
from konverge_box._internal.steps import Scope
from konverge_box._internal.steps.children import ChildrenReader
from konverge_box._internal.steps.deletion import Deletion
from konverge_box._internal.steps.mutation import Mutations
from konverge_box._internal.steps.normalization import Normalization
from konverge_box._internal.steps.observations import Observations
from konverge_box._internal.steps.resource_groups import ResourceGroups
from konverge_box._internal.steps.status_fields import StatusFields
from konverge_box._internal.steps.validation import Validation

__all__ = ["Pipeline", "compile_pipelines"]


_SOONEST = timedelta(seconds=10)
"""The shortest time after which an expired result of a call triggers a reconcile by itself."""


class Pipeline:
    """The compiled steps of one custom resource. It keeps no data between reconciles.

    Args:
        box: The box.
        name: The file's name for the custom resource.
        pool: The providers of the process.

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled. For example, an extra or a provider is not installed.
    """

    def __init__(self, box: OperatorBox, name: str, pool: ProviderPool) -> None:
        declared = box.spec.crds[name]
        where = f"spec.crds.{name}"
        self.name = name
        self.declared = declared
        self.where = where
        self.gvk = declared.resource.gvk
        self.resync = parse_period(declared.reconcile.resync)
        self.retries_denied = declared.reconcile.retry_denied
        self.pause = Pause(declared.pause, f"{where}.pause")
        self.normalization = Normalization(declared.normalize, f"{where}.normalize")
        self.mutations = Mutations(declared.mutation, f"{where}.mutation")
        self.validation = Validation(declared.validation, f"{where}.validation")
        self.can_deny = any(rule.action == "deny" for rule in declared.validation)
        self.can_warn = any(rule.action == "warn" for rule in declared.validation)
        self.observations = Observations(declared.cross, f"{where}.cross", _collect_kinds(box))
        # No event reports that the result of a call has changed: reconcile again when the cached result expires.
        self.requeue_periods = {
            call.name: max(parse_period(call.cache_for), _SOONEST) for call in declared.external if call.cache_for
        }
        self.calls = ExternalCalls(declared.external, f"{where}.external", box.spec.allowed_networks)
        self.groups = ResourceGroups(declared.on_create, declared.on_reconcile, where, box.metadata.name)
        self.providers = ProvidersStep(declared.providers, box.spec.providers, f"{where}.providers", pool)
        self.status_fields = StatusFields(declared.status, f"{where}.status")
        self.children = ChildrenReader(
            (*declared.on_create, *declared.on_reconcile), self.status_fields.list_read_paths()
        )
        self.deletion = Deletion(declared.on_delete, f"{where}.onDelete", box.metadata.name)
        scopes = {each.resource.gvk: each.resource.scope for each in box.spec.crds.values()}
        steps = declared.finalizers, declared.on_delete, declared.providers
        self._needs_finalizers = any(steps) or _may_leave_objects(declared, scopes)

    def build_canonical(self, scope: Scope, obj: Object) -> Object:
        """Return the canonical object: the result of the first two steps, which all later steps see.

        Args:
            scope: The scope of the object as it was read.
            obj: The object as it was read.

        Raises:
            steps.StepError: A value cannot get the form that the file declares.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        return self.mutations.apply_rules(scope, self.normalization.normalize_object(scope, obj)).object

    def find_next_change(self, now: datetime) -> datetime | None:
        """Return the next time at which a step can have another result without any change; None without such a time."""
        timed = (
            self.pause,
            self.mutations,
            self.validation,
            self.observations,
            self.calls,
            self.providers,
            self.status_fields,
        )
        moments = [step.find_next_change(now) for step in timed]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """The finalizers that keep an object until the box has cleaned up after it.

        They exist also where no step needs them: an object can have them from an earlier file, and the box must then
        remove them.
        """
        return self.declared.finalizers or (f"{self.gvk.group or 'core.konverge.dev'}/box",)

    def needs_finalizers(self, owner: Object) -> bool:
        """Tell whether an object needs the finalizers before it is reconciled.

        It needs none when the garbage collector of the cluster deletes everything that belongs to it.

        Args:
            owner: The object. Its annotations record the items of providers that an earlier file created.
        """
        if is_annotated(owner, PAUSED_ANNOTATION) or is_annotated(owner, DRY_RUN_ANNOTATION):
            return False  # nothing is created meanwhile
        annotations = owner["metadata"].get("annotations") or {}
        return self._needs_finalizers or PROVIDERS_ANNOTATION in annotations

    @property
    def reconcile_timeout(self) -> timedelta:
        """The time limit of one reconcile."""
        return timedelta(minutes=2) + timedelta(minutes=1) * len(self.declared.providers)


def compile_pipelines(box: OperatorBox, pool: ProviderPool) -> Mapping[str, Pipeline]:
    """Compile the pipelines of a box, by the file's names for its custom resources.

    Raises:
        konverge.errors.KonvergeError: A pipeline cannot be compiled.
    """
    return {name: Pipeline(box, name, pool) for name in box.spec.crds}


def _may_leave_objects(declared: CustomResource, scopes: Mapping[GroupVersionKind, str]) -> bool:
    """Tell whether the garbage collector may leave some of its objects: those in another namespace or in none.

    A kind that the box does not define is assumed to be cluster-scoped.
    """
    if declared.resource.scope == "Cluster":
        return False
    for resource in declared.resources:
        kind = KINDS[resource.kind]
        is_namespaced = kind.namespaced if kind.gvk is not None else scopes.get(resource.gvk) == "Namespaced"
        if resource.to_namespaces or resource.object["metadata"].get("namespace") or not is_namespaced:
            return True
    return False


def _collect_kinds(box: OperatorBox) -> dict[str, GroupVersionKind]:
    return {name: declared.resource.gvk for name, declared in box.spec.crds.items()}

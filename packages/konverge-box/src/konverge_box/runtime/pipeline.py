"""All steps of one custom resource, compiled once of what the file declares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from konverge.kube import GroupVersionKind, Object
from konverge_box.calls import ExternalCalls
from konverge_box.expressions.schedules import parse_period
from konverge_box.file import KINDS, CustomResource, OperatorBox
from konverge_box.providers import PROVIDERS_ANNOTATION, ProviderPool, ProvidersStep
from konverge_box.steps import Scope
from konverge_box.steps.children import ChildrenReader
from konverge_box.steps.deletion import Deletion
from konverge_box.steps.mutation import Mutations
from konverge_box.steps.normalization import Normalization
from konverge_box.steps.observations import Observations
from konverge_box.steps.resource_groups import ResourceGroups
from konverge_box.steps.status_fields import StatusFields
from konverge_box.steps.validation import Validation

__all__ = ["Pipeline", "compile_pipelines"]


_SOONEST = timedelta(seconds=10)
"""However short an answer is kept, it is not asked for more often than that without another reason."""


class Pipeline:
    """The steps of one custom resource. It keeps nothing from one pass to the next.

    Args:
        box: The box.
        name: What the file calls the custom resource.
        pool: The providers of the process.

    Raises:
        konverge.errors.KonvergeError: A step cannot be compiled: an extra or a provider is not installed, or loading
            has let through what cannot be.
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
        self.normalization = Normalization(declared.normalize, f"{where}.normalize")
        self.mutations = Mutations(declared.mutation, f"{where}.mutation")
        self.validation = Validation(declared.validation, f"{where}.validation")
        self.can_deny = any(rule.action == "deny" for rule in declared.validation)
        self.can_warn = any(rule.action == "warn" for rule in declared.validation)
        self.observations = Observations(declared.cross, f"{where}.cross", _collect_kinds(box))
        # No event tells that an answer has changed: when it is not kept any more, the pass comes again.
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
        """The object as all steps after the first two see it.

        Args:
            scope: What the steps see of the object as it was read.
            obj: That object.

        Raises:
            konverge_box.steps.StepError: A value cannot be what the file says.
            konverge_box.expressions.ExpressionError: An expression has no value.
        """
        return self.mutations.apply_rules(scope, self.normalization.normalize_object(scope, obj)).object

    def find_next_change(self, now: datetime) -> datetime | None:
        """When a step may come to something else although nothing else changes; None if time does not matter."""
        timed = (self.mutations, self.validation, self.observations, self.calls, self.providers, self.status_fields)
        moments = [step.find_next_change(now) for step in timed]
        return min((moment for moment in moments if moment is not None), default=None)

    @property
    def finalizers(self) -> tuple[str, ...]:
        """What holds an object until the box has cleaned up after it.

        Also where nothing needs it now: objects may have it from an earlier file, and somebody has to take it away.
        """
        return self.declared.finalizers or (f"{self.gvk.group or 'core.konverge.dev'}/box",)

    def needs_finalizers(self, owner: Object) -> bool:
        """Tell whether an object has to have them before its pass; not when the cluster cleans up after it by itself.

        Args:
            owner: The object: what an earlier file has made for it outside of the cluster is recorded there.
        """
        annotations = owner["metadata"].get("annotations") or {}
        return self._needs_finalizers or PROVIDERS_ANNOTATION in annotations

    @property
    def reconcile_timeout(self) -> timedelta:
        """How long one pass may take."""
        return timedelta(minutes=2) + timedelta(minutes=1) * len(self.declared.providers)


def compile_pipelines(box: OperatorBox, pool: ProviderPool) -> Mapping[str, Pipeline]:
    """The pipelines of a box, by the names that the file gives its custom resources.

    Raises:
        konverge.errors.KonvergeError: One of them cannot be compiled.
    """
    return {name: Pipeline(box, name, pool) for name in box.spec.crds}


def _may_leave_objects(declared: CustomResource, scopes: Mapping[GroupVersionKind, str]) -> bool:
    """Tell whether it may make objects that do not go with it: in other namespaces than its own, or in none.

    Of kinds that nobody knows here it is to be expected.
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

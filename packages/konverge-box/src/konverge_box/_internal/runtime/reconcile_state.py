"""The values of one reconcile: its inputs, which stay the same, and the state that its steps build up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from konverge._internal.component import Component
from konverge._internal.kube import Condition, Object
from konverge._internal.mutation import copy_json
from konverge._internal.operator import OwnerContext
from konverge.clock import Entropy
from konverge_box._internal.calls import Caller
from konverge_box._internal.expressions import EvaluationEnvironment
from konverge_box._internal.expressions.evaluation import WakeUps
from konverge_box._internal.providers import DispatchResult
from konverge_box._internal.runtime.pipeline import Pipeline
from konverge_box._internal.steps import Scope, build_scope
from konverge_box._internal.steps.resource_plan import ResourcePlan
from konverge_box._internal.steps.validation import RuleViolations

__all__ = ["ReconcileInputs", "ReconcileState", "StepResults"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileInputs:
    """The inputs of one reconcile.

    Args:
        pipeline: The compiled steps.
        ctx: The context of the reconcile. The conditions of this reconcile are set on its owner.
        caller: Sends external calls.
        entropy: The source of random values.
        is_unique: Tells whether no other object has a value in the field of a path.
        now: The time of the reconcile: one moment for all its expressions.
        foreign_conditions: Condition types and status fields of the owner that another client writes, as far as
            earlier reconciles know.
        is_dry_run: Tells whether the reconcile only predicts its effects. Then no provider is called.
    """

    pipeline: Pipeline
    ctx: OwnerContext
    caller: Caller
    entropy: Entropy
    is_unique: Callable[[str, Any], bool]
    now: datetime
    foreign_conditions: frozenset[str] = frozenset()
    is_dry_run: bool = False


@dataclass(slots=True)
class StepResults:
    """The results of the steps so far. Exactly one step, or one pair of steps, sets each of them.

    Args:
        violations: The broken rules, by `validation`.
        plan: The objects that should exist, by `forEach`.
        components: The reconciled groups, by `onCreate` and `onReconcile`.
        provider_result: The state of the providers' items, by `providers`.
        status_without_fields: The status before the declared fields were set, by `status`.
        foreign_conditions: Further condition types and status fields that another client writes, by `report`.
    """

    violations: RuleViolations | None = None
    plan: ResourcePlan | None = None
    components: list[Component] = field(default_factory=list)
    provider_result: DispatchResult | None = None
    status_without_fields: Object | None = None
    foreign_conditions: frozenset[str] = frozenset()

    def list_parts(self, owner: Object) -> list[tuple[str, Condition]]:
        """List the names and conditions that Ready summarizes."""
        parts = [(component.name, component.condition(owner)) for component in self.components]
        if self.provider_result is not None:
            parts += [
                (condition.type.removesuffix("Ready"), condition) for condition in self.provider_result.conditions
            ]
        return parts


@dataclass(slots=True)
class ReconcileState:
    """The state of one reconcile, which its steps build up.

    Args:
        object: The canonical object.
        scope: The data that expressions of the next step can read.
        results: The results of the steps so far.
        failure: The first error, which stopped the steps; None without one.
        notes: Problems that stop nothing.
        requeue_after: The delay until the next reconcile; None without a request.
        is_paused: The custom resource is paused, so that no step ran.
    """

    object: Object
    scope: Scope
    results: StepResults = field(default_factory=StepResults)
    failure: Exception | None = None
    notes: list[str] = field(default_factory=list)
    requeue_after: timedelta | None = None
    is_paused: bool = False

    @classmethod
    def start(cls, inputs: ReconcileInputs) -> ReconcileState:
        """Return the state before the first step."""
        # Steps see the object as it was read, while conditions are staged on the owner.
        obj = copy_json(inputs.ctx.owner)
        environment = EvaluationEnvironment(
            now=inputs.now, entropy=inputs.entropy, is_unique=inputs.is_unique, wake_ups=WakeUps()
        )
        return cls(obj, build_scope(obj, environment))

    def replace_object(self, obj: Object) -> None:
        """Replace the canonical object, so that all later steps see its spec and metadata."""
        self.object = obj
        self.scope = self.scope.with_names(metadata=obj.get("metadata", {}), spec=obj.get("spec", {}))

    def request_requeue(self, after: timedelta | None) -> None:
        """Request another reconcile after a delay. The shortest delay wins; None requests nothing."""
        if after is not None and (self.requeue_after is None or after < self.requeue_after):
            self.requeue_after = after

"""The four categories of kinds and their lifecycle handlers (specification, "Status Model").

==============  ==========================  =======  ===========
category        converging                  grace    suspendable
==============  ==========================  =======  ===========
static          no: ready once it exists    no       no
workload        Healthy, Creating, …        yes      yes
task            Completed, TaskRunning, …   no       yes
integration     Operational, …              yes      yes
==============  ==========================  =======  ===========

A kind derives from its category and defines its defaults as static methods, ``default_…``. They are public: a function
of the author can call them first and then refine the result.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias, TypeVar, Unpack

from konverge._internal.kube import Object
from konverge._internal.mutation import Mutation, Mutator
from konverge._internal.primitives.primitive import CommonOptions, DesiredObject, LifecycleHandlers, Primitive
from konverge._internal.primitives.resource_protocol import (
    Convergence,
    Grace,
    GraceStatus,
    Operation,
    Suspension,
    SuspensionStatus,
)

__all__ = [
    "ConvergingHandler",
    "GraceHandler",
    "IntegrationKind",
    "StaticKind",
    "SuspensionHandler",
    "TaskKind",
    "WorkloadKind",
]

M = TypeVar("M", bound=Mutator)

ConvergingHandler: TypeAlias = Callable[[Object, Operation], Convergence]
GraceHandler: TypeAlias = Callable[[Object], Grace]
SuspensionHandler: TypeAlias = Callable[[Object], Suspension]


class StaticKind(Primitive[M]):
    """A kind that is ready once it exists; suspension does not change it.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are added.
        mutations: One mutation or several, in order.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        mutations: Mutation[M] | Iterable[Mutation[M]] = (),
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(obj, mutations=mutations, handlers=LifecycleHandlers(), **common)


class _SuspendableKind(Primitive[M]):
    """A kind that has a converging status and can be suspended."""

    deletes_on_suspend_by_default: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """Return the converging status of the live object."""

    @staticmethod
    def default_suspend(mutator: M) -> None:
        """Record the edits that suspend the desired object (default: none)."""

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """Return the progress of the suspension (default: Suspended at once)."""
        return Suspension(SuspensionStatus.SUSPENDED, "Resource needs no suspension")


class TaskKind(_SuspendableKind[M]):
    """A kind that runs to completion. It has no grace status.

    After the grace period it counts as Down if no other resource of the component has a grace status.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are added.
        mutations: One mutation or several, in order.
        converging_status: A function in place of `default_converging_status`.
        suspend: A function in place of `default_suspend`.
        suspension_status: A function in place of `default_suspension_status`.
        delete_on_suspend: A value in place of the kind's `deletes_on_suspend_by_default`.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        mutations: Mutation[M] | Iterable[Mutation[M]] = (),
        converging_status: ConvergingHandler | None = None,
        suspend: Callable[[M], None] | None = None,
        suspension_status: SuspensionHandler | None = None,
        delete_on_suspend: bool | None = None,
        **common: Unpack[CommonOptions],
    ) -> None:
        handlers = LifecycleHandlers(
            converging_status=converging_status or self.default_converging_status,
            suspend=suspend or self.default_suspend,
            suspension_status=suspension_status or self.default_suspension_status,
            delete_on_suspend=self.deletes_on_suspend_by_default if delete_on_suspend is None else delete_on_suspend,
        )
        super().__init__(obj, mutations=mutations, handlers=handlers, **common)


class _GradedKind(_SuspendableKind[M]):
    """A kind that stays, has a converging status and a grace status, and can be suspended.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are added.
        mutations: One mutation or several, in order.
        converging_status: A function in place of `default_converging_status`.
        grace_status: A function in place of `default_grace_status`.
        suspend: A function in place of `default_suspend`.
        suspension_status: A function in place of `default_suspension_status`.
        delete_on_suspend: A value in place of the kind's `deletes_on_suspend_by_default`.
        **common: The guard, the extractors, the data cells and the other `CommonOptions`.
    """

    def __init__(
        self,
        obj: DesiredObject,
        *,
        mutations: Mutation[M] | Iterable[Mutation[M]] = (),
        converging_status: ConvergingHandler | None = None,
        grace_status: GraceHandler | None = None,
        suspend: Callable[[M], None] | None = None,
        suspension_status: SuspensionHandler | None = None,
        delete_on_suspend: bool | None = None,
        **common: Unpack[CommonOptions],
    ) -> None:
        handlers = LifecycleHandlers(
            converging_status=converging_status or self.default_converging_status,
            grace_status=grace_status or self.default_grace_status,
            suspend=suspend or self.default_suspend,
            suspension_status=suspension_status or self.default_suspension_status,
            delete_on_suspend=self.deletes_on_suspend_by_default if delete_on_suspend is None else delete_on_suspend,
        )
        super().__init__(obj, mutations=mutations, handlers=handlers, **common)

    @staticmethod
    def default_grace_status(live: Object) -> Grace:
        """Return the severity after the grace period (default: Healthy)."""
        return Grace(GraceStatus.HEALTHY)


class WorkloadKind(_GradedKind[M]):
    """A kind that keeps pods or processes running: Healthy, Creating, Updating, Scaling or Failing."""


class IntegrationKind(_GradedKind[M]):
    """A kind that depends on an outside system: Operational, OperationPending or OperationFailing."""

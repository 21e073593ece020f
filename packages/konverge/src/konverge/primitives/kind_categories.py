"""The four categories of kinds: which lifecycle answers a kind gives (specification, "Status Model").

==============  ==========================  =======  ===========
category        converging                  graded   suspendable
==============  ==========================  =======  ===========
static          no: ready by existing       no       no
workload        Healthy, Creating, …        yes      yes
task            Completed, TaskRunning, …   no       yes
integration     Operational, …              yes      yes
==============  ==========================  =======  ===========

A kind derives from its category and gives its defaults as static methods, ``default_…``. They are public: a function of
the author's own may ask them first and then refine the answer.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, TypeAlias, TypeVar, Unpack

from konverge.kube import Object
from konverge.mutation import Mutation, Mutator
from konverge.primitives.primitive import CommonOptions, DesiredObject, LifecycleHandlers, Primitive
from konverge.primitives.resource_protocol import (
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
    """A kind that is ready by existing; suspension leaves it alone.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are filled in.
        mutations: One or many, in order.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
    """A kind whose live object is judged and which can be suspended."""

    deletes_on_suspend_by_default: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def default_converging_status(live: Object, operation: Operation) -> Convergence:
        """How far the live object is."""

    @staticmethod
    def default_suspend(mutator: M) -> None:
        """Record the edits that suspend the desired object: none."""

    @staticmethod
    def default_suspension_status(live: Object) -> Suspension:
        """How far the live object is suspended: there is nothing to wait for."""
        return Suspension(SuspensionStatus.SUSPENDED, "Resource needs no suspension")


class TaskKind(_SuspendableKind[M]):
    """A kind that runs to completion. It is not graded: late, it is down where nothing else in its component is graded.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are filled in.
        mutations: One or many, in order.
        converging_status: Instead of `default_converging_status`.
        suspend: Instead of `default_suspend`.
        suspension_status: Instead of `default_suspension_status`.
        delete_on_suspend: Instead of the kind's `deletes_on_suspend_by_default`.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
    """A kind that stays, is judged, graded and can be suspended.

    Args:
        obj: The desired baseline; copied. A missing apiVersion and kind are filled in.
        mutations: One or many, in order.
        converging_status: Instead of `default_converging_status`.
        grace_status: Instead of `default_grace_status`.
        suspend: Instead of `default_suspend`.
        suspension_status: Instead of `default_suspension_status`.
        delete_on_suspend: Instead of the kind's `deletes_on_suspend_by_default`.
        **common: Guard, extractors, data cells and the rest of `CommonOptions`.
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
        """How bad it is not to have converged: not at all."""
        return Grace(GraceStatus.HEALTHY)


class WorkloadKind(_GradedKind[M]):
    """A kind that keeps something running; answers Healthy, Creating, Updating, Scaling or Failing."""


class IntegrationKind(_GradedKind[M]):
    """A kind that waits for something outside; answers Operational, OperationPending or OperationFailing."""

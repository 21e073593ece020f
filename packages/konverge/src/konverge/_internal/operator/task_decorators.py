"""The decorators of `Operator` for timers and long-running tasks of owners."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

from konverge._internal.kube import GroupVersionKind
from konverge._internal.operator.function_calls import Reconciler, accepts, is_async, name_function
from konverge._internal.operator.kind_argument import Kind
from konverge._internal.operator.registrations import (
    OperatorRegistrations,
    TaskRegistration,
    list_limit_errors,
    list_time_errors,
)
from konverge._internal.runtime import DEFAULT_TIMEOUT, DEFAULT_WORKERS
from konverge.errors import BuildError

__all__ = ["TaskDecorators"]

T = TypeVar("T")

_DEFAULT_TASK_LIMIT = 1000
_MIN_INTERVAL = timedelta(seconds=0.1)


class TaskDecorators:
    """Registration of functions that run for each owner beside its reconciles."""

    registered: OperatorRegistrations

    def runs_timer(
        self,
        cls: type[T] | GroupVersionKind | str,
        *,
        interval: timedelta,
        initial_delay: timedelta | None = None,
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register a function that runs for each owner of the class again and again; it stays callable.

        ::

            @operator.runs_timer(Mirror, interval=timedelta(minutes=10))
            async def measure(mirror: Mirror, ctx: OwnerContext) -> None:
                ctx.stage(Condition("Fresh", "True", "Measured", await measure_age(mirror)))

        It runs in parallel with the reconciles of the owner, and its reads trigger none. What it stages is written at
        its end; it stages condition types of its own. It does not run for an owner that is being deleted; a run is
        cancelled when its owner is deleted or assigned to another replica. An exception is a Warning event, and the run
        is repeated after a backoff. The intervals begin anew when the operator starts: for fixed times, use a CronJob.

        Args:
            cls: A class or kind that is also registered with `manages` or `reconciles`.
            interval: The time from the end of a run to the next one; a `Result` with ``requeue_after`` replaces it
                once.
            initial_delay: The time before the first run; None for a random time of at most the interval and a minute.
            workers: The number of owners for which the function runs in parallel.
            timeout: The time limit of one run.

        Raises:
            BuildError: The function is not async or has other parameters, or an argument is invalid.
        """
        mistakes = list_limit_errors(workers, timeout) + list_time_errors("interval", interval, least=_MIN_INTERVAL)
        if initial_delay is not None:
            mistakes += list_time_errors("initial_delay", initial_delay, least=timedelta(0))
        return self._build_registrar(
            lambda owner_class, function: TaskRegistration(
                owner_class, function, interval, initial_delay, workers, timeout
            ),
            cls,
            mistakes,
        )

    def runs_task(
        self, cls: type[T] | GroupVersionKind | str, *, limit: int = _DEFAULT_TASK_LIMIT
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register a long-running function that runs for each owner of the class; it stays callable.

        ::

            @operator.runs_task(Mirror)
            async def follow(mirror: Mirror, ctx: OwnerContext) -> None:
                async with connect(mirror.spec.source) as source:
                    async for age in source:
                        ctx.stage(Condition("Fresh", "True", "Measured", age))
                        await ctx.flush_status()

        It starts when the owner is created or the operator starts, and is cancelled when the owner is deleted, when the
        owner is assigned to another replica and when the operator stops. A change of the spec cancels it and starts it
        anew with the changed owner. A function that returns None is complete until such a change; a `Result` with
        ``requeue_after`` runs it again. An exception is a Warning event, and the function runs again after a backoff.

        Args:
            cls: A class or kind that is also registered with `manages` or `reconciles`.
            limit: The number of owners for which the function runs at the same time; further owners wait.

        Raises:
            BuildError: The function is not async or has other parameters, or the limit is invalid.
        """
        mistakes = [mistake.replace("workers:", "limit:", 1) for mistake in list_limit_errors(limit, timedelta.max)]
        return self._build_registrar(
            lambda owner_class, function: TaskRegistration(owner_class, function, None, None, limit, timedelta.max),
            cls,
            mistakes,
        )

    def _build_registrar(
        self, build: Callable[[type[Any], Any], TaskRegistration], kind: Kind, mistakes: list[str]
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        def register(function: Reconciler[T]) -> Reconciler[T]:
            task, errors = build(self.registered.find_class(kind), function), [*mistakes]
            if not is_async(function) or not accepts(function, 2):
                errors.append("expected an async function of the owner and the context, found another one")
            if any((other.cls, other.name) == (task.cls, task.name) for other in self.registered.tasks):
                errors.append(f"{task.cls.__name__} has a timer or task of that name already")
            if errors:
                raise BuildError(f"operator {self.registered.name}: {name_function(function)}", errors)
            self.registered.tasks.append(task)
            return function

        return register

"""`Operator`: what an author registers, as a value."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from konverge.client import Client
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.crd import definition_of
from konverge.errors import BuildError
from konverge.operator.reconciling import ComponentFactory, OwnerPass, Reconciler, components_reconciler
from konverge.runtime import DEFAULT_TIMEOUT, DEFAULT_WORKERS, OwnerKind, Process

__all__ = ["Operator"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Registration:
    cls: type[Any]
    reconciler: Reconciler[Any]
    condition_type: str
    workers: int
    timeout: timedelta


class Operator:
    """The custom resources that one process looks after, and how.

    It holds no state of a run: the same operator can run twice at once, against two clusters.

    Args:
        name: What the operator is called in logs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._registrations: list[_Registration] = []

    @property
    def custom_resources(self) -> tuple[type[Any], ...]:
        """The registered classes, in order; `konverge.crd.crd_manifest` has their definitions."""
        return tuple(registration.cls for registration in self._registrations)

    def manages(
        self,
        cls: type[T],
        *factories: ComponentFactory[T],
        condition_type: str = "Ready",
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """Reconcile these components for each owner of the class: the usual case.

        In order, on one context; a component that fails does not stop the others. The status is written once, with a
        condition that sums up the components'. An owner that is being deleted is left alone: its objects go with it.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            *factories: Each builds one component for an owner.
            condition_type: The condition that sums up.
            workers: How many owners at once.
            timeout: How long one pass over one owner may take.

        Raises:
            BuildError: The class is no custom resource, or registered already, or there is no factory.
        """
        mistakes = [] if factories else ["manages needs at least one function that builds a component"]
        self._register(
            _Registration(cls, components_reconciler(factories, condition_type), condition_type, workers, timeout),
            mistakes,
        )

    def reconciles(
        self, cls: type[T], *, workers: int = DEFAULT_WORKERS, timeout: timedelta = DEFAULT_TIMEOUT
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register an author's own reconcile function for the owners of the class; it stays callable.

        ::

            @operator.reconciles(WebApp)
            async def reconcile(app: WebApp, ctx: ReconcileContext) -> Result | None:
                async with ctx.flushing_status():
                    await frontend(app).reconcile(ctx)

        Returning is success, and `Result` can ask for another pass; `konverge.errors.TerminalError` is not tried again
        before the owner or one of its objects changes; any other exception is, after a back-off. An owner that is being
        deleted is left alone: an operator has no finalizers of its own.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            workers: How many owners at once.
            timeout: How long one pass over one owner may take before it is cancelled.

        Raises:
            BuildError: The class is no custom resource, or registered already.
        """

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            self._register(_Registration(cls, reconciler, "Ready", workers, timeout), [])
            return reconciler

        return register

    async def run(
        self,
        client: Client,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        namespace: str = "",
        grace: timedelta = timedelta(seconds=30),
        stops_on_signals: bool = False,
    ) -> None:
        """Look after the owners until cancelled or told to stop.

        Cancelling ends it at once; passes under way are cancelled and their requests with them.

        Args:
            client: The cluster; it stays open.
            clock: The time; the machine's when not given.
            entropy: The randomness; the machine's when not given.
            namespace: Only owners and objects of this namespace; all when not given.
            grace: How long passes under way may take to end after the first signal.
            stops_on_signals: Whether SIGTERM and SIGINT stop it: the first lets passes under way end, a second one
                does not. Only in a program's main thread.

        Raises:
            ConfigurationError: Nothing is registered.
            KonvergeError: The cluster refuses what the operator cannot work without, for example watching the owners.
        """
        clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
        process = Process(
            [_owner_kind(registration, clock) for registration in self._registrations],
            client,
            clock=clock,
            entropy=entropy,
            namespace=namespace,
            grace=grace,
        )
        await process.run(stops_on_signals=stops_on_signals)

    def _register(self, registration: _Registration, mistakes: list[str]) -> None:
        definition = definition_of(registration.cls)
        taken = {definition_of(cls).gvk.group_kind for cls in self.custom_resources}
        if definition.gvk.group_kind in taken:
            mistakes = [*mistakes, f"{definition.gvk.kind} is registered already; one kind has one reconcile"]
        if mistakes:
            raise BuildError(f"operator {self.name}", mistakes)
        self._registrations.append(registration)


def _owner_kind(registration: _Registration, clock: Clock) -> OwnerKind:
    definition = definition_of(registration.cls)
    return OwnerKind(
        name=definition.singular,
        gvk=definition.gvk,
        reconcile=OwnerPass(registration.cls, registration.reconciler, clock, registration.condition_type),
        workers=registration.workers,
        timeout=registration.timeout,
    )

"""`Operator`: what an author registers, as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from konverge.cache import CacheOptions
from konverge.client import Client
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.crd import decode, definition_of
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object
from konverge.kube.names import label_key_mistakes
from konverge.operator.kinds import Kind, kind_of
from konverge.operator.options import RunOptions
from konverge.operator.reconciling import (
    ComponentFactory,
    OwnerPass,
    Reconciler,
    component_kinds,
    components_reconciler,
)
from konverge.runtime import (
    DEFAULT_TIMEOUT,
    DEFAULT_WORKERS,
    Finalizer,
    MapToOwners,
    OwnerKind,
    Predicate,
    Process,
    WatchedKind,
)

__all__ = ["Operator"]

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]


@dataclass(frozen=True, slots=True)
class _Registration:
    cls: type[Any]
    reconciler: Reconciler[Any]
    condition_type: str
    workers: int
    timeout: timedelta
    when: Predicate | None
    factories: tuple[ComponentFactory[Any], ...] = ()


class Operator:
    """The custom resources that one process looks after, and how.

    It holds no state of a run: the same operator can run twice at once, against two clusters.

    Args:
        name: What the operator is called in logs.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._registrations: list[_Registration] = []
        self._finalizers: dict[type[Any], tuple[str, Reconciler[Any]]] = {}
        self._watches: list[WatchedKind] = []
        self._indexes: dict[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]] = {}
        self._cache_options: dict[GroupVersionKind, CacheOptions] = {}

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
        when: Predicate | None = None,
    ) -> None:
        """Reconcile these components for each owner of the class: the usual case.

        In order, on one context; a component that fails does not stop the others. The status is written once, with a
        condition that sums up the components'. An owner that is being deleted is left alone, but for what `finalizes`
        registers: its objects go with it.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            *factories: Each builds one component for an owner.
            condition_type: The condition that sums up.
            workers: How many owners at once.
            timeout: How long one pass over one owner may take.
            when: Which of an owner's own changes call for a pass; None for all.

        Raises:
            BuildError: The class is no custom resource, or registered already, or there is no factory.
        """
        mistakes = [] if factories else ["manages needs at least one function that builds a component"]
        reconciler = components_reconciler(factories, condition_type)
        self._register(
            _Registration(cls, reconciler, condition_type, workers, timeout, when, tuple(factories)), mistakes
        )

    def reconciles(
        self,
        cls: type[T],
        *,
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        when: Predicate | None = None,
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register an author's own reconcile function for the owners of the class; it stays callable.

        ::

            @operator.reconciles(WebApp)
            async def reconcile(app: WebApp, ctx: OwnerContext) -> Result | None:
                async with ctx.flushing_status():
                    await frontend(app).reconcile(ctx)

        Returning is success, and `Result` can ask for another pass; `konverge.errors.TerminalError` is not tried again
        before the owner or one of its objects changes; any other exception is, after a back-off. An owner that is being
        deleted is left alone, but for what `finalizes` registers.

        Args:
            cls: A class under `konverge.crd.custom_resource`.
            workers: How many owners at once.
            timeout: How long one pass over one owner may take before it is cancelled.
            when: Which of an owner's own changes call for a pass, for example `generation_changed`; None for all. Those
                of the objects that it controls or reads always do.

        Raises:
            BuildError: The class is no custom resource, or registered already.
        """

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            self._register(_Registration(cls, reconciler, "Ready", workers, timeout, when), [])
            return reconciler

        return register

    def finalizes(self, cls: type[T], *, name: str = "") -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register what has to be done before an owner of the class may go: what the cluster cannot clean up itself.

        Every owner gets the finalizer before its first pass. Once it is being deleted, the function is called until it
        returns None; a `Result` says that it is not done yet, an exception is tried again after a back-off. Then the
        finalizer is taken away. It must be safe to call again.

        Args:
            cls: A class that is also under `manages` or `reconciles`.
            name: The finalizer, for example ``demo.example.com/bucket``; the class's group and the operator's name when
                not given.

        Raises:
            BuildError: The class is no custom resource or has a finalizer already, or the name is none.
        """
        finalizer = name or f"{definition_of(cls).gvk.group}/{self.name}"

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            mistakes = [f'finalizer "{finalizer}": {mistake}' for mistake in label_key_mistakes(finalizer)]
            if "/" not in finalizer:
                mistakes.append(f'finalizer "{finalizer}": expected a domain and a name, as in example.com/cleanup')
            if cls in self._finalizers:
                mistakes.append(f"{cls.__name__} has a finalizer already")
            if mistakes:
                raise BuildError(f"operator {self.name}", mistakes)
            self._finalizers[cls] = finalizer, reconciler
            return reconciler

        return register

    def watches(
        self, kind: Kind, *, wakes: type[Any], when: Predicate | None = None
    ) -> Callable[[MapToOwners], MapToOwners]:
        """Register which owners a change concerns of an object that they neither control nor read.

        What owners control, and what their passes read, needs no watch: its changes wake them already.

        ::

            @operator.watches("v1/Secret", wakes=WebApp)
            def users_of_the_secret(change: Change) -> Iterable[ObjectKey]:
                return change.by_index(kind_of(WebApp), "secret", change.key.name)

        The function is called in the event loop for each change: it must not block. A kind that the cluster does not
        serve yet is watched as soon as it does. All objects of the kind are held in memory: `caches` narrows them.

        Args:
            kind: The kind to watch.
            wakes: The class of the owners.
            when: Which changes count; None for all.

        Raises:
            ValueError: The kind is none.
            BuildError: The class is no custom resource.
        """
        gvk, owner = kind_of(kind), definition_of(wakes).gvk

        def register(owners_of: MapToOwners) -> MapToOwners:
            self._watches.append(WatchedKind(gvk, owner, owners_of, when))
            return owners_of

        return register

    def index(self, kind: Kind, name: str) -> Callable[[IndexFunction[Any]], IndexFunction[Any]]:
        """Register an index of the cached objects of a kind: the function names the values an object is found under.

        ::

            @operator.index(WebApp, "secret")
            def secret_of(app: WebApp) -> Iterable[str]:
                return [app.spec.secret_name]

        Args:
            kind: The kind. The function gets instances of a class, plain objects of any other kind. One that cannot be
                decoded, or on which the function fails, is under no value.
            name: What the index is called in `CachedClient.by_index` and `Change.by_index`.

        Raises:
            ValueError: The kind is none.
            BuildError: The kind has an index of that name.
        """
        gvk = kind_of(kind)
        cls = kind if isinstance(kind, type) else None

        def register(values_of: IndexFunction[Any]) -> IndexFunction[Any]:
            if (gvk, name) in self._indexes:
                raise BuildError(f"operator {self.name}", [f'{gvk.kind} has an index "{name}" already'])
            self._indexes[gvk, name] = lambda obj: list(values_of(obj if cls is None else decode(cls, obj)))
            return values_of

        return register

    def caches(self, kind: Kind, options: CacheOptions) -> None:
        """Say what of a kind is held in memory, where that is not everything that somebody here owns or reads.

        Args:
            kind: The kind.
            options: Selectors, namespaces, metadata only, and a function that makes objects smaller.

        Raises:
            ValueError: The kind is none.
            BuildError: It was said before.
        """
        gvk = kind_of(kind)
        if gvk in self._cache_options:
            raise BuildError(f"operator {self.name}", [f"what is cached of {gvk.kind} has been said already"])
        self._cache_options[gvk] = options

    async def run(
        self,
        client: Client,
        options: RunOptions | None = None,
        *,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        stops_on_signals: bool = False,
    ) -> None:
        """Look after the owners until cancelled or told to stop.

        Cancelling ends it at once; passes under way are cancelled and their requests with them.

        Args:
            client: The cluster; it stays open.
            options: How to run; the defaults of `RunOptions` when not given.
            clock: The time; the machine's when not given.
            entropy: The randomness; the machine's when not given.
            stops_on_signals: Whether SIGTERM and SIGINT stop it: the first lets passes under way end, a second one
                does not. Only in a program's main thread.

        Raises:
            ConfigurationError: Nothing is registered.
            BuildError: A finalizer or a watch is for a class that is not registered.
            KonvergeError: The cluster refuses what the operator cannot work without, for example watching the owners.
        """
        options = options or RunOptions()
        clock, entropy = clock or SystemClock(), entropy or SystemEntropy()
        self._check_classes()
        process = Process(
            [self._owner_kind(registration, clock) for registration in self._registrations],
            client,
            clock=clock,
            entropy=entropy,
            namespaces=options.namespaces,
            grace=options.grace,
            watches=self._watches,
            indexes=self._indexes,
            cache_options=self._cache_options,
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

    def _check_classes(self) -> None:
        registered = {definition_of(cls).gvk for cls in self.custom_resources}
        mistakes = [
            f"{cls.__name__} has a finalizer, and nothing reconciles it"
            for cls in self._finalizers
            if definition_of(cls).gvk not in registered
        ]
        mistakes += [
            f"a watch of {watch.gvk} wakes {watch.owner.kind}, and nothing reconciles that"
            for watch in self._watches
            if watch.owner not in registered
        ]
        if mistakes:
            raise BuildError(f"operator {self.name}", mistakes)

    def _owner_kind(self, registration: _Registration, clock: Clock) -> OwnerKind:
        cls, factories = registration.cls, registration.factories
        definition = definition_of(cls)
        finalizer: Finalizer | None = None
        if cls in self._finalizers:
            name, reconciler = self._finalizers[cls]
            finalizer = Finalizer(name, OwnerPass(cls, reconciler, clock, registration.condition_type))
        return OwnerKind(
            name=definition.singular,
            gvk=definition.gvk,
            reconcile=OwnerPass(cls, registration.reconciler, clock, registration.condition_type),
            workers=registration.workers,
            timeout=registration.timeout,
            finalizer=finalizer,
            when=registration.when,
            kinds_of=(lambda owner: component_kinds(cls, factories, owner)) if factories else None,
        )

"""`Operator`: what an author registers, as a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from konverge.cache import CacheOptions
from konverge.client import Client
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.crd import decode, find_definition
from konverge.errors import BuildError
from konverge.kube import Object
from konverge.kube.name_validation import validate_dns_label, validate_label_key
from konverge.operator.author_reconciler import Reconciler
from konverge.operator.component_factories import ComponentFactories, ComponentFactory
from konverge.operator.kind_argument import Kind, kind_of
from konverge.operator.owner_context import Companion
from konverge.operator.rbac_rules import ResourceAccess
from konverge.operator.registrations import FinalizerRegistration, OperatorRegistrations, OwnerRegistration
from konverge.operator.run_options import RunOptions
from konverge.runtime import DEFAULT_TIMEOUT, DEFAULT_WORKERS, MapToOwners, Predicate, WatchedKind

__all__ = ["Operator"]

T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]


class Operator:
    """The custom resources that one process looks after, and how.

    It holds no state of a run: the same operator can run twice at once, against two clusters. Beside the methods here,
    ``validates``, ``defaults`` and ``converts`` are decorators for webhooks
    (`konverge.operator.webhook_registry.WebhookRegistry`).

    Args:
        name: What the operator is called: in logs and events, and by default as Lease, role and webhook configuration.
        adopt: Whether components take over objects that exist already and are not theirs. With False they are
            ``Blocked`` and name who has the object. The option `konverge.options.adopt` decides for one resource.

    Raises:
        BuildError: The name is no DNS label (lower case letters, digits, ``-``).
    """

    def __init__(self, name: str, *, adopt: bool = True) -> None:
        if validate_dns_label(name):
            expected = "expected a DNS label (63 of a-z, 0-9 and '-' at most, no '-' at an end), as in 'web-shop'"
            raise BuildError(f'operator "{name}"', [f"its name: {expected}, found {name!r}"])
        self.name = name
        self.registered = OperatorRegistrations(name, adopt)
        """What was registered so far."""
        # Decorators for functions that the API server asks before it stores an object, or to get another version of it.
        self.validates = self.registered.webhooks.validates
        self.defaults = self.registered.webhooks.defaults
        self.converts = self.registered.webhooks.converts

    @property
    def custom_resources(self) -> tuple[type[Any], ...]:
        """The registered classes, in order."""
        return tuple(registration.cls for registration in self.registered.classes)

    @property
    def defined_resources(self) -> tuple[type[Any], ...]:
        """Those of which the operator has the definition: `konverge.crd.crd_manifest` makes it."""
        return tuple(cls for cls in self.custom_resources if not find_definition(cls).is_external)

    def manages(
        self,
        cls: type[T],
        *factories: ComponentFactory[T],
        condition_type: str = "Ready",
        retired: Sequence[str] = (),
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
            retired: The condition types of components that the operator once had, to be taken off the owners. Nothing
                on an owner tells whose a condition is, so an operator says which were its own.
            workers: How many owners at once.
            timeout: How long one pass over one owner may take.
            when: Which of an owner's own changes call for a pass; None for all.

        Raises:
            BuildError: The class is no custom resource, or registered already, or there is no factory, or one twice.
        """
        mistakes = [] if factories else ["manages needs at least one function that builds a component"]
        mistakes += [
            f"{getattr(factory, '__name__', factory)} is given again: its two components would share their objects"
            for place, factory in enumerate(factories)
            if factory in factories[:place]
        ]
        if isinstance(retired, str):
            mistakes.append(f"retired: expected a list of condition types, found the text {retired!r}")
        components = ComponentFactories(factories, condition_type, tuple(retired))
        self._register(OwnerRegistration(cls, components, condition_type, workers, timeout, when), mistakes)

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
            self._register(OwnerRegistration(cls, reconciler, "Ready", workers, timeout, when), [])
            return reconciler

        return register

    def finalizes(
        self,
        cls: type[T],
        *,
        name: str = "",
        others: Sequence[str] = (),
        is_needed: Callable[[Object], bool] | None = None,
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register what has to be done before an owner of the class may go: what the cluster cannot clean up itself.

        Every owner gets the finalizer before its first pass. Once it is being deleted, the function is called until it
        returns None; a `Result` says that it is not done yet, an exception is tried again after a back-off. Then the
        finalizer is taken away. It must be safe to call again.

        Args:
            cls: A class that is also under `manages` or `reconciles`.
            name: The finalizer, for example ``demo.example.com/bucket``; the class's group and the operator's name when
                not given.
            others: Further finalizers, which are put on and taken away together with it.
            is_needed: Tells of an owner, as it was read, whether it gets the finalizer before its next pass; None for
                every owner. An owner that has it keeps it until its end, whatever this says by then.

        Raises:
            BuildError: The class is no custom resource or has a finalizer already, or the name is none.
        """
        finalizers = (name or f"{find_definition(cls).gvk.group}/{self.name}", *others)

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            mistakes = []
            for finalizer in finalizers:
                mistakes += [f'finalizer "{finalizer}": {mistake}' for mistake in validate_label_key(finalizer)]
                if "/" not in finalizer:
                    mistakes.append(f'finalizer "{finalizer}": expected a domain and a name, as in example.com/cleanup')
            if cls in self.registered.finalizers:
                mistakes.append(f"{cls.__name__} has a finalizer already")
            if mistakes:
                raise BuildError(f"operator {self.name}", mistakes)
            self.registered.finalizers[cls] = FinalizerRegistration(finalizers, reconciler, is_needed)
            return reconciler

        return register

    def watches(
        self, kind: Kind, *, requeues: type[Any], when: Predicate | None = None
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
            requeues: The class of the owners.
            when: Which changes count; None for all.

        Raises:
            ValueError: The kind is none.
            BuildError: The class is no custom resource.
        """
        gvk, owner = kind_of(kind), find_definition(requeues).gvk

        def register(owners_of: MapToOwners) -> MapToOwners:
            self.registered.watches.append(WatchedKind(gvk, owner, owners_of, when))
            return owners_of

        return register

    def index(self, kind: Kind, name: str) -> Callable[[IndexFunction[Any]], IndexFunction[Any]]:
        """Register an index of the cached objects of a kind: the function names the values an object is found under.

        ::

            @operator.index(WebApp, "secret")
            def name_params_in_errors(app: WebApp) -> Iterable[str]:
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
            if (gvk, name) in self.registered.indexes:
                raise BuildError(f"operator {self.name}", [f'{gvk.kind} has an index "{name}" already'])
            self.registered.indexes[gvk, name] = lambda obj: list(values_of(obj if cls is None else decode(cls, obj)))
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
        if gvk in self.registered.cache_options:
            raise BuildError(f"operator {self.name}", [f"what is cached of {gvk.kind} has been said already"])
        self.registered.cache_options[gvk] = options

    def uses(self, kind: Kind, *verbs: str, subresource: str = "", plural: str = "") -> None:
        """Say what an author's own functions do with objects of a kind, so that `konverge rbac` can grant it.

        What components do is derived, and so is what `watches` needs.

        Args:
            kind: The kind.
            *verbs: For example ``get``, ``list``, ``watch``; `konverge.operator.READ` has these three.
            subresource: For example ``scale``.
            plural: The kind's plural, where the API's rule for plurals does not give it.

        Raises:
            ValueError: The kind is none, or there is no verb.
        """
        named = kind if isinstance(kind, type) else kind_of(kind)
        self.registered.uses.append(ResourceAccess.of(named, verbs, plural=plural, subresource=subresource))

    def runs_in_background(self, companion: Companion) -> None:
        """Have something run beside the controllers, for as long as they do: a pool of connections, a watcher of files.

        Args:
            companion: Called once a run; what it answers is entered before the owners are listed, and left after the
                last pass has ended.
        """
        self.registered.companions.append(companion)

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
            konverge.errors.StartError: The cluster refuses what the operator cannot work without, for example watching
                the owners, and `RunOptions.start_timeout` has passed.
        """
        from konverge.operator.process_builder import build_process  # with servers and all: not for who only declares

        process = build_process(
            self.registered,
            client,
            options or RunOptions(),
            clock=clock or SystemClock(),
            entropy=entropy or SystemEntropy(),
        )
        await process.run(stops_on_signals=stops_on_signals)

    def _register(self, registration: OwnerRegistration, errors: list[str]) -> None:
        definition = find_definition(registration.cls)
        taken = {find_definition(cls).gvk.group_kind for cls in self.custom_resources}
        if definition.gvk.group_kind in taken:
            errors = [*errors, f"{definition.gvk.kind} is registered already; one kind has one reconcile"]
        if errors:
            raise BuildError(f"operator {self.name}", errors)
        self.registered.classes.append(registration)

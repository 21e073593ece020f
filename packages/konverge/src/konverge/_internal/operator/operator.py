"""The class `Operator`: the registrations of an author, as a value."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from konverge._internal.cache import CacheOptions
from konverge._internal.client import Client
from konverge._internal.crd import decode, find_definition
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.kube.name_validation import validate_dns_label, validate_label_key
from konverge._internal.operator.component_factories import ComponentFactories, ComponentFactory
from konverge._internal.operator.function_calls import Reconciler
from konverge._internal.operator.kind_argument import Kind, kind_of
from konverge._internal.operator.owner_context import Companion
from konverge._internal.operator.owner_status import StatusFunction
from konverge._internal.operator.rbac_rules import ResourceAccess
from konverge._internal.operator.registrations import (
    FinalizerRegistration,
    OperatorRegistrations,
    OwnerRegistration,
    list_limit_errors,
)
from konverge._internal.operator.run_options import RunOptions
from konverge._internal.operator.task_decorators import TaskDecorators
from konverge._internal.operator.webhook_registry import Defaulter, Validator
from konverge._internal.runtime import DEFAULT_TIMEOUT, DEFAULT_WORKERS, MapToOwners, Predicate, WatchedKind
from konverge._internal.runtime.webhooks import DEFAULT_OPERATIONS, AdmissionOperation, FailurePolicy
from konverge._internal.runtime.webhooks import DEFAULT_TIMEOUT as DEFAULT_WEBHOOK_TIMEOUT
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import BuildError

__all__ = ["Operator"]

S = TypeVar("S")
T = TypeVar("T")

IndexFunction = Callable[[T], Iterable[str]]


class Operator(TaskDecorators):
    """The custom resources that one process reconciles, with their reconcile functions and webhooks.

    An operator has no state of a run: it can run twice at the same time, against two clusters. Besides the methods
    here, ``validates``, ``defaults`` and ``converts`` are decorators for webhooks
    (`operator.webhook_registry.WebhookRegistry`).

    Args:
        name: The name of the operator in logs and events, and the default name of its Lease, role and webhook
            configuration.
        adopt: True lets components adopt objects that exist already and do not belong to them. False blocks such a
            component; its condition names the present controller or managers. The option `konverge.options.adopt`
            decides for one resource.

    Raises:
        BuildError: The name is not a DNS label (lower case letters, digits, ``-``).
    """

    def __init__(self, name: str, *, adopt: bool = True) -> None:
        if validate_dns_label(name):
            expected = "expected a DNS label (63 of a-z, 0-9 and '-' at most, no '-' at an end), as in 'web-shop'"
            raise BuildError(f'operator "{name}"', [f"its name: {expected}, found {name!r}"])
        self.name = name
        self.registered: OperatorRegistrations = OperatorRegistrations(name, adopt)
        """What was registered so far."""

    def validates(
        self,
        cls: type[T] | GroupVersionKind | str,
        *,
        on: Sequence[AdmissionOperation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_WEBHOOK_TIMEOUT,
        labels: str = "",
    ) -> Callable[[Validator[T]], Validator[T]]:
        """Register a function that validates objects of the class before they are stored; it stays callable.

        It returns or yields violations, as sentences or `Violation`; the request is refused with all of them. It can
        raise `runtime.webhooks.AdmissionDeniedError` instead. An object that does not fit its class is refused
        before the function is called, unless it is being deleted: its finalizers must be removable.

        Args:
            cls: A class with the decorator `konverge.crd.custom_resource`, or the name of a kind, for example
                ``"v1/Pod"``: then the function gets the JSON.
            on: The operations; for ``DELETE`` the function gets the deleted object.
            subresources: ``status``, to validate writes of the status too.
            failure_policy: ``Fail`` refuses requests and ``Ignore`` admits them while the webhook does not respond.
            timeout: The time limit of the API server, in whole seconds, 1 to 30.
            labels: A label selector: only for objects that match. Give one for a built-in kind: with ``Fail``, all
                objects that match depend on the operator, also its own Pods.

        Raises:
            BuildError: The class is not a custom resource, or an argument is invalid.
        """
        return self.registered.webhooks.validates(
            self.registered.find_class(cls),
            on=on,
            subresources=subresources,
            failure_policy=failure_policy,
            timeout=timeout,
            labels=labels,
        )

    def defaults(
        self,
        cls: type[T] | GroupVersionKind | str,
        *,
        on: Sequence[AdmissionOperation] = DEFAULT_OPERATIONS,
        subresources: Sequence[str] = (),
        failure_policy: FailurePolicy = "Fail",
        timeout: timedelta = DEFAULT_WEBHOOK_TIMEOUT,
        labels: str = "",
    ) -> Callable[[Defaulter[T]], Defaulter[T]]:
        """Register a function that completes objects of the class before they are validated and stored.

        It modifies the object, or returns another one. Its changes are sent as a patch; fields outside the class stay
        as they are. In the metadata, it can change only labels, annotations and finalizers. It can be called again with
        its own result, and must not change it then.

        Args:
            cls: A class with the decorator `konverge.crd.custom_resource`, or the name of a kind, for example
                ``"v1/Pod"``: then the function gets the JSON.
            on: The operations; ``DELETE`` is not possible.
            subresources: ``status``, to complete writes of the status too.
            failure_policy: ``Fail`` refuses requests and ``Ignore`` admits them while the webhook does not respond.
            timeout: The time limit of the API server, in whole seconds, 1 to 30.
            labels: A label selector: only for objects that match. Give one for a built-in kind: with ``Fail``, all
                objects that match depend on the operator, also its own Pods.

        Raises:
            BuildError: The class is not a custom resource, or an argument is invalid.
        """
        return self.registered.webhooks.defaults(
            self.registered.find_class(cls),
            on=on,
            subresources=subresources,
            failure_policy=failure_policy,
            timeout=timeout,
            labels=labels,
        )

    def converts(
        self, source: type[S], target: type[T]
    ) -> Callable[[Callable[[S], T | Awaitable[T]]], Callable[[S], T | Awaitable[T]]]:
        """Register a function that converts one version of a kind to another; each version is a separate class.

        With functions from each version to the storage version and back, every conversion is possible. In the metadata,
        only labels and annotations can change. The rest, and fields outside both classes (such as the conditions of the
        status), are copied.

        Args:
            source: The class of the version that the function gets.
            target: The class of the version that it returns.

        Raises:
            BuildError: The classes are not two versions of one kind, or have a function already.
        """
        return self.registered.webhooks.converts(source, target)

    @property
    def custom_resources(self) -> tuple[type[Any], ...]:
        """The registered classes, in order."""
        return tuple(registration.cls for registration in self.registered.classes)

    @property
    def defined_resources(self) -> tuple[type[Any], ...]:
        """The classes whose CustomResourceDefinition belongs to the operator (`konverge.crd.crd_manifest`)."""
        return tuple(cls for cls in self.custom_resources if not find_definition(cls).is_external)

    def manages(
        self,
        cls: type[T] | GroupVersionKind | str,
        *parts: ComponentFactory[T] | Reconciler[T],
        status: StatusFunction[T] | None = None,
        condition_type: str = "Ready",
        retired: Sequence[str] = (),
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        when: Predicate | None = None,
    ) -> None:
        """Reconcile these components for each owner of the class; this is the usual case.

        The components share one context and are reconciled in order; a component that fails does not stop the others.
        The status is written once, with a condition that summarizes the components. An owner that is being deleted is
        not reconciled, except by a function of `finalizes`: the garbage collector deletes its objects.

        ::

            operator.manages(Database, storage, migrate, server, status=report)

            async def migrate(database: Database, ctx: OwnerContext) -> Result | None: ...

            def report(database: Database, ctx: OwnerContext) -> DatabaseStatus:
                return DatabaseStatus(phase="Running" if ctx.components.are_ready else "Starting")

        Args:
            cls: A class with the decorator `konverge.crd.custom_resource`, or the name of a kind, for example
                ``"apps/v1/Deployment"``: then the functions get the JSON, and conditions are in an annotation.
            *parts: In the order of a reconcile: a plain function gets the owner and builds one component. An async
                function gets the owner and the context, as for `reconciles`. Its exceptions make the summary an error,
                and do not stop the parts after it.
            status: Gets the owner and the context after all parts, and returns an instance of the class of the field
                ``status``. Its fields are written together with the conditions, with ``observedGeneration``. It can be
                async. If it fails, or the server refuses the status, the fields stay as they are and the summary is an
                error.
            condition_type: The condition that summarizes the components.
            retired: The condition types of components that the operator had before, which are removed from owners. A
                condition does not show who wrote it, so the operator declares its own types.
            workers: The number of owners that are reconciled in parallel.
            timeout: The time limit of one reconcile of one owner.
            when: The predicate for changes of an owner that trigger a reconcile; None for all changes.

        Raises:
            BuildError: The class is not a custom resource or is registered already, no factory is given, or a function
                is repeated or has other parameters.
        """
        components = ComponentFactories(parts, condition_type, retired, status)
        owner_class = self.registered.find_class(cls)
        mistakes = components.list_errors(owner_class)
        self._register(OwnerRegistration(owner_class, components, condition_type, workers, timeout, when), mistakes)

    def reconciles(
        self,
        cls: type[T] | GroupVersionKind | str,
        *,
        workers: int = DEFAULT_WORKERS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        when: Predicate | None = None,
        reports_errors: bool = True,
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register a reconcile function for the owners of the class; the function stays callable.

        ::

            @operator.reconciles(WebApp)
            async def reconcile(app: WebApp, ctx: OwnerContext) -> Result | None:
                await frontend(app).reconcile(ctx)
                ctx.stage_status(WebAppStatus(url=f"http://{app.metadata.name}"))

        What the function stages is written once at its end, also if it raises. A return is a success, and `Result` can
        request a requeue. `konverge.errors.TerminalError` is retried only after a change of the owner or one of its
        objects; any other exception is retried after a backoff. An exception sets the condition ``Ready`` to False with
        reason ``Error``, unless the function has staged that condition with another status than True. The next
        success removes it. Conflicts and lost connections set no condition. An owner that is being deleted is not
        reconciled, except by a function of `finalizes`.

        Args:
            cls: A class with the decorator `konverge.crd.custom_resource`, or the name of a kind, as for `manages`.
            workers: The number of owners that are reconciled in parallel.
            timeout: The time limit of one reconcile of one owner. After nine tenths of it the function is cancelled;
                the rest is for the status write.
            when: The predicate for changes of an owner that trigger a reconcile, for example `generation_changed`; None
                for all changes. Changes of objects that it controls or reads always trigger one.
            reports_errors: False leaves the status to the function: it is written only by `OwnerContext.flush_status`
                and `OwnerContext.flushing_status`, and an exception sets no condition.

        Raises:
            BuildError: The class is not a custom resource, or is registered already.
        """

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            owner_class = self.registered.find_class(cls)
            registration = OwnerRegistration(owner_class, reconciler, "Ready", workers, timeout, when, reports_errors)
            self._register(registration, [])
            return reconciler

        return register

    def finalizes(
        self,
        cls: type[T] | GroupVersionKind | str,
        *,
        name: str = "",
        others: Sequence[str] = (),
        is_needed: Callable[[Object], bool] | None = None,
    ) -> Callable[[Reconciler[T]], Reconciler[T]]:
        """Register a function for the cleanup of an owner that the cluster cannot do itself.

        Every owner gets the finalizer before its first reconcile. During the deletion, the function is called until it
        returns None; a `Result` means that the cleanup is not complete, an exception is retried after a backoff. Then
        the finalizer is removed. It must be safe to call the function again.

        Args:
            cls: A class or kind that is also registered with `manages` or `reconciles`.
            name: The finalizer, for example ``demo.example.com/bucket`` (default: the class's group and the operator's
                name; for a kind of others ``konverge.dev`` and the operator's name).
            others: Additional finalizers, which are added and removed together with it.
            is_needed: Returns True for an owner that gets the finalizer before its next reconcile; None for every
                owner. An owner that has the finalizer keeps it until the cleanup is complete.

        Raises:
            BuildError: The class is not a custom resource or has a finalizer already, or the name is invalid.
        """
        owner_class = self.registered.find_class(cls)
        definition = find_definition(owner_class)
        domain = definition.gvk.group if definition.has_own_status else "konverge.dev"
        finalizers = (name or f"{domain}/{self.name}", *others)

        def register(reconciler: Reconciler[T]) -> Reconciler[T]:
            mistakes = []
            for finalizer in finalizers:
                mistakes += [f'finalizer "{finalizer}": {mistake}' for mistake in validate_label_key(finalizer)]
                if "/" not in finalizer:
                    mistakes.append(f'finalizer "{finalizer}": expected a domain and a name, as in example.com/cleanup')
            if owner_class in self.registered.finalizers:
                mistakes.append(f"{owner_class.__name__} has a finalizer already")
            if mistakes:
                raise BuildError(f"operator {self.name}", mistakes)
            self.registered.finalizers[owner_class] = FinalizerRegistration(finalizers, reconciler, is_needed)
            return reconciler

        return register

    def watches(
        self, kind: Kind, *, requeues: Kind, when: Predicate | None = None
    ) -> Callable[[MapToOwners], MapToOwners]:
        """Register a function that maps changes of objects of a kind to owners.

        Objects that owners control, or that their reconciles read, need no watch: their changes requeue the owners.

        ::

            @operator.watches("v1/Secret", requeues=WebApp)
            def users_of_the_secret(change: Change) -> Iterable[ObjectKey]:
                return change.list_keys_by_index(kind_of(WebApp), "secret", change.key.name)

        The function is called in the event loop for each change and must not block. A kind that the cluster does not
        serve yet is watched as soon as it is served. All objects of the kind are cached; `caches` reduces them.

        Args:
            kind: The kind to watch.
            requeues: The kind of the owners.
            when: The predicate for changes that count; None for all.

        Raises:
            ValueError: The text is not a kind.
            BuildError: The class is not a custom resource.
        """
        gvk, owner = kind_of(kind), kind_of(requeues)

        def register(owners_of: MapToOwners) -> MapToOwners:
            self.registered.watches.append(WatchedKind(gvk, owner, owners_of, when))
            return owners_of

        return register

    def index(self, kind: Kind, name: str) -> Callable[[IndexFunction[Any]], IndexFunction[Any]]:
        """Register an index of the cached objects of a kind: the function returns the values that find an object.

        ::

            @operator.index(WebApp, "secret")
            def list_secret_names(app: WebApp) -> Iterable[str]:
                return [app.spec.secret_name]

        Args:
            kind: The kind. The function gets instances of a class, or plain objects of any other kind. An object that
                cannot be decoded, or for which the function fails, has no value.
            name: The name of the index in `CachedClient.list_by_index` and `Change.list_keys_by_index`.

        Raises:
            ValueError: The text is not a kind.
            BuildError: The kind has an index with that name already.
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
        """Set the cache options of a kind, to cache less than all objects that are owned or read.

        Args:
            kind: The kind.
            options: Selectors, namespaces, metadata only, and a function that reduces objects.

        Raises:
            ValueError: The text is not a kind.
            BuildError: The kind has cache options already.
        """
        gvk = kind_of(kind)
        if gvk in self.registered.cache_options:
            raise BuildError(
                f"operator {self.name}",
                [f"the kind {gvk.kind} has cache options already: expected one call of caches() for each kind"],
            )
        self.registered.cache_options[gvk] = options

    def uses(self, kind: Kind, *verbs: str, subresource: str = "", plural: str = "") -> None:
        """Declare the verbs of author functions for objects of a kind, so that `konverge rbac` can grant them.

        The permissions for components and for `watches` are derived.

        Args:
            kind: The kind.
            *verbs: The verbs, for example ``get``, ``list``, ``watch``; `konverge.operator.READ` has these three.
            subresource: A subresource, for example ``scale``.
            plural: The plural of the kind, if it does not follow the API's rule for plurals.

        Raises:
            ValueError: The text is not a kind, or there is no verb.
        """
        named = kind if isinstance(kind, type) else kind_of(kind)
        self.registered.uses.append(ResourceAccess.of(named, verbs, plural=plural, subresource=subresource))

    def runs_in_background(self, companion: Companion) -> None:
        """Register a background service, for example a connection pool or a watcher of files.

        Args:
            companion: Called once for each run. The context manager that it returns is entered before the first list of
                owners, and left after the end of the last reconcile.
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
        """Reconcile the owners until the run is cancelled or a signal stops it.

        A cancellation ends the run immediately; it cancels running reconciles and their requests.

        Args:
            client: The cluster; it stays open.
            options: The options of the run (default: `RunOptions()`).
            clock: The time (default: the system clock).
            entropy: The randomness (default: that of the system).
            stops_on_signals: True to stop on SIGTERM and SIGINT: after the first signal, running reconciles can finish;
                a second signal cancels them. Only in the main thread of a program.

        Raises:
            ConfigurationError: No class is registered.
            BuildError: A finalizer or a watch is for a class that is not registered.
            konverge.errors.StartError: The cluster refuses a request that the operator requires, for example the watch
                of the owners, and `RunOptions.start_timeout` has passed.
        """
        from konverge._internal.operator.process_builder import (
            build_process,
        )  # loads the servers, which a declaration does not need

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
        errors = [*errors, *list_limit_errors(registration.workers, registration.timeout)]
        taken = {find_definition(cls).gvk.group_kind for cls in self.custom_resources}
        if definition.gvk.group_kind in taken:
            errors = [*errors, f"{definition.gvk.kind} is registered already; one kind has one reconcile"]
        if errors:
            raise BuildError(f"operator {self.name}", errors)
        self.registered.classes.append(registration)

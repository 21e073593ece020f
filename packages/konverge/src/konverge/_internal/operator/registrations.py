"""The registrations of an author, as values: `Operator` collects them, and a run is built from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from konverge._internal.cache import CacheOptions
from konverge._internal.crd import crd_manifest, find_definition, plain_resource
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.operator.component_factories import ComponentFactories, ComponentFactory
from konverge._internal.operator.function_calls import Reconciler, is_async, name_function
from konverge._internal.operator.kind_argument import Kind, kind_of
from konverge._internal.operator.owner_context import Companion
from konverge._internal.operator.owner_status import StatusFunction
from konverge._internal.operator.permission_derivation import DeclaredOwner, OperatorDeclaration
from konverge._internal.operator.rbac_rules import ResourceAccess, guess_plural, is_cluster_scoped
from konverge._internal.operator.webhook_registry import WebhookRegistry
from konverge._internal.runtime import Predicate, WatchedKind
from konverge._internal.runtime.webhooks import WebhookEndpoint, build_conversion_config, build_webhook_manifests
from konverge.errors import BuildError

__all__ = [
    "FinalizerRegistration",
    "OperatorRegistrations",
    "OwnerRegistration",
    "TaskRegistration",
    "list_limit_errors",
    "list_time_errors",
]


@dataclass(frozen=True, slots=True)
class OwnerRegistration:
    """One class and its reconcile.

    Args:
        cls: The custom resource class.
        reconciler: The author's reconcile function, or the functions that build the components of an owner.
        condition_type: The summary condition.
        workers: The number of owners that are reconciled in parallel.
        timeout: The time limit of a reconcile.
        when: The predicate for changes of an owner that trigger a reconcile; None for all.
        reports_errors: True if `condition_type` reports errors of an author's reconcile function.
    """

    cls: type[Any]
    reconciler: Reconciler[Any] | ComponentFactories[Any]
    condition_type: str
    workers: int
    timeout: timedelta
    when: Predicate | None
    reports_errors: bool = True

    @property
    def functions(self) -> tuple[Reconciler[Any], ...]:
        """The author's functions with an owner and a context, whose access to the cluster cannot be derived."""
        return self.reconciler.functions if isinstance(self.reconciler, ComponentFactories) else (self.reconciler,)

    @property
    def status(self) -> StatusFunction[Any] | None:
        """The function that returns the status of an owner; None without one."""
        return self.reconciler.status if isinstance(self.reconciler, ComponentFactories) else None

    @property
    def factories(self) -> tuple[ComponentFactory[Any], ...]:
        """The functions that build its components; empty for an author's own reconcile function."""
        return self.reconciler.factories if isinstance(self.reconciler, ComponentFactories) else ()


@dataclass(frozen=True, slots=True)
class FinalizerRegistration:
    """The cleanup of the owners of a class.

    Args:
        names: The entries in ``metadata.finalizers``.
        reconciler: The function for an owner that is being deleted.
        is_needed: Returns True for owners that get the finalizers; None for every owner.
    """

    names: tuple[str, ...]
    reconciler: Reconciler[Any]
    is_needed: Callable[[Object], bool] | None = None


@dataclass(frozen=True, slots=True)
class TaskRegistration:
    """A timer or a long-running task of the owners of a class.

    Args:
        cls: The class.
        function: The author's function.
        interval: The time from the end of a run to the next one; None for a long-running task.
        initial_delay: The time before the first run of a timer; None for a random one.
        workers: The number of owners for which it runs in parallel.
        timeout: The time limit of a run.
    """

    cls: type[Any]
    function: Reconciler[Any]
    interval: timedelta | None
    initial_delay: timedelta | None
    workers: int
    timeout: timedelta

    @property
    def name(self) -> str:
        """The name of the function, unique for the class."""
        return name_function(self.function)


@dataclass(slots=True)
class OperatorRegistrations:
    """All registrations of one operator; the author's module adds them while it is loaded.

    Args:
        name: The operator's name.
        adopt: The default for resources without the option `konverge.options.adopt`.
        classes: The classes with their reconciles, in order.
        finalizers: The cleanups by class.
        watches: The additional watches.
        indexes: The indexes by kind and name.
        cache_options: The cache options by kind.
        uses: The declared permissions, in addition to the derived ones.
        webhooks: The admission and conversion handlers.
        companions: The background services.
        tasks: The timers and long-running tasks of owners.
        plain_classes: The classes for kinds that were registered by their name.
        assumed_kinds: The kinds without a definition of the operator that a cluster must serve, and whether they are
            namespaced. A private cluster gets definitions for those that it lacks.
    """

    name: str
    adopt: bool = True
    classes: list[OwnerRegistration] = field(default_factory=list)
    finalizers: dict[type[Any], FinalizerRegistration] = field(default_factory=dict)
    watches: list[WatchedKind] = field(default_factory=list)
    indexes: dict[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]] = field(default_factory=dict)
    cache_options: dict[GroupVersionKind, CacheOptions] = field(default_factory=dict)
    uses: list[ResourceAccess] = field(default_factory=list)
    webhooks: WebhookRegistry = field(default_factory=WebhookRegistry)
    companions: list[Companion] = field(default_factory=list)
    tasks: list[TaskRegistration] = field(default_factory=list)
    plain_classes: dict[GroupVersionKind, type[Any]] = field(default_factory=dict)
    assumed_kinds: dict[GroupVersionKind, bool] = field(default_factory=dict)

    def find_class(self, kind: Kind) -> type[Any]:
        """Return the class of owners of a kind: the registered one, or one whose objects are JSON.

        Raises:
            ValueError: The text is not a kind.
        """
        if isinstance(kind, type):
            return kind
        gvk = kind_of(kind)
        for registration in self.classes:
            if find_definition(registration.cls).gvk == gvk:
                return registration.cls
        if gvk not in self.plain_classes:
            scope: Literal["Cluster", "Namespaced"] = "Cluster" if is_cluster_scoped(gvk) else "Namespaced"
            self.plain_classes[gvk] = plain_resource(gvk, plural=guess_plural(gvk), scope=scope)
        return self.plain_classes[gvk]

    @property
    def declaration(self) -> OperatorDeclaration:
        """The part of the registrations from which permissions are derived."""
        owners = (
            DeclaredOwner(
                registration.cls,
                registration.factories,
                registration.cls in self.finalizers,
                tuple(map(name_function, self._list_functions(registration))),
            )
            for registration in self.classes
        )
        return OperatorDeclaration(
            self.name, tuple(owners), tuple(dict.fromkeys(watch.gvk for watch in self.watches)), tuple(self.uses)
        )

    def _list_functions(self, registration: OwnerRegistration) -> Iterator[object]:
        """List the functions of a class whose access to the cluster cannot be derived."""
        yield from registration.functions
        if is_async(registration.status):
            yield registration.status
        if registration.cls in self.finalizers:
            yield self.finalizers[registration.cls].reconciler
        yield from (task.function for task in self.tasks if task.cls is registration.cls)

    def build_webhook_manifests(self, endpoint: WebhookEndpoint) -> list[Object]:
        """Build the manifests that register the handlers with an API server; an empty list without handlers.

        These are the webhook configurations with the operator's name, and the CustomResourceDefinitions of the kinds
        with conversion handlers.

        Args:
            endpoint: The endpoint of the handlers.

        Raises:
            BuildError: A version of a kind cannot be converted to each of the others.
        """
        hooks = self.webhooks.build_hooks()
        manifests = build_webhook_manifests(self.name, hooks, endpoint)
        for registration in self.classes:
            config = build_conversion_config(find_definition(registration.cls).mapping, hooks, endpoint)
            if config is not None:
                manifests.append(crd_manifest(registration.cls, conversion=config))
        return manifests

    def validate(self) -> None:
        """Refuse finalizers, watches, timers and tasks for a class without a reconcile.

        Raises:
            BuildError: The registrations have errors; the exception lists all of them.
        """
        reconciled = {find_definition(registration.cls).gvk for registration in self.classes}
        mistakes = [
            f"{cls.__name__} has a finalizer but no reconcile: register the class with manages() or reconciles()"
            for cls in self.finalizers
            if find_definition(cls).gvk not in reconciled
        ]
        mistakes += [
            f"a watch of {watch.gvk} requeues {watch.owner.kind}, which has no reconcile: register the class with "
            "manages() or reconciles()"
            for watch in self.watches
            if watch.owner not in reconciled
        ]
        mistakes += [
            f"{task.cls.__name__} has the function {task.name}, but no reconcile: register the class with manages() or "
            "reconciles()"
            for task in self.tasks
            if find_definition(task.cls).gvk not in reconciled
        ]
        if mistakes:
            raise BuildError(f"operator {self.name}", mistakes)


def list_limit_errors(workers: object, timeout: object) -> list[str]:
    """List the errors in the limits of a registration, one sentence each."""
    mistakes = []
    if type(workers) is not int or workers < 1:
        mistakes.append(f"workers: expected a whole number, 1 or more, found {workers!r}")
    return mistakes + list_time_errors("timeout", timeout, above=timedelta(0))


def list_time_errors(
    name: str, time: object, *, above: timedelta | None = None, least: timedelta | None = None
) -> list[str]:
    """List the errors in a time of a registration, one sentence each."""
    if not isinstance(time, timedelta):
        return [f"{name}: expected a timedelta, found {type(time).__name__}"]
    if above is not None and time <= above:
        return [f"{name}: expected a time above zero, found {time}"]
    if least is not None and time < least:
        return [f"{name}: expected {least.total_seconds():g} s or more, found {time}"]
    return []

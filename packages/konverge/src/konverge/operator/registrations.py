"""What an author has registered, as values: what `Operator` collects and a run is built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from konverge.cache import CacheOptions
from konverge.crd import crd_manifest, find_definition
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object
from konverge.operator.author_reconciler import Reconciler
from konverge.operator.component_factories import ComponentFactories, ComponentFactory
from konverge.operator.owner_context import Companion
from konverge.operator.permission_derivation import DeclaredOwner, OperatorDeclaration
from konverge.operator.rbac_rules import ResourceAccess
from konverge.operator.webhook_registry import WebhookRegistry
from konverge.runtime import Predicate, WatchedKind
from konverge.runtime.webhooks import WebhookEndpoint, build_conversion_config, build_webhook_manifests

__all__ = ["FinalizerRegistration", "OperatorRegistrations", "OwnerRegistration"]


@dataclass(frozen=True, slots=True)
class OwnerRegistration:
    """One class and its reconcile.

    Args:
        cls: The custom resource class.
        reconciler: The author's reconcile function, or the functions that build the components of an owner.
        condition_type: The condition that sums up.
        workers: How many owners at once.
        timeout: How long a pass may take.
        when: Which of an owner's own changes call for a pass.
    """

    cls: type[Any]
    reconciler: Reconciler[Any] | ComponentFactories[Any]
    condition_type: str
    workers: int
    timeout: timedelta
    when: Predicate | None

    @property
    def factories(self) -> tuple[ComponentFactory[Any], ...]:
        """The functions that build its components; empty for an author's own reconcile function."""
        return self.reconciler.factories if isinstance(self.reconciler, ComponentFactories) else ()


@dataclass(frozen=True, slots=True)
class FinalizerRegistration:
    """What has to be done before the owners of a class may go.

    Args:
        names: The entries in ``metadata.finalizers``.
        reconciler: What a pass over an owner that is being deleted does.
        is_needed: Tells which owners get it; None for every owner.
    """

    names: tuple[str, ...]
    reconciler: Reconciler[Any]
    is_needed: Callable[[Object], bool] | None = None


@dataclass(slots=True)
class OperatorRegistrations:
    """Everything that belongs to one operator; it grows as its author's module is loaded.

    Args:
        name: The operator's name.
        adopt: Whether components take over objects that exist already, where the resource does not say.
        classes: The classes with their reconciles, in order.
        finalizers: By class.
        watches: What else concerns owners.
        indexes: By kind and name.
        cache_options: What of a kind is held in memory.
        uses: What the author says is used besides what can be derived.
        webhooks: Admission and conversion.
        companions: What runs beside the controllers.
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

    @property
    def declaration(self) -> OperatorDeclaration:
        """What permissions are derived from."""
        owners = (DeclaredOwner(found.cls, found.factories, found.cls in self.finalizers) for found in self.classes)
        return OperatorDeclaration(
            self.name, tuple(owners), tuple(dict.fromkeys(watch.gvk for watch in self.watches)), tuple(self.uses)
        )

    def build_webhook_manifests(self, endpoint: WebhookEndpoint) -> list[Object]:
        """What tells an API server of the handlers; nothing when there are none.

        The webhook configurations, under the operator's name, and the definitions of the kinds of which other versions
        are made by the handlers.

        Args:
            endpoint: Where the handlers are served.

        Raises:
            BuildError: A version of a kind cannot be converted to each of the others.
        """
        hooks = self.webhooks.build_hooks()
        found = build_webhook_manifests(self.name, hooks, endpoint)
        for registration in self.classes:
            config = build_conversion_config(find_definition(registration.cls).mapping, hooks, endpoint)
            if config is not None:
                found.append(crd_manifest(registration.cls, conversion=config))
        return found

    def validate(self) -> None:
        """Refuse what belongs to a class that nothing reconciles.

        Raises:
            BuildError: With all mistakes.
        """
        reconciled = {find_definition(found.cls).gvk for found in self.classes}
        mistakes = [
            f"{cls.__name__} has a finalizer, and nothing reconciles it"
            for cls in self.finalizers
            if find_definition(cls).gvk not in reconciled
        ]
        mistakes += [
            f"a watch of {watch.gvk} wakes {watch.owner.kind}, and nothing reconciles that"
            for watch in self.watches
            if watch.owner not in reconciled
        ]
        if mistakes:
            raise BuildError(f"operator {self.name}", mistakes)

"""What an author has registered, as values: what `Operator` collects and a run is built from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from konverge.cache import CacheOptions
from konverge.crd import crd_manifest, definition_of
from konverge.errors import BuildError
from konverge.kube import GroupVersionKind, Object
from konverge.operator.context import Companion
from konverge.operator.permissions import Declaration, DeclaredOwner
from konverge.operator.policy_rules import Use
from konverge.operator.reconciling import ComponentFactory, Reconciler
from konverge.operator.webhooks import WebhookRegistry
from konverge.runtime import Predicate, WatchedKind
from konverge.runtime.webhooks import Endpoint, conversion_config, webhook_manifests

__all__ = ["Registered", "RegisteredFinalizer", "Registration"]


@dataclass(frozen=True, slots=True)
class Registration:
    """One class and its reconcile.

    Args:
        cls: The custom resource class.
        reconciler: What a pass does.
        condition_type: The condition that sums up.
        workers: How many owners at once.
        timeout: How long a pass may take.
        when: Which of an owner's own changes call for a pass.
        factories: What builds its components; empty for an author's own reconcile function.
    """

    cls: type[Any]
    reconciler: Reconciler[Any]
    condition_type: str
    workers: int
    timeout: timedelta
    when: Predicate | None
    factories: tuple[ComponentFactory[Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredFinalizer:
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
class Registered:
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
    classes: list[Registration] = field(default_factory=list)
    finalizers: dict[type[Any], RegisteredFinalizer] = field(default_factory=dict)
    watches: list[WatchedKind] = field(default_factory=list)
    indexes: dict[tuple[GroupVersionKind, str], Callable[[Object], Sequence[str]]] = field(default_factory=dict)
    cache_options: dict[GroupVersionKind, CacheOptions] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    webhooks: WebhookRegistry = field(default_factory=WebhookRegistry)
    companions: list[Companion] = field(default_factory=list)

    @property
    def declaration(self) -> Declaration:
        """What permissions are derived from."""
        owners = (DeclaredOwner(found.cls, found.factories, found.cls in self.finalizers) for found in self.classes)
        return Declaration(
            self.name, tuple(owners), tuple(dict.fromkeys(watch.gvk for watch in self.watches)), tuple(self.uses)
        )

    def webhook_manifests(self, endpoint: Endpoint) -> list[Object]:
        """What tells an API server of the handlers; nothing when there are none.

        The webhook configurations, under the operator's name, and the definitions of the kinds of which other versions
        are made by the handlers.

        Args:
            endpoint: Where the handlers are served.

        Raises:
            BuildError: A version of a kind cannot be converted to each of the others.
        """
        hooks = self.webhooks.hooks()
        found = webhook_manifests(self.name, hooks, endpoint)
        for registration in self.classes:
            config = conversion_config(definition_of(registration.cls).mapping, hooks, endpoint)
            if config is not None:
                found.append(crd_manifest(registration.cls, conversion=config))
        return found

    def check(self) -> None:
        """Refuse what belongs to a class that nothing reconciles.

        Raises:
            BuildError: With all mistakes.
        """
        reconciled = {definition_of(found.cls).gvk for found in self.classes}
        mistakes = [
            f"{cls.__name__} has a finalizer, and nothing reconciles it"
            for cls in self.finalizers
            if definition_of(cls).gvk not in reconciled
        ]
        mistakes += [
            f"a watch of {watch.gvk} wakes {watch.owner.kind}, and nothing reconciles that"
            for watch in self.watches
            if watch.owner not in reconciled
        ]
        if mistakes:
            raise BuildError(f"operator {self.name}", mistakes)

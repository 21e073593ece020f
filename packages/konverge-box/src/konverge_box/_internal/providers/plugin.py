"""The interface that a plug-in implements: the provider, its requests and its results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from konverge._internal.kube import GroupVersionKind, ObjectKey
from konverge.errors import KonvergeError

__all__ = [
    "ForeignError",
    "ItemKind",
    "ItemOwner",
    "ItemRequest",
    "ItemResult",
    "OnDelete",
    "PendingDeletion",
    "Provider",
    "ProviderError",
    "ReconcileRequest",
]

OnDelete: TypeAlias = Literal["retain", "delete"]
"""The action on an item that is no longer declared: it stays without an owner, or it is deleted."""


class ProviderError(KonvergeError):
    """An error of a provider, whose message names the expected and the found value. The call is retried later."""


class ForeignError(ProviderError):
    """An error about an item of that name that belongs to another owner. The item was not changed.

    Args:
        subject: The item, for example ``database "shop"``.
        mark: The mark of the item; empty without one.
        wanted: The mark that would hand the item over to the requesting owner.
    """

    def __init__(self, subject: str, mark: str, wanted: str) -> None:
        actual = f"with the mark {mark!r}" if mark else "without an owner's mark"
        super().__init__(f"{subject} exists already, {actual}, and is not changed. To hand it over, mark it {wanted!r}")


@dataclass(frozen=True, slots=True)
class ItemOwner:
    """The custom resource that declares an item.

    Args:
        gvk: Its kind.
        key: Its namespace and name.
        uid: Its UID, which marks its items outside of the cluster.
    """

    gvk: GroupVersionKind
    key: ObjectKey
    uid: str

    def __str__(self) -> str:
        return f"{self.gvk.kind}.{self.gvk.group} {self.key}"


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of items that a provider manages.

    Args:
        spec: The class of its ``spec``. An invalid spec is rejected before the provider is called. Every kind has the
            fields ``name`` and ``onDelete``, which the class does not declare. A field that accepts a value from a
            Secret has the type `konverge_box.expressions.Sensitive`; all others reject one.
        identity: The spec fields that distinguish items of the same name, by their Python names. They are recorded with
            the name, and are the only part of the spec that is available when the item is deleted.
        is_named: Tells whether the name identifies the item. If not, ``name`` of a request is empty, and an item whose
            name changes stays the same item.
        on_delete: The action on an item that is no longer declared, unless the file sets ``onDelete``.
    """

    spec: type[Struct]
    identity: tuple[str, ...] = ()
    is_named: bool = True
    on_delete: OnDelete = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRequest:
    """The recorded part of one item.

    Args:
        kind: One of the provider's kinds.
        name: The name of the item outside of the cluster.
        owner: The custom resource that declares it.
        settings: The provider's settings, as an instance of its settings class.
        identity: The values of the kind's `identity` fields.
        on_delete: The action when it is no longer declared.
        handle: The `ItemResult.handle` of an earlier call; empty before one was recorded.
        token: A text that is the same for all calls about this item of this owner, and unique among all items. It is
            for services that generate names and recognize a repeated request by a token.
    """

    kind: str
    name: str
    owner: ItemOwner
    settings: Any
    identity: Mapping[str, Any]
    on_delete: OnDelete
    handle: str
    token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileRequest(ItemRequest):
    """The request for one declared item.

    Args:
        spec: The desired state, as an instance of the kind's spec class.
    """

    spec: Any


@dataclass(frozen=True, slots=True)
class ItemResult:
    """The state of an item after a call.

    Args:
        outputs: The value of ``providers.<provider>.<item>.outputs`` in expressions: JSON values of at most 16 KiB.
            Confidential values are wrapped by `konverge_box.expressions.to_sensitive`.
        ready: Tells whether the item has the desired state. If not, and without an error, it is requested again soon.
        message: A message for users, above all the reason why it is not ready; the same text for the same state, as in
            `PendingDeletion`.
        handle: The identifier that the service generated, if the name does not determine it; at most 512 characters.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    ready: bool = True
    message: str = ""
    handle: str = ""


@dataclass(frozen=True, slots=True)
class PendingDeletion:
    """The state of an item that the service still deletes. The provider is called again soon, until it is gone.

    Args:
        message: A message for users, for example what the service waits for; may be empty. It stays the same while the
            item is in the same state: each new text is a change of the owner, which triggers the next call at once.
    """

    message: str = ""


class Provider(Protocol):
    """A provider of external items. One instance serves all boxes of a process, with several concurrent calls.

    Both calls are idempotent and follow these rules, which `konverge_box.testing` checks:

    * An existing item with the desired state is not changed. Differences are corrected.
    * A created item is marked with the owner's UID, in the same step or found again by ``request.token``. An item
      without this owner's mark is neither changed nor deleted: `ForeignError`.
    * A call can be cancelled at any time, and the process can end at any time. The next call finishes the work. No item
      is created twice.
    * Nothing blocks the event loop. Each wait ends on cancellation, or within seconds.
    * Messages and results contain no value of a Secret.

    Attributes:
        name: Its name in the file and the name of its entry point.
        settings: The class of its settings: ``settings`` and ``secretRefs`` together under ``spec.providers.<name>``.
        kinds: Its kinds, by name.
    """

    name: str
    settings: type[Struct]
    kinds: Mapping[str, ItemKind]

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Reconcile the item and return its state.

        Raises:
            ForeignError: The item belongs to another owner.
            Exception: Any other failure. The call is retried with backoff.
        """

    async def delete(self, request: ItemRequest) -> PendingDeletion | None:
        """Delete the item; with ``on_delete="retain"``, keep it and remove its owner.

        An item that is absent or belongs to another owner is not an error: nothing happens.

        Returns:
            None if the item is gone or released; a `PendingDeletion` while the service still deletes it.

        Raises:
            Exception: Any failure. The owner is kept until the call succeeds.
        """

    async def close(self) -> None:
        """Close all connections. No further call follows."""

"""The interface that a plug-in implements: what a provider has, what it is asked for, what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from konverge.errors import KonvergeError
from konverge.kube import GroupVersionKind, ObjectKey

__all__ = [
    "ForeignError",
    "ItemKind",
    "ItemOwner",
    "ItemRequest",
    "ItemResult",
    "OnDelete",
    "Provider",
    "ProviderError",
    "ReconcileRequest",
]

OnDelete: TypeAlias = Literal["retain", "delete"]
"""What becomes of a thing that is not wanted any more: it stays, without an owner; or it is deleted."""


class ProviderError(KonvergeError):
    """A provider cannot do what it was asked for; the message says what was expected and found. Tried again later."""


class ForeignError(ProviderError):
    """There is something of that name that belongs to somebody else; it was left alone.

    Args:
        subject: What it is, for example ``database "shop"``.
        mark: What it is marked with; empty if it has no mark.
        wanted: The mark that would hand it over to whom it was wanted for.
    """

    def __init__(self, subject: str, mark: str, wanted: str) -> None:
        found = f"marked {mark!r}" if mark else "without a mark of an owner"
        super().__init__(f"{subject} is there already, {found}; it is left alone. To hand it over, mark it {wanted!r}")


@dataclass(frozen=True, slots=True)
class ItemOwner:
    """The custom resource that wants an item.

    Args:
        gvk: Its kind.
        key: Its namespace and name.
        uid: Its UID: what belongs to it outside of the cluster is marked with this.
    """

    gvk: GroupVersionKind
    key: ObjectKey
    uid: str

    def __str__(self) -> str:
        return f"{self.gvk.kind}.{self.gvk.group} {self.key}"


@dataclass(frozen=True, slots=True)
class ItemKind:
    """A kind of things that a provider keeps.

    Args:
        spec: The class of its ``spec``; what does not fit is refused before the provider is called. Fields named
            ``name`` and ``onDelete`` are every kind's, and are not declared. A field that may hold a Secret's value has
            the type `konverge_box.expressions.Sensitive`; all others refuse one.
        identity: Which fields of the spec tell one item of a name from another, by their names in Python. They are
            recorded with the name, and are all that there is of the spec when the item is deleted.
        is_named: Whether its name is part of what it is. If not, ``name`` of a request is empty, and an item whose name
            alone changes is the same as before.
        on_delete: What happens to an item that is not wanted any more, if the file does not say.
    """

    spec: type[Struct]
    identity: tuple[str, ...] = ()
    is_named: bool = True
    on_delete: OnDelete = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRequest:
    """One item, as far as it is recorded.

    Args:
        kind: One of the provider's kinds.
        name: What it is called outside of the cluster.
        owner: To whom it belongs.
        settings: The provider's settings, as an instance of its class for them.
        identity: The values of the kind's fields of that name.
        on_delete: What is to happen when it is not wanted any more.
        handle: What `ItemResult.handle` of an earlier call said; empty before that has been recorded.
        token: The same for all calls about this item of this owner, and different for all others: for services that
            give things names of their own, and recognise a repeated request by a token.
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
    """One item that is wanted.

    Args:
        spec: What it is to be like, as an instance of the kind's class.
    """

    spec: Any


@dataclass(frozen=True, slots=True)
class ItemResult:
    """What has become of an item.

    Args:
        outputs: What expressions find as ``providers.<provider>.<item>.outputs``: JSON values; what nobody may see is
            wrapped by `konverge_box.expressions.sensitive`. At most 16 KiB.
        ready: Whether it is as wanted. If not, and nothing failed, it is asked for again soon.
        message: What a person should know, above all why it is not ready.
        handle: What a service has called it, where that cannot be found out by its name; at most 512 letters.
    """

    outputs: Mapping[str, Any] = field(default_factory=dict)
    ready: bool = True
    message: str = ""
    handle: str = ""


class Provider(Protocol):
    """Keeps things outside of the cluster. One instance serves all boxes of a process, with several calls at once.

    Both calls are idempotent, and hold to these rules, which `konverge_box.testing` checks:

    * What is there already, and is as wanted, is not changed. What differs is corrected.
    * What is made is marked with the owner's UID, in the same step or found again by ``request.token``. What bears no
      mark of this owner is neither changed nor deleted: `ForeignError`.
    * A call may be cancelled at any moment, and the process may end at any moment; the next call finishes the work.
      Nothing is made twice.
    * Nothing blocks the event loop. Each wait ends by cancellation, or within seconds by itself.
    * Messages and results show no value of a Secret.

    Attributes:
        name: What the file calls it; also the name of its entry point.
        settings: The class of what the file has for it under ``spec.providers.<name>``, ``settings`` and ``secretRefs``
            together.
        kinds: Its kinds, by name.
    """

    name: str
    settings: type[Struct]
    kinds: Mapping[str, ItemKind]

    async def reconcile(self, request: ReconcileRequest) -> ItemResult:
        """Make it so, and say what is there.

        Raises:
            ForeignError: It belongs to somebody else.
            Exception: Anything else that went wrong; it is tried again with growing pauses.
        """

    async def delete(self, request: ItemRequest) -> None:
        """See to it that it is gone; or, with ``on_delete="retain"``, that it is there and nobody's.

        What is absent, or is somebody else's, is no error: there is nothing to do.

        Raises:
            Exception: Anything that went wrong; the owner is kept until this succeeds.
        """

    async def close(self) -> None:
        """Let go of connections; nobody calls it any more."""

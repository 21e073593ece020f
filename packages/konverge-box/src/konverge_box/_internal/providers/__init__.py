"""External items of a box, such as databases and buckets, which plug-ins manage.

A `Provider` creates, corrects and deletes single items. `ProvidersStep` is the step of the pipeline. It decides which
items should exist, and records them on the owner before they are created. It calls the providers one item after the
other within a time limit, and deletes recorded items that are no longer declared. A crash orphans no item, and an item
of another owner is never taken over.

Providers come from entry points (`ProviderRegistry.from_entry_points`). konverge includes ``postgres`` and ``aws``.
"""

from konverge_box._internal.providers.dispatcher import DispatchResult, OwnerWriter
from konverge_box._internal.providers.item_outcomes import PROVIDER_REASONS
from konverge_box._internal.providers.item_records import PROVIDERS_ANNOTATION
from konverge_box._internal.providers.ownership_marks import (
    build_owner_mark,
    build_retention_mark,
    is_owned,
    needs_mark,
)
from konverge_box._internal.providers.plugin import (
    ForeignError,
    ItemKind,
    ItemOwner,
    ItemRequest,
    ItemResult,
    OnDelete,
    PendingDeletion,
    Provider,
    ProviderError,
    ReconcileRequest,
)
from konverge_box._internal.providers.provider_pool import ProviderLimits, ProviderPool
from konverge_box._internal.providers.provider_registry import ENTRY_POINTS, ProviderNotFoundError, ProviderRegistry
from konverge_box._internal.providers.providers_step import ProvidersStep

__all__ = [
    "ENTRY_POINTS",
    "PROVIDERS_ANNOTATION",
    "PROVIDER_REASONS",
    "DispatchResult",
    "ForeignError",
    "ItemKind",
    "ItemOwner",
    "ItemRequest",
    "ItemResult",
    "OnDelete",
    "OwnerWriter",
    "PendingDeletion",
    "Provider",
    "ProviderError",
    "ProviderLimits",
    "ProviderNotFoundError",
    "ProviderPool",
    "ProviderRegistry",
    "ProvidersStep",
    "ReconcileRequest",
    "build_owner_mark",
    "build_retention_mark",
    "is_owned",
    "needs_mark",
]

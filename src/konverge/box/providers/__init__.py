"""What a box keeps outside of the cluster, through plug-ins: databases, buckets, whatever has an interface.

A `Provider` makes, corrects and deletes single items. `Providers` is the step of the pipeline: it decides which items
are wanted, records them on the owner before anything is made, calls the providers one item after the other within a
time limit, and deletes what is recorded and not wanted any more. Nothing is orphaned by a crash, and nothing that
belongs to somebody else is taken over.

Providers come from entry points (`ProviderRegistry.installed`); two of them with konverge, ``postgres`` and ``aws``.
"""

from konverge.box.providers.dispatch import Dispatched, Writer
from konverge.box.providers.marks import is_owned, owned_mark, retained_mark, take
from konverge.box.providers.outcomes import PROVIDER_REASONS
from konverge.box.providers.plugin import (
    ForeignError,
    ItemKind,
    ItemOwner,
    ItemRequest,
    ItemResult,
    OnDelete,
    Provider,
    ProviderError,
    ReconcileRequest,
)
from konverge.box.providers.pool import ProviderLimits, ProviderPool
from konverge.box.providers.providers import Providers
from konverge.box.providers.records import RECORDED
from konverge.box.providers.registry import ENTRY_POINTS, NoProviderError, ProviderRegistry

__all__ = [
    "ENTRY_POINTS",
    "PROVIDER_REASONS",
    "RECORDED",
    "Dispatched",
    "ForeignError",
    "ItemKind",
    "ItemOwner",
    "ItemRequest",
    "ItemResult",
    "NoProviderError",
    "OnDelete",
    "Provider",
    "ProviderError",
    "ProviderLimits",
    "ProviderPool",
    "ProviderRegistry",
    "Providers",
    "ReconcileRequest",
    "Writer",
    "is_owned",
    "owned_mark",
    "retained_mark",
    "take",
]

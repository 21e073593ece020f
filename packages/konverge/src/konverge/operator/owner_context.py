"""What an operator's own functions work with: the context of components, the whole cluster, and the run around them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from konverge.clock import Clock, Entropy
from konverge.component import ReconcileContext
from konverge.runtime import CachedClient, Process

if TYPE_CHECKING:
    from konverge.runtime.event_recorder import ClusterEventRecorder
    from konverge.runtime.observability import Metrics

__all__ = ["Companion", "OperatorRun", "OwnerContext"]


@dataclass(frozen=True, eq=False)
class OperatorRun:
    """One run of an operator: the key to whatever is kept for it, since an operator may run twice at once.

    Args:
        clock: The time.
        entropy: The randomness.
        metrics: What the run counts; None without metrics.
        sections: Further sections of the debug page, by title: rows of a table, read in the event loop.
        events: Where the run's events go; None records none.
    """

    clock: Clock
    entropy: Entropy
    metrics: Metrics | None = None
    sections: dict[str, Callable[[], list[dict[str, Any]]]] = field(default_factory=dict)
    events: ClusterEventRecorder | None = None


Companion: TypeAlias = Callable[[OperatorRun, Process], AbstractAsyncContextManager[object]]
"""Something that runs beside the controllers, from before the owners are listed until after the last pass."""


@dataclass
class OwnerContext(ReconcileContext):
    """The context of a pass that the runtime runs."""

    run: OperatorRun | None = None
    """The run that the pass belongs to; None where nothing runs, as in a rehearsal."""

    @property
    def cluster(self) -> CachedClient:
        """The client of the pass with all its verbs: reads come from shared caches, own writes included.

        ::

            pods = await ctx.cluster.list(POD, namespace=ctx.owner_key.namespace, labels={"app": app.metadata.name})
        """
        assert isinstance(self.client, CachedClient)
        return self.client

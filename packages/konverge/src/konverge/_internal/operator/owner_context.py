"""The context of author functions: that of components, with access to the whole cluster and to the run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from konverge._internal.component import ReconcileContext
from konverge._internal.runtime import CachedClient, Process
from konverge.clock import Clock, Entropy

if TYPE_CHECKING:
    from konverge._internal.runtime.event_recorder import ClusterEventRecorder
    from konverge._internal.runtime.observability import Metrics

__all__ = ["Companion", "OperatorRun", "OwnerContext"]


@dataclass(frozen=True, eq=False)
class OperatorRun:
    """One run of an operator; the key for the state of a run, because an operator can run twice at the same time.

    Args:
        clock: The time.
        entropy: The randomness.
        metrics: The metrics of the run; None without metrics.
        sections: Additional sections of the debug page, by title: rows of a table, read in the event loop.
        events: The recorder of events; None records none.
    """

    clock: Clock
    entropy: Entropy
    metrics: Metrics | None = None
    sections: dict[str, Callable[[], list[dict[str, Any]]]] = field(default_factory=dict)
    events: ClusterEventRecorder | None = None


Companion: TypeAlias = Callable[[OperatorRun, Process], AbstractAsyncContextManager[object]]
"""A background service that runs from before the first list of owners until after the last reconcile."""


@dataclass
class OwnerContext(ReconcileContext):
    """The context of a reconcile that the runtime runs."""

    run: OperatorRun | None = None
    """The run of the operator; None without a run, as in a dry run."""

    @property
    def cluster(self) -> CachedClient:
        """The client with all its verbs; reads come from shared caches, including own writes.

        ::

            pods = await ctx.cluster.list(POD, namespace=ctx.owner_key.namespace, labels={"app": app.metadata.name})
        """
        assert isinstance(self.client, CachedClient)
        return self.client

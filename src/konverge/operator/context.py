"""What an operator's own functions work with: the context of components, and the whole cluster beside it."""

from __future__ import annotations

from dataclasses import dataclass

from konverge.component import ReconcileContext
from konverge.runtime import CachedClient

__all__ = ["OwnerContext"]


@dataclass
class OwnerContext(ReconcileContext):
    """The context of a pass that the runtime runs."""

    @property
    def cluster(self) -> CachedClient:
        """The client of the pass with all its verbs: reads come from shared caches, own writes included.

        ::

            pods = await ctx.cluster.list(POD, namespace=ctx.owner_key.namespace, labels={"app": app.metadata.name})
        """
        assert isinstance(self.client, CachedClient)
        return self.client

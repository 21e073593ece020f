"""Clusters with roles: what the real API server has anyway, the embedded one when it is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.clock import SeededEntropy, SimulatedClock, SystemEntropy
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer, RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster

__all__ = ["cluster_with_roles"]


@asynccontextmanager
async def cluster_with_roles(control_plane: RealCluster | None, namespace: str) -> AsyncIterator[Cluster]:
    """A cluster in which everybody may do what roles say; with no control plane it is an embedded one.

    Args:
        control_plane: The real one.
        namespace: What the name of the test's namespace begins with.
    """
    async with AsyncExitStack() as stack:
        if control_plane is not None:
            server: Any = RealServer(control_plane)
        else:
            clock = SimulatedClock()
            running = LocalCluster(clock=clock, entropy=SeededEntropy(), authorization="rbac")
            server = stack.enter_context(EmbeddedServer(await stack.enter_async_context(running), clock))
        yield await stack.enter_async_context(Cluster(server, f"{namespace}-{SystemEntropy().name_suffix(8)}"))

"""Clusters with roles: what the real API server has anyway, the embedded one when it is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from konverge.clock import Clock, SeededEntropy, SimulatedClock, SystemClock, SystemEntropy
from konverge_cluster._internal.testing.cluster_servers import EmbeddedServer, RealServer
from konverge_cluster.controlplane import RealCluster
from konverge_cluster.embedded import LocalCluster
from konverge_cluster.testing import Cluster

__all__ = ["cluster_with_roles"]


@asynccontextmanager
async def cluster_with_roles(
    control_plane: RealCluster | None, namespace: str, *, is_simulated: bool = True
) -> AsyncIterator[Cluster]:
    """Provide a cluster in which roles decide; without a control plane it is an embedded one.

    Args:
        control_plane: The real control plane.
        namespace: The start of the name of the test's namespace.
        is_simulated: Whether the time of the embedded cluster is simulated.
    """
    async with AsyncExitStack() as stack:
        if control_plane is not None:
            server: Any = RealServer(control_plane)
        else:
            clock: Clock = SimulatedClock() if is_simulated else SystemClock()
            running = LocalCluster(clock=clock, entropy=SeededEntropy(), authorization="rbac")
            server = stack.enter_context(EmbeddedServer(await stack.enter_async_context(running), clock))
        yield await stack.enter_async_context(Cluster(server, f"{namespace}-{SystemEntropy().name_suffix(8)}"))

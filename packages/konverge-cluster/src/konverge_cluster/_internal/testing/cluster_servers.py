"""Adapters that make the embedded and the real cluster usable for `konverge_cluster.testing.Cluster`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from konverge._internal.client import Transport
from konverge._internal.client.http_transport import HttpTransport
from konverge._internal.client.kubeconfig import load_kubeconfig
from konverge.clock import Clock, SystemClock
from konverge_cluster._internal.controlplane import RealCluster
from konverge_cluster._internal.embedded import LocalCluster
from konverge_cluster._internal.testing.audit_requests import AuditedRequest, read_audit_log

__all__ = ["EmbeddedServer", "RealServer"]


class EmbeddedServer:
    """The embedded cluster, called in process. As a context manager it removes the files that it wrote.

    Args:
        cluster: The running cluster.
        clock: The clock of that cluster.
    """

    name = "embedded"

    def __init__(self, cluster: LocalCluster, clock: Clock) -> None:
        self._cluster = cluster
        self.clock = clock
        self._closing = ExitStack()
        self._kubeconfig: Path | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.close()

    def open_transport(self) -> Transport:
        """Open a transport that calls the server in process."""
        return self._cluster.transport()

    def list_requests(self) -> Iterable[AuditedRequest]:
        """Return the requests that the cluster recorded."""
        return [
            AuditedRequest(entry.time, entry.user_agent, entry.verb, entry.path, entry.code)
            for entry in self._cluster.requests
        ]

    async def write_kubeconfig(self) -> Path:
        """Serve HTTP if not done before, and write a kubeconfig for it."""
        if self._kubeconfig is None:
            url = await self._cluster.serve()
            folder = self._closing.enter_context(tempfile.TemporaryDirectory(prefix="konverge-"))
            self._kubeconfig = Path(folder) / "kubeconfig"
            self._kubeconfig.write_text(_build_kubeconfig(url))
        return self._kubeconfig


class RealServer:
    """The real control plane, accessed over HTTPS as an administrator.

    Args:
        control_plane: The running control plane. The recorded requests begin now.
    """

    name = "real"

    def __init__(self, control_plane: RealCluster) -> None:
        self.clock: Clock = SystemClock()
        self._control_plane = control_plane
        self._begin = control_plane.audit_log.stat().st_size

    def open_transport(self) -> Transport:
        """Open a transport with its own connections."""
        # Ignore the environment: its proxy must not receive requests for loopback.
        return HttpTransport(load_kubeconfig(self._control_plane.kubeconfig, env={}))

    def list_requests(self) -> Iterable[AuditedRequest]:
        """Return the requests from the server's audit log."""
        return read_audit_log(self._control_plane.audit_log, self._begin)

    async def write_kubeconfig(self) -> Path:
        """Return the kubeconfig of the control plane."""
        return self._control_plane.kubeconfig


def _build_kubeconfig(url: str) -> str:
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "embedded",
            "clusters": [{"name": "embedded", "cluster": {"server": url}}],
            "users": [{"name": "embedded", "user": {}}],
            "contexts": [{"name": "embedded", "context": {"cluster": "embedded", "user": "embedded"}}],
        }
    )

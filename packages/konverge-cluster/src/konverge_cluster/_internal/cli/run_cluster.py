"""The embedded cluster of ``konverge run --local``, which runs as long as the command."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import click

from konverge.clock import Clock, SystemEntropy
from konverge_cluster._internal.cli.kubeconfig_file import build_kubeconfig, write_kubeconfig
from konverge_cluster._internal.embedded import LocalCluster

__all__ = ["run_cluster"]


@asynccontextmanager
async def run_cluster(clock: Clock) -> AsyncIterator[Path]:
    """Serve an embedded cluster while the block runs, and print how to reach it.

    Args:
        clock: The clock of the cluster.

    Returns:
        The path of the kubeconfig.
    """
    with tempfile.TemporaryDirectory(prefix="konverge-") as folder:
        async with LocalCluster(clock=clock, entropy=SystemEntropy()) as cluster:
            file = Path(folder) / "kubeconfig"
            write_kubeconfig(build_kubeconfig(await cluster.serve(), "run"), file)
            click.echo(f"export KUBECONFIG={shlex.quote(str(file))}")
            yield file

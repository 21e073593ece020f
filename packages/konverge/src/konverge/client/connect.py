"""From nothing to a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from konverge.client.client import Client
from konverge.client.config import ClusterConfig
from konverge.client.in_cluster import SERVICE_ACCOUNT_FOLDER, is_in_cluster, load_in_cluster
from konverge.client.kubeconfig import list_kubeconfig_paths, load_kubeconfig
from konverge.clock import Clock, Entropy

__all__ = ["connect", "load_cluster_config"]


def load_cluster_config(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    env: Mapping[str, str] = os.environ,
    *,
    service_account_folder: Path = SERVICE_ACCOUNT_FOLDER,
    clock: Clock | None = None,
) -> ClusterConfig:
    """Which cluster to use: the kubeconfig's; in a Pod without one, the Pod's own.

    Raises:
        konverge.errors.ConfigurationError: There is none, or it cannot be used.
    """
    named = kubeconfig is not None or context is not None or bool(env.get("KUBECONFIG"))
    in_pod = is_in_cluster(env, service_account_folder)
    if not named and in_pod and not any(path.is_file() for path in list_kubeconfig_paths(None, env)):
        return load_in_cluster(env, folder=service_account_folder, clock=clock)
    return load_kubeconfig(kubeconfig, context, env, clock=clock)


def connect(
    kubeconfig: str | Path | None = None,
    context: str | None = None,
    *,
    user_agent: str = "konverge",
    env: Mapping[str, str] = os.environ,
    clock: Clock | None = None,
    entropy: Entropy | None = None,
) -> Client:
    """A client of the cluster that `load_cluster_config` finds; nothing is sent yet. Use it with ``async with``.

    Raises:
        konverge.errors.ConfigurationError: There is none, or it cannot be used.
    """
    from konverge.client.http_transport import (
        HttpTransport,  # not at the top: the HTTP library takes a quarter of a second
    )

    config = load_cluster_config(kubeconfig, context, env, clock=clock)
    return Client(HttpTransport(config, clock=clock), user_agent=user_agent, clock=clock, entropy=entropy)

"""The connection to a cluster: load its configuration and create a client."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from konverge._internal.client.client import Client
from konverge._internal.client.config import ClusterConfig
from konverge._internal.client.in_cluster import SERVICE_ACCOUNT_FOLDER, is_in_cluster, load_in_cluster
from konverge._internal.client.kubeconfig import list_kubeconfig_paths, load_kubeconfig
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
    """Load the configuration of the cluster: from the kubeconfig, or in a Pod without one, from the service account.

    Raises:
        konverge.errors.ConfigurationError: There is no configuration, or it is invalid.
    """
    is_named = kubeconfig is not None or context is not None or bool(env.get("KUBECONFIG"))
    in_pod = is_in_cluster(env, service_account_folder)
    if not is_named and in_pod and not any(path.is_file() for path in list_kubeconfig_paths(None, env)):
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
    """Return a client for the cluster of `load_cluster_config`, without a request. Use it with ``async with``.

    Raises:
        konverge.errors.ConfigurationError: There is no configuration, or it is invalid.
    """
    from konverge._internal.client.http_transport import (
        HttpTransport,  # not at the top: the HTTP library takes a quarter of a second
    )

    config = load_cluster_config(kubeconfig, context, env, clock=clock)
    return Client(HttpTransport(config, clock=clock), user_agent=user_agent, clock=clock, entropy=entropy)

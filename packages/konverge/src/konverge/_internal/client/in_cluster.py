"""The configuration for the cluster of this Pod, from the files and variables of the kubelet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from konverge._internal.client.config import ClusterConfig, TlsConfig
from konverge._internal.client.credentials import TokenFile
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError

__all__ = ["SERVICE_ACCOUNT_FOLDER", "is_in_cluster", "load_in_cluster"]

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The folder in which the kubelet mounts the Pod's token, the CA and the namespace."""


def is_in_cluster(env: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Return True if this process seems to run in a Pod with a service account."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").is_file()


def load_in_cluster(
    env: Mapping[str, str] = os.environ, *, folder: Path = SERVICE_ACCOUNT_FOLDER, clock: Clock | None = None
) -> ClusterConfig:
    """Load the configuration with the Pod's service account; the token and the CA are read again every minute.

    Raises:
        konverge.errors.ConfigurationError: The process does not run in a Pod, or the Pod has no token.
    """
    host, port = env.get("KUBERNETES_SERVICE_HOST", ""), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigurationError("this process does not run in a Pod: KUBERNETES_SERVICE_HOST is not set")
    try:
        authority = (folder / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {folder / 'ca.crt'}: {error.strerror}. Does the Pod have automountServiceAccountToken: false?"
        ) from error
    try:
        namespace = (folder / "namespace").read_text("utf-8").strip()
    except OSError:
        namespace = ""
    return ClusterConfig(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        source="the Pod's service account",
        namespace=namespace or "default",
        tls=TlsConfig(authority=authority, authority_file=folder / "ca.crt"),
        credentials=TokenFile(
            folder / "token", clock or SystemClock(), description="the token of the Pod's service account"
        ),
    )

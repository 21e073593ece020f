"""The cluster that this process runs in, as the kubelet describes it to each Pod."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from konverge.client.config import ClusterConfig, TlsConfig
from konverge.client.credentials import TokenFile
from konverge.clock import Clock, SystemClock
from konverge.errors import ConfigurationError

__all__ = ["SERVICE_ACCOUNT_FOLDER", "is_in_cluster", "load_in_cluster"]

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts the Pod's token, the CA and the namespace."""


def is_in_cluster(env: Mapping[str, str] = os.environ, folder: Path = SERVICE_ACCOUNT_FOLDER) -> bool:
    """Tell whether this looks like a Pod with a service account."""
    return bool(env.get("KUBERNETES_SERVICE_HOST")) and (folder / "token").is_file()


def load_in_cluster(
    env: Mapping[str, str] = os.environ, *, folder: Path = SERVICE_ACCOUNT_FOLDER, clock: Clock | None = None
) -> ClusterConfig:
    """The Pod's own credentials; the token and the authority are read again each minute.

    Raises:
        konverge.errors.ConfigurationError: This is no Pod, or one without a service account's token.
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

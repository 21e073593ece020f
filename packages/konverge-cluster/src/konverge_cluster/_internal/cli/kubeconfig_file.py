"""Kubeconfig files for clusters on this machine, which never overwrite a file with other clusters."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import msgspec
import yaml

from konverge._internal.kube.yaml_loader import YamlLimits, load_yaml
from konverge.errors import ConfigurationError

__all__ = ["build_kubeconfig", "write_kubeconfig"]

_PREFIX = "konverge"


def build_kubeconfig(url: str, name: str, *, authority: bytes = b"", token: str = "") -> bytes:
    """Return the kubeconfig of a cluster as JSON, which is also YAML.

    Args:
        url: The URL on which the server listens.
        name: The name that distinguishes the cluster from others on this machine.
        authority: The certificate of the authority that signed the server's certificate, in PEM; empty without TLS.
        token: The bearer token for the server; empty if the server requires no authentication.
    """
    entry = f"{_PREFIX}-{name}"
    cluster = {"server": url}
    if authority:
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": entry,
        "clusters": [{"name": entry, "cluster": cluster}],
        "users": [{"name": entry, "user": {"token": token} if token else {}}],
        "contexts": [{"name": entry, "context": {"cluster": entry, "user": entry, "namespace": "default"}}],
    }
    return json.dumps(document, indent=2).encode()


def write_kubeconfig(content: bytes, file: Path) -> None:
    """Write a kubeconfig that only its owner can read; an existing file keeps its permission bits.

    A file that describes other clusters belongs to the user and is not overwritten.

    Raises:
        konverge.errors.ConfigurationError: The file exists and describes other clusters.
    """
    if file.exists() and not _is_own_file(file):
        raise ConfigurationError(
            f"{file}: expected no file or a kubeconfig of konverge, found other clusters in it; choose another file"
        )
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as written:
        written.write(content)


def _is_own_file(file: Path) -> bool:
    text = file.read_bytes()
    try:
        names = msgspec.convert(load_yaml(text, YamlLimits(may_repeat_fields=True)), _KubeconfigNames)
    except (yaml.YAMLError, msgspec.ValidationError):
        return False
    return all(cluster.name.startswith(_PREFIX) for cluster in names.clusters)


class _NamedCluster(msgspec.Struct):
    name: str = ""


class _KubeconfigNames(msgspec.Struct):
    clusters: list[_NamedCluster]

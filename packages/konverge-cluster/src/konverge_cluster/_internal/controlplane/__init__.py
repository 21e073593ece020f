"""A real control plane on this machine: kube-apiserver and its companions as plain processes.

`find_binaries` looks for the programs in `KUBEBUILDER_ASSETS`, else in the folder of ``make control-plane``.
`RealCluster` starts etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok, which simulates one node
and its kubelet. They use free ports on loopback, data in memory and new credentials, and are ready in a few seconds.
The results are a kubeconfig and an audit log of every request. No process outlives its user: a supervisor owns the
processes; it ends them and removes their files as soon as the process that started it ends, for any reason.

Use it for tests, for benchmarks and for ``konverge local up --real``; it does not keep data.
"""

from konverge_cluster._internal.controlplane.binaries import (
    KUBERNETES_VERSION,
    PROGRAMS,
    BinariesNotFoundError,
    find_binaries,
    get_cache_folder,
)
from konverge_cluster._internal.controlplane.real_cluster import ControlPlaneError, RealCluster

__all__ = [
    "KUBERNETES_VERSION",
    "PROGRAMS",
    "BinariesNotFoundError",
    "ControlPlaneError",
    "RealCluster",
    "find_binaries",
    "get_cache_folder",
]

"""A real control plane on this machine: kube-apiserver and what belongs around it, as plain processes.

`find_binaries` looks for the programs where `KUBEBUILDER_ASSETS` points, else where ``make control-plane`` puts them.
`RealCluster` starts them on loopback with free ports, its data in memory and its own credentials, and is ready in a few
seconds: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, and kwok, which plays one node and its kubelet.
What comes out is a kubeconfig, and an audit log of every request. Nothing outlives its user: the processes belong to
a supervisor that ends them and removes their files as soon as whoever started it is gone, in whatever way.

It is for tests, for benchmarks and for ``konverge local up --real``; it is no place to keep data.
"""

from konverge_cluster.controlplane.binaries import (
    KUBERNETES_VERSION,
    PROGRAMS,
    BinariesNotFoundError,
    find_binaries,
    get_cache_folder,
)
from konverge_cluster.controlplane.real_cluster import ControlPlaneError, RealCluster

__all__ = [
    "KUBERNETES_VERSION",
    "PROGRAMS",
    "BinariesNotFoundError",
    "ControlPlaneError",
    "RealCluster",
    "find_binaries",
    "get_cache_folder",
]

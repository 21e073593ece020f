"""The kinds that the controllers use, and the names of their field managers."""

from __future__ import annotations

from konverge._internal.kube import GroupVersionKind

__all__ = [
    "CONFIG_MAP",
    "CONTROLLER_MANAGER",
    "CONTROLLER_REVISION",
    "CUSTOM_RESOURCE_DEFINITION",
    "DAEMON_SET",
    "DEPLOYMENT",
    "ENDPOINTS",
    "ENDPOINT_SLICE",
    "JOB",
    "KUBELET",
    "NAMESPACE",
    "NODE",
    "NODE_NAME",
    "PERSISTENT_VOLUME",
    "PERSISTENT_VOLUME_CLAIM",
    "POD",
    "POD_DISRUPTION_BUDGET",
    "REPLICA_SET",
    "SCHEDULER",
    "SERVICE",
    "SERVICE_ACCOUNT",
    "STATEFUL_SET",
    "STORAGE_CLASS",
]

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
ENDPOINTS = GroupVersionKind("", "v1", "Endpoints")
NAMESPACE = GroupVersionKind("", "v1", "Namespace")
NODE = GroupVersionKind("", "v1", "Node")
PERSISTENT_VOLUME = GroupVersionKind("", "v1", "PersistentVolume")
PERSISTENT_VOLUME_CLAIM = GroupVersionKind("", "v1", "PersistentVolumeClaim")
POD = GroupVersionKind("", "v1", "Pod")
SERVICE = GroupVersionKind("", "v1", "Service")
SERVICE_ACCOUNT = GroupVersionKind("", "v1", "ServiceAccount")
CONTROLLER_REVISION = GroupVersionKind("apps", "v1", "ControllerRevision")
DAEMON_SET = GroupVersionKind("apps", "v1", "DaemonSet")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
REPLICA_SET = GroupVersionKind("apps", "v1", "ReplicaSet")
STATEFUL_SET = GroupVersionKind("apps", "v1", "StatefulSet")
CUSTOM_RESOURCE_DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
JOB = GroupVersionKind("batch", "v1", "Job")
POD_DISRUPTION_BUDGET = GroupVersionKind("policy", "v1", "PodDisruptionBudget")
ENDPOINT_SLICE = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
STORAGE_CLASS = GroupVersionKind("storage.k8s.io", "v1", "StorageClass")

# The only node of the cluster.
NODE_NAME = "node-0"
# Field managers, as `kubectl get --show-managed-fields` prints them.
CONTROLLER_MANAGER = "kube-controller-manager"
SCHEDULER = "kube-scheduler"
KUBELET = "kubelet"

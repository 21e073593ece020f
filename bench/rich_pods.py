"""Pods like those of a busy cluster: an owner, a service account's volume, tolerations, conditions, managed fields."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["rich_pod"]

_NAMESPACES = 20
_OWNERS = 200
_NODES = 50
_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_IMAGE = "registry.example.com/team/web"
_DIGEST = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 2
_TOKEN = "kube-api-access-x7k2p"


def rich_pod(number: int, resource_version: str, *, settings: int = 4) -> bytes:
    """Return one Pod in JSON, as kube-apiserver writes it.

    Args:
        number: The number of the Pod; its name, UID, addresses and owner follow from it.
        resource_version: The resourceVersion.
        settings: The number of environment variables in its container: with 4 the Pod has 5.1 kB, with 1 it has 4.3 kB.
    """
    owner = f"web-{number % _OWNERS:03d}-6d4cf56db6"
    owner_uid = f"11111111-2222-4333-8444-{number % _OWNERS:012d}"
    metadata = {
        "name": f"{owner}-{number:05d}",
        "generateName": f"{owner}-",
        "namespace": f"team-{number % _NAMESPACES}",
        "uid": f"aaaaaaaa-bbbb-4ccc-8ddd-{number:012d}",
        "resourceVersion": resource_version,
        "generation": 1,
        "creationTimestamp": "2026-11-21T08:00:00Z",
        "labels": {"app": f"web-{number % _OWNERS:03d}", "pod-template-hash": "6d4cf56db6", "tier": "frontend"},
        "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "8080"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": owner,
                "uid": owner_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _build_managed_fields(owner_uid, settings),
    }
    return msgspec.json.encode(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": metadata,
            "spec": _spec(number, settings),
            "status": _status(number),
        }
    )


def _spec(number: int, settings: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": f"{_IMAGE}:1.29.3",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}-{number % 7}"} for index in range(settings)],
        "resources": {
            "limits": {"cpu": "500m", "memory": "256Mi"},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
        "volumeMounts": [
            {"name": _TOKEN, "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]
            }
        },
    ]
    return {
        "volumes": [{"name": _TOKEN, "projected": {"sources": sources, "defaultMode": 420}}],
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "nodeName": f"node-{number % _NODES:02d}",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(number: int) -> dict[str, Any]:
    address = f"10.1.{number // 250}.{number % 250}"
    container = {
        "name": "main",
        "state": {"running": {"startedAt": "2026-11-21T08:00:02Z"}},
        "lastState": {},
        "ready": True,
        "restartCount": 0,
        "image": f"{_IMAGE}:1.29.3",
        "imageID": f"{_IMAGE}@sha256:{_DIGEST}",
        "containerID": f"containerd://{number:064x}",
        "started": True,
    }
    return {
        "phase": "Running",
        "conditions": [
            {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-21T08:00:02Z"}
            for name in _CONDITIONS
        ],
        "hostIP": "10.0.0.4",
        "hostIPs": [{"ip": "10.0.0.4"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": "2026-11-21T08:00:00Z",
        "containerStatuses": [container],
        "qosClass": "Burstable",
    }


def _fields(*names: str) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


def _build_managed_fields(owner_uid: str, settings: int) -> list[dict[str, Any]]:
    env = {f'k:{{"name":"SETTING_{index}"}}': {".": {}, **_fields("name", "value")} for index in range(settings)}
    port = {".": {}, **_fields("containerPort", "protocol")}
    container = {
        ".": {},
        "f:env": {".": {}, **env},
        **_fields("image", "imagePullPolicy", "name", "terminationMessagePath", "terminationMessagePolicy"),
        "f:ports": {".": {}, 'k:{"containerPort":8080,"protocol":"TCP"}': port},
        "f:resources": {".": {}, **_fields("limits", "requests")},
    }
    by_controller = {
        "f:metadata": {
            "f:generateName": {},
            "f:labels": {".": {}, **_fields("app", "pod-template-hash", "tier")},
            "f:ownerReferences": {".": {}, f'k:{{"uid":"{owner_uid}"}}': {}},
        },
        "f:spec": {
            "f:containers": {'k:{"name":"main"}': container},
            **_fields(
                "dnsPolicy", "restartPolicy", "schedulerName", "securityContext", "terminationGracePeriodSeconds"
            ),
        },
    }
    condition = {".": {}, **_fields("lastProbeTime", "lastTransitionTime", "status", "type")}
    by_kubelet = {
        "f:status": {
            "f:conditions": {f'k:{{"type":"{name}"}}': condition for name in _CONDITIONS[:4]},
            **_fields("containerStatuses", "hostIP", "phase", "podIP", "startTime"),
        }
    }
    common = {"operation": "Update", "apiVersion": "v1", "time": "2026-11-21T08:00:03Z", "fieldsType": "FieldsV1"}
    return [
        {"manager": "kube-controller-manager", "fieldsV1": by_controller, **common},
        {"manager": "kubelet", "fieldsV1": by_kubelet, "subresource": "status", **common},
    ]

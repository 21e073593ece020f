"""The API server's defaults for the built-in kinds, kind by kind (measured on Kubernetes 1.36)."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from konverge._internal.apply.builtin_schemas import find_builtin_schema
from konverge._internal.apply.round_trip import round_trip_value
from konverge._internal.kube import GroupVersionKind, Object

__all__ = ["with_builtin_defaults"]


def with_builtin_defaults(obj: Object) -> Object:
    """Return the object in its stored form, before the API server's admission and strategy.

    Nulls and meaningless zeros are removed, quantities and times get their canonical form, ``stringData`` moves into
    ``data``, and defaults are added. Values that only the server can know (addresses, UIDs, generation, the reset of
    status) are not added. An object of a kind that is not built in is returned unchanged.

    Returns:
        A new object; unchanged parts are shared with the given one.
    """
    schema = find_builtin_schema(GroupVersionKind.of(obj))
    return round_trip_value(obj, schema, fill_defaults) if schema is not None else obj


def fill_defaults(name: str, value: dict[str, Any]) -> None:
    """Add the defaults of a value of the type of that definition, in place.

    The value's own meaningless zeros are removed already. Its parts follow later, so a rule sees them without defaults.
    """
    constants = _CONSTANTS.get(name)
    if constants is not None:
        for field, default in constants.items():
            if field not in value:
                value[field] = {} if default == {} else default
    rule = _RULES.get(name)
    if rule is not None:
        rule(value)


_CORE = "io.k8s.api.core.v1."
_APPS = "io.k8s.api.apps.v1."
_BATCH = "io.k8s.api.batch.v1."
_NETWORKING = "io.k8s.api.networking.v1."
_RBAC = "io.k8s.api.rbac.v1."
_STORAGE = "io.k8s.api.storage.v1."
_AUTOSCALING = "io.k8s.api.autoscaling.v2."
_DISCOVERY = "io.k8s.api.discovery.v1."
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

_RBAC_GROUP = "rbac.authorization.k8s.io"
_FILE_MODE = 0o644
_TERMINATION = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}

# The values of absent fields. An empty mapping then gets the defaults of its own type.
_CONSTANTS: Mapping[str, Mapping[str, Any]] = {
    _CORE + "PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    _CORE + "Container": _TERMINATION,
    _CORE + "EphemeralContainer": _TERMINATION,
    _CORE + "Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "io.k8s.api.scheduling.v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    _CORE + "HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    _CORE + "SecretVolumeSource": {"defaultMode": _FILE_MODE},
    _CORE + "ConfigMapVolumeSource": {"defaultMode": _FILE_MODE},
    _CORE + "DownwardAPIVolumeSource": {"defaultMode": _FILE_MODE},
    _CORE + "ProjectedVolumeSource": {"defaultMode": _FILE_MODE},
    _CORE + "ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    _CORE + "HostPathVolumeSource": {"type": ""},
    _CORE + "ObjectFieldSelector": {"apiVersion": "v1"},
    _CORE + "EndpointPort": {"protocol": "TCP"},
    _CORE + "PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    _CORE + "PersistentVolumeStatus": {"phase": "Pending"},
    _CORE + "PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    _CORE + "PersistentVolumeClaimStatus": {"phase": "Pending"},
    _CORE + "NamespaceStatus": {"phase": "Active"},
    _APPS + "DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    _APPS + "RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    _APPS + "DaemonSetSpec": {"revisionHistoryLimit": 10},
    _APPS + "RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    _APPS + "ReplicaSetSpec": {"replicas": 1},
    _CORE + "ReplicationControllerSpec": {"replicas": 1},
    _APPS + "StatefulSetSpec": {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {},
    },
    _APPS + "StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    _APPS + "RollingUpdateStatefulSetStrategy": {"partition": 0},
    _BATCH + "CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    _BATCH + "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    _NETWORKING + "NetworkPolicyPort": {"protocol": "TCP"},
    _NETWORKING + "IngressClassParametersReference": {"scope": "Cluster"},
    _RBAC + "RoleRef": {"apiGroup": _RBAC_GROUP},
    _STORAGE + "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    _STORAGE + "CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    _DISCOVERY + "EndpointPort": {"name": "", "protocol": "TCP"},
    _EXTENSIONS + "CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    _EXTENSIONS + "ServiceReference": {"port": 443},
}


def _get_list(value: Mapping[str, Any], field: str) -> list[Any]:
    found = value.get(field)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _get_map(value: Mapping[str, Any], field: str) -> dict[str, Any]:
    mapping = value.get(field)
    return mapping if isinstance(mapping, dict) else {}


# A repository with an optional registry before it, then a tag, then a digest (the reference grammar of distribution).
_IMAGE = re.compile(
    r"(?:[\w.-]+(?::\d+)?/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>[A-Za-z][\w.+-]*:[0-9a-fA-F]{32,}))?"
)


def _choose_pull_policy(image: Any) -> str:
    """Return ``Always`` for the tag ``latest``, which is also the tag of an image without tag and digest."""
    match = _IMAGE.fullmatch(image) if isinstance(image, str) and len(image) <= 1024 else None
    if match is None:
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def _fill_container(container: dict[str, Any]) -> None:
    container.setdefault("imagePullPolicy", _choose_pull_policy(container.get("image")))


def _fill_image_volume(source: dict[str, Any]) -> None:
    source.setdefault("pullPolicy", _choose_pull_policy(source.get("reference")))


def _fill_pod_spec(spec: dict[str, Any]) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account  # The second is the old name of the first.


def _fill_pod(pod: dict[str, Any]) -> None:
    """Add the defaults of a Pod that a template does not get."""
    spec = dict(_get_map(pod, "spec"))
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for field in ("containers", "initContainers"):
        containers = spec.get(field)
        if isinstance(containers, list):
            spec[field] = [_fill_pod_container(each, spec) if isinstance(each, dict) else each for each in containers]
    pod["spec"] = spec


def _fill_pod_container(container: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    container = dict(container)
    resources = _get_map(container, "resources")
    limits = _get_map(resources, "limits")
    if limits:
        container["resources"] = {**resources, "requests": {**limits, **_get_map(resources, "requests")}}
    if spec.get("hostNetwork") and container.get("ports"):
        container["ports"] = [
            {**port, "hostPort": port.get("hostPort") or port.get("containerPort")}
            for port in _get_list(container, "ports")
        ]
    return container


_VOLUME_FIELDS = frozenset({"name"})


def _fill_volume(volume: dict[str, Any]) -> None:
    if volume.keys() <= _VOLUME_FIELDS:
        volume["emptyDir"] = {}


def _fill_service_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        client = _get_map(_get_map(spec, "sessionAffinityConfig"), "clientIP")
        if client.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    kind = spec.setdefault("type", "ClusterIP")
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _fill_service_port(port: dict[str, Any]) -> None:
    if port.get("targetPort") in (0, "", None):
        port["targetPort"] = port.get("port", 0)


def _fill_secret(secret: dict[str, Any]) -> None:
    plain = secret.pop("stringData", None)
    if isinstance(plain, dict):
        encoded = {name: _encode_base64(text) for name, text in plain.items()}
        secret["data"] = {**_get_map(secret, "data"), **encoded}
    secret.setdefault("type", "Opaque")


def _fill_service_account(account: dict[str, Any]) -> None:
    if isinstance(account.get("secrets"), list):
        account["secrets"] = [_keep_name(each) for each in account["secrets"]]


def _keep_name(reference: Any) -> Any:
    """Return the part of a reference to a Secret that the server keeps."""
    return {"name": reference["name"]} if isinstance(reference, dict) and "name" in reference else reference


def _encode_base64(text: Any) -> Any:
    return base64.b64encode((text or "").encode()).decode() if isinstance(text, str) or text is None else text


def _fill_namespace(namespace: dict[str, Any]) -> None:
    metadata = _get_map(namespace, "metadata")
    name = metadata.get("name")
    if name:
        labels = {**_get_map(metadata, "labels"), "kubernetes.io/metadata.name": name}
        namespace["metadata"] = {**metadata, "labels": labels}


def _fill_limit_range_item(item: dict[str, Any]) -> None:
    if item.get("type") != "Container":
        return
    limits = {**_get_map(item, "max"), **_get_map(item, "default")}
    requests = {**_get_map(item, "min"), **limits, **_get_map(item, "defaultRequest")}
    if limits:
        item["default"] = limits
    if requests:
        item["defaultRequest"] = requests


def _fill_node_status(status: dict[str, Any]) -> None:
    if "capacity" in status:
        status.setdefault("allocatable", status["capacity"])


def _fill_stateful_set_spec(spec: dict[str, Any]) -> None:
    if spec.get("volumeClaimTemplates"):
        typed = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        spec["volumeClaimTemplates"] = [typed | claim for claim in _get_list(spec, "volumeClaimTemplates")]


def _build_strategy_rule(*, also_when_named: bool) -> Callable[[dict[str, Any]], None]:
    """Build the rule for an update strategy, which is a rolling update by default.

    The rules of the rolling update's own type then add its numbers.
    """

    def fill_strategy(strategy: dict[str, Any]) -> None:
        is_named = "type" in strategy
        if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate" and (also_when_named or not is_named):
            strategy.setdefault("rollingUpdate", {})

    return fill_strategy


def _fill_replication_controller(controller: dict[str, Any]) -> None:
    """Add the selector and the labels of a ReplicationController, which are those of its pods."""
    spec, metadata = dict(_get_map(controller, "spec")), dict(_get_map(controller, "metadata"))
    labels = _get_map(_get_map(_get_map(spec, "template"), "metadata"), "labels")
    if not labels:
        return
    if not spec.get("selector"):
        controller["spec"] = {**spec, "selector": dict(labels)}
    if not metadata.get("labels"):
        controller["metadata"] = {**metadata, "labels": dict(labels)}


def _fill_job(job: dict[str, Any]) -> None:
    """Add the defaults of a Job that the template in a CronJob does not get."""
    spec = job["spec"] = dict(_get_map(job, "spec"))
    if spec.get("parallelism") is None:
        if spec.get("completions") is None:
            spec["completions"] = 1
        spec["parallelism"] = 1
    for field, default in (
        ("completionMode", "NonIndexed"),
        ("suspend", False),
        ("manualSelector", False),
        ("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1),
        ("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"),
    ):
        if spec.get(field) is None:
            spec[field] = default
    labels = _get_map(_get_map(_get_map(spec, "template"), "metadata"), "labels")
    metadata = _get_map(job, "metadata")
    if labels and not metadata.get("labels"):
        job["metadata"] = {**metadata, "labels": labels}


def _fill_network_policy_spec(spec: dict[str, Any]) -> None:
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]


def _fill_subject(subject: dict[str, Any]) -> None:
    if subject.get("kind") in ("User", "Group"):
        subject.setdefault("apiGroup", _RBAC_GROUP)


_SCALE_UP: Mapping[str, Any] = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Mapping[str, Any] = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}
_CPU_METRIC: Mapping[str, Any] = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def _fill_autoscaler_spec(spec: dict[str, Any]) -> None:
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [_CPU_METRIC]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        spec["behavior"] = {
            **behavior,
            "scaleUp": {**_SCALE_UP, **_get_map(behavior, "scaleUp")},
            "scaleDown": {**_SCALE_DOWN, **_get_map(behavior, "scaleDown")},
        }


def _fill_definition(definition: dict[str, Any]) -> None:
    status = _get_map(definition, "status")
    stored = [each.get("name") for each in _get_list(_get_map(definition, "spec"), "versions") if each.get("storage")]
    if stored and not status.get("storedVersions"):
        definition["status"] = {**status, "storedVersions": stored[:1]}


def _fill_definition_names(names: dict[str, Any]) -> None:
    kind = names.get("kind")
    if isinstance(kind, str) and kind:
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")


_RULES: Mapping[str, Callable[[dict[str, Any]], None]] = {
    _CORE + "Container": _fill_container,
    _CORE + "EphemeralContainer": _fill_container,
    _CORE + "ImageVolumeSource": _fill_image_volume,
    _CORE + "LimitRangeItem": _fill_limit_range_item,
    _CORE + "Namespace": _fill_namespace,
    _CORE + "NodeStatus": _fill_node_status,
    _CORE + "Pod": _fill_pod,
    _CORE + "PodSpec": _fill_pod_spec,
    _CORE + "ReplicationController": _fill_replication_controller,
    _CORE + "Secret": _fill_secret,
    _CORE + "ServiceAccount": _fill_service_account,
    _CORE + "ServiceSpec": _fill_service_spec,
    _CORE + "ServicePort": _fill_service_port,
    _CORE + "Volume": _fill_volume,
    _APPS + "DaemonSetUpdateStrategy": _build_strategy_rule(also_when_named=True),
    _APPS + "DeploymentStrategy": _build_strategy_rule(also_when_named=True),
    _APPS + "StatefulSetSpec": _fill_stateful_set_spec,
    _APPS + "StatefulSetUpdateStrategy": _build_strategy_rule(also_when_named=False),
    _BATCH + "Job": _fill_job,
    _NETWORKING + "NetworkPolicySpec": _fill_network_policy_spec,
    _RBAC + "Subject": _fill_subject,
    _AUTOSCALING + "HorizontalPodAutoscalerSpec": _fill_autoscaler_spec,
    _EXTENSIONS + "CustomResourceDefinition": _fill_definition,
    _EXTENSIONS + "CustomResourceDefinitionNames": _fill_definition_names,
}

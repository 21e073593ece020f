"""Functions for Kubernetes objects: metadata, conditions, workloads, Services, Jobs.

They accept objects that do not exist yet: a field that is absent or has the wrong type counts as empty, 0 or false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from konverge._internal.kube.conditions import Condition, find_condition
from konverge_box._internal.expressions.functions.collections import look_up_path
from konverge_box._internal.expressions.functions.function import build_group
from konverge_box._internal.expressions.values import Absent, format_scalar

__all__ = ["OBJECTS", "WORKLOADS"]


def _get_value(value: object, *path: str) -> Any:
    found = look_up_path(value, list(path))
    return None if isinstance(found, Absent) else found


def _get_text(value: object, *path: str) -> str:
    found = _get_value(value, *path)
    return found if isinstance(found, str) else ""


def _get_number(value: object, *path: str) -> int:
    found = _get_value(value, *path)
    return found if type(found) is int else 0


def _get_mapping(value: object, *path: str) -> Mapping[str, Any]:
    found = _get_value(value, *path)
    return found if isinstance(found, Mapping) else {}


def _get_items(value: object, *path: str) -> list[Any]:
    found = _get_value(value, *path)
    return found if isinstance(found, list) else []


def meta(value: Any | Absent) -> Mapping[str, Any]:
    """Return the metadata of the object."""
    return _get_mapping(value, "metadata")


def name(value: Any | Absent) -> str:
    """Return the name of the object: `name(children.deployment)`."""
    return _get_text(value, "metadata", "name")


def namespace(value: Any | Absent) -> str:
    """Return the namespace of the object."""
    return _get_text(value, "metadata", "namespace")


def kind(value: Any | Absent) -> str:
    """Return the kind of the object."""
    return _get_text(value, "kind")


def labels(value: Any | Absent) -> Mapping[str, Any]:
    """Return the labels of the object."""
    return _get_mapping(value, "metadata", "labels")


def annotations_(value: Any | Absent) -> Mapping[str, Any]:
    """Return the annotations of the object."""
    return _get_mapping(value, "metadata", "annotations")


def spec(value: Any | Absent) -> Mapping[str, Any]:
    """Return the spec of the object."""
    return _get_mapping(value, "spec")


def status(value: Any | Absent) -> Mapping[str, Any]:
    """Return the status of the object."""
    return _get_mapping(value, "status")


def phase(value: Any | Absent) -> str:
    """Return the phase in the status."""
    return _get_text(value, "status", "phase")


def get_label(value: Any | Absent, key: str, fallback: str = "") -> str:
    """Return a label, or the fallback: `getLabel(cross.db, "app.kubernetes.io/version", "unknown")`."""
    found = labels(value).get(key)
    return found if isinstance(found, str) else fallback


def get_annotation(value: Any | Absent, key: str, fallback: str = "") -> str:
    """Return an annotation, or the fallback if there is none."""
    found = annotations_(value).get(key)
    return found if isinstance(found, str) else fallback


def resource_exists(value: Any | Absent) -> bool:
    """Tell whether the object exists: it has a name or, for an entry of `cross`, was found."""
    found = _get_value(value, "found")
    if found is not None:
        return found is True or found == "true"
    return bool(name(value))


def is_terminating(value: Any | Absent) -> bool:
    """Tell whether the object is being deleted."""
    return bool(_get_text(value, "metadata", "deletionTimestamp"))


def generation(value: Any | Absent) -> int:
    """Return the generation, which counts the changes of the spec."""
    return _get_number(value, "metadata", "generation")


def observed_generation(value: Any | Absent) -> int:
    """Return the generation that its controller has observed."""
    return _get_number(value, "status", "observedGeneration")


def is_synced(value: Any | Absent) -> bool:
    """Tell whether its controller has observed the latest generation."""
    return 0 < generation(value) <= observed_generation(value)


def has_condition(value: Any | Absent, condition: str, expected: str = "True") -> bool:
    """Tell whether a condition has a status (default: True): `hasCondition(children.deployment, "Available")`."""
    return condition_status(value, condition) == expected


def condition_status(value: Any | Absent, condition: str) -> str:
    """Return the status of a condition: `True`, `False`, `Unknown`; empty if there is no such condition."""
    found = _find_condition(value, condition)
    return found.status if found else ""


def condition_reason(value: Any | Absent, condition: str) -> str:
    """Return the reason of a condition."""
    found = _find_condition(value, condition)
    return found.reason if found else ""


def condition_message(value: Any | Absent, condition: str) -> str:
    """Return the message of a condition."""
    found = _find_condition(value, condition)
    return found.message if found else ""


def _find_condition(value: object, condition: str) -> Condition | None:
    return find_condition(value, condition) if isinstance(value, Mapping) else None


def desired_replicas(value: Any | Absent) -> int:
    """Return the desired number of replicas; 1 if the object does not specify it."""
    found = _get_value(value, "spec", "replicas")
    return found if type(found) is int else int(isinstance(value, Mapping) and bool(value))


def ready_replicas(value: Any | Absent) -> int:
    """Return the number of ready replicas."""
    return _get_number(value, "status", "readyReplicas")


def available_replicas(value: Any | Absent) -> int:
    """Return the number of available replicas."""
    return _get_number(value, "status", "availableReplicas")


def updated_replicas(value: Any | Absent) -> int:
    """Return the number of replicas with the latest template."""
    return _get_number(value, "status", "updatedReplicas")


def replicas_ready(value: Any | Absent) -> bool:
    """Tell whether at least one replica is ready."""
    return ready_replicas(value) > 0


def all_replicas_ready(value: Any | Absent) -> bool:
    """Tell whether all desired replicas are ready; false for an absent object."""
    return isinstance(value, Mapping) and bool(value) and ready_replicas(value) >= desired_replicas(value)


def rollout_complete(value: Any | Absent) -> bool:
    """Tell whether the latest generation is fully rolled out: all replicas updated and available, no old ones left."""
    desired = desired_replicas(value)
    total = _get_number(value, "status", "replicas")
    return is_synced(value) and updated_replicas(value) >= desired and available_replicas(value) >= desired >= total


def service_cluster_ip(value: Any | Absent) -> str:
    """Return a Service's cluster IP; empty for a headless Service."""
    found = _get_text(value, "spec", "clusterIP")
    return "" if found == "None" else found


def service_node_port(value: Any | Absent) -> int:
    """Return a Service's first node port; 0 if it has none."""
    return next((number for port in _get_items(value, "spec", "ports") if (number := _get_number(port, "nodePort"))), 0)


def service_load_balancer_ip(value: Any | Absent) -> str:
    """Return the first IP address of the load balancer of a Service or an Ingress."""
    return _get_text(value, "status", "loadBalancer", "ingress", "0", "ip")


def service_load_balancer_host(value: Any | Absent) -> str:
    """Return the first host name of the load balancer of a Service or an Ingress."""
    return _get_text(value, "status", "loadBalancer", "ingress", "0", "hostname")


def endpoints_ready(value: Any | Absent) -> bool:
    """Tell whether an EndpointSlice has a ready endpoint."""
    return any(_get_value(each, "conditions", "ready") is True for each in _get_items(value, "endpoints"))


def container_image(value: Any | Absent, container: str = "") -> str:
    """Return the image of a container (default: the first) of a Pod or a workload."""
    return _get_text(_find_container(value, container), "image")


def container_env(value: Any | Absent, variable: str, container: str = "") -> str:
    """Return the value of an environment variable of a container; empty if it is in ``valueFrom``."""
    variables = [
        each for each in _get_items(_find_container(value, container), "env") if _get_text(each, "name") == variable
    ]
    return _get_text(variables[0], "value") if variables else ""


def container_port(value: Any | Absent, container: str = "") -> int:
    """Return the first port of a container; 0 if it has none."""
    return next(iter(container_ports(value, container)), 0)


def container_port_by_name(value: Any | Absent, port: str) -> int:
    """Return the port with this name of any container; 0 if there is none."""
    ports = [each for container in _list_containers(value) for each in _get_items(container, "ports")]
    return next((_get_number(each, "containerPort") for each in ports if _get_text(each, "name") == port), 0)


def container_ports(value: Any | Absent, container: str = "") -> list[int]:
    """Return the ports of a container."""
    return [_get_number(port, "containerPort") for port in _get_items(_find_container(value, container), "ports")]


def container_count(value: Any | Absent) -> int:
    """Return the number of containers, without init containers."""
    return len(_list_containers(value))


def _list_containers(value: object) -> list[Any]:
    """List the containers of a Pod, of a workload with a pod template, or of a CronJob."""
    for path in (("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec")):
        containers = _get_items(value, *path, "containers")
        if containers:
            return containers
    return []


def _find_container(value: object, named: str) -> Any:
    return next((each for each in _list_containers(value) if not named or _get_text(each, "name") == named), None)


def job_succeeded(value: Any | Absent) -> bool:
    """Tell whether a Job has completed."""
    return has_condition(value, "Complete")


def job_failed(value: Any | Absent) -> bool:
    """Tell whether a Job has failed permanently."""
    return has_condition(value, "Failed")


def job_active(value: Any | Absent) -> bool:
    """Tell whether a Job has active Pods."""
    return _get_number(value, "status", "active") > 0


def resource_name(value: Any | Absent, suffix: str) -> str:
    """Return the object's name, a dash and the suffix: `resourceName(object, "config")`."""
    return f"{name(value)}-{format_scalar(suffix)}"


OBJECTS = build_group(
    "Objects",
    "They accept objects that do not exist yet: an absent value counts as empty, 0 or false.",
    meta,
    name,
    namespace,
    kind,
    labels,
    annotations_,
    spec,
    status,
    phase,
    get_label,
    get_annotation,
    resource_name,
    resource_exists,
    is_terminating,
    generation,
    observed_generation,
    is_synced,
    has_condition,
    condition_status,
    condition_reason,
    condition_message,
)
WORKLOADS = build_group(
    "Workloads, Services and Jobs",
    "",
    desired_replicas,
    ready_replicas,
    available_replicas,
    updated_replicas,
    replicas_ready,
    all_replicas_ready,
    rollout_complete,
    service_cluster_ip,
    service_node_port,
    service_load_balancer_ip,
    service_load_balancer_host,
    endpoints_ready,
    container_image,
    container_env,
    container_port,
    container_port_by_name,
    container_ports,
    container_count,
    job_succeeded,
    job_failed,
    job_active,
)

"""The simulated endpoint controllers: the addresses of a Service's pods as EndpointSlices and Endpoints."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from konverge._internal.kube import Object, ObjectKey, build_owner_reference, is_deleting
from konverge_cluster._internal.embedded.controllers.builtin_kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE
from konverge_cluster._internal.embedded.controllers.cluster_view import ClusterChange, ClusterView
from konverge_cluster._internal.embedded.controllers.controller_client import ControllerClient
from konverge_cluster._internal.embedded.controllers.controller_references import find_controller_key
from konverge_cluster._internal.embedded.controllers.pod_state import is_finished, is_ready

__all__ = ["EndpointController", "LoadBalancerController", "build_endpoint_slices", "build_endpoint_subsets"]

_SLICE_LIMIT = 100
_HEADLESS_LABEL = "service.kubernetes.io/headless"
_SERVICE_LABEL = "kubernetes.io/service-name"


class EndpointController:
    """The controller. Its keys are those of Services."""

    name = "endpoints-controller"
    watches = frozenset({SERVICE.group_kind, POD.group_kind, ENDPOINT_SLICE.group_kind, ENDPOINTS.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer
        # The Services by one of their selected labels, which avoids a search through thousands for each pod.
        self._selecting: dict[tuple[str, str, str], dict[str, None]] = {}

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of a Service or of the owner of endpoints, or the Services that select or selected a pod."""
        if notice.kind == SERVICE.group_kind:
            return self._keys_for_service(notice)
        if notice.kind == POD.group_kind:
            return self._keys_for_pod(notice)
        if notice.kind == ENDPOINTS.group_kind:
            return (notice.key,)
        key = find_controller_key(notice.new, SERVICE)
        return () if key is None else (key,)

    def reconcile(self, key: Hashable) -> float | None:
        """Write the slices and the Endpoints of a Service with a selector; without one, other clients write them."""
        assert isinstance(key, ObjectKey)
        service = self._view.get(SERVICE, key)
        if service is None:
            endpoints = self._view.get(ENDPOINTS, key)
            labels = endpoints["metadata"].get("labels") or {} if endpoints is not None else {}
            if endpoints is not None and labels.get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
                self._writer.delete(endpoints)
            return None
        selector = service["spec"].get("selector")
        if not selector or is_deleting(service) or service["spec"].get("type") == "ExternalName":
            return None
        pods = [
            pod
            for pod in self._view.list_kind(POD, key.namespace)
            if selector.items() <= (pod["metadata"].get("labels") or {}).items()
        ]
        self._write_slices(service, build_endpoint_slices(service, pods))
        self._write_endpoints(service, build_endpoint_subsets(service, pods))
        return None

    def _keys_for_service(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        for obj in (notice.old, notice.new):
            if obj is not None and (label := _find_first_label(obj)) is not None:
                self._selecting.get(label, {}).pop(notice.key.name, None)
        if notice.type != "DELETED" and (label := _find_first_label(notice.new)) is not None:
            self._selecting.setdefault(label, {})[notice.key.name] = None
        return (notice.key,)

    def _keys_for_pod(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        keys: dict[ObjectKey, None] = {}
        for pod in (notice.old, notice.new):
            for label, value in (pod["metadata"].get("labels") or {}).items() if pod is not None else ():
                for name in self._selecting.get((notice.key.namespace, label, value), ()):
                    keys[ObjectKey(notice.key.namespace, name)] = None
        return keys

    def _write_slices(self, service: Object, desired_slices: Sequence[Object]) -> None:
        present_slices = self._view.list_controlled(ENDPOINT_SLICE, service["metadata"]["uid"])
        for index, desired_slice in enumerate(desired_slices):
            if index >= len(present_slices):
                self._writer.create(desired_slice)
                continue
            present = present_slices[index]
            labels = {**(present["metadata"].get("labels") or {}), **desired_slice["metadata"]["labels"]}
            changed = {**present, "endpoints": desired_slice["endpoints"], "ports": desired_slice["ports"]}
            changed["metadata"] = {**present["metadata"], "labels": labels}
            if changed != present:
                self._writer.update(changed)
        for present in present_slices[len(desired_slices) :]:
            self._writer.delete(present)

    def _write_endpoints(self, service: Object, subsets: Sequence[Object]) -> None:
        metadata = service["metadata"]
        labels = {"endpoints.kubernetes.io/managed-by": "endpoint-controller", **(metadata.get("labels") or {})}
        if service["spec"].get("clusterIP") == "None":
            labels[_HEADLESS_LABEL] = ""
        endpoints = self._view.get(ENDPOINTS, ObjectKey.of(service))
        if endpoints is None:
            created: Object = {
                "apiVersion": ENDPOINTS.api_version,
                "kind": ENDPOINTS.kind,
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "labels": labels},
            }
            self._writer.create(created | ({"subsets": list(subsets)} if subsets else {}))
            return
        changed = {**endpoints, "metadata": {**endpoints["metadata"], "labels": labels}, "subsets": list(subsets)}
        if not subsets:
            del changed["subsets"]
        if changed != endpoints:
            self._writer.update(changed)


class LoadBalancerController:
    """The load balancer controller: assigns an address to each Service of that type. Its keys are those of Services."""

    name = "service-lb-controller"
    watches = frozenset({SERVICE.group_kind})

    def __init__(self, view: ClusterView, writer: ControllerClient) -> None:
        self._view = view
        self._writer = writer
        self._next_address = 0

    def keys_for(self, notice: ClusterChange) -> Iterable[ObjectKey]:
        """Return the key of the Service."""
        return () if notice.type == "DELETED" else (notice.key,)

    def reconcile(self, key: Hashable) -> float | None:
        """Assign or remove an address from 192.0.2.0/24 or 198.51.100.0/24, which are not routed."""
        assert isinstance(key, ObjectKey)
        service = self._view.get(SERVICE, key)
        if service is None or is_deleting(service):
            return None
        assigned = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress")
        needs_address = service["spec"].get("type") == "LoadBalancer"
        if needs_address and not assigned:
            number = self._next_address
            self._next_address = (number + 1) % 508
            network = ("192.0.2", "198.51.100")[number // 254]
            ingress = [{"ip": f"{network}.{number % 254 + 1}", "ipMode": "VIP"}]
            self._writer.update_status(service, {**service["status"], "loadBalancer": {"ingress": ingress}})
        elif assigned and not needs_address:
            self._writer.update_status(service, {**service["status"], "loadBalancer": {}})
        return None


def build_endpoint_slices(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the EndpointSlices of a Service for these pods: at least one, with one set of ports in each."""
    metadata = service["metadata"]
    labels = {
        **(metadata.get("labels") or {}),
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        _SERVICE_LABEL: metadata["name"],
    }
    if service["spec"].get("clusterIP") == "None":
        labels[_HEADLESS_LABEL] = ""
    groups: dict[tuple[tuple[str, int, str], ...], list[Object]] = {}
    for pod in pods:
        if _has_address(pod):
            groups.setdefault(_resolve_ports(service, pod), []).append(_build_endpoint(service, pod))
    slices: list[tuple[Any, Any]] = [
        (endpoints[start : start + _SLICE_LIMIT], [_build_slice_port(*port) for port in ports] or None)
        for ports, endpoints in groups.items()
        for start in range(0, len(endpoints), _SLICE_LIMIT)
    ]
    families = service["spec"].get("ipFamilies") or ["IPv4"]
    return [
        {
            "apiVersion": ENDPOINT_SLICE.api_version,
            "kind": ENDPOINT_SLICE.kind,
            "metadata": {
                "generateName": f"{metadata['name']}-",
                "namespace": metadata["namespace"],
                "labels": labels,
                "ownerReferences": [build_owner_reference(service)],
            },
            "addressType": families[0],
            "endpoints": endpoints,
            "ports": ports,
        }
        for endpoints, ports in slices or [(None, None)]
    ]


def build_endpoint_subsets(service: Object, pods: Iterable[Object]) -> list[Object]:
    """Return the subsets of a Service's Endpoints: by set of ports, ready addresses apart from the others."""
    publishes_unready = bool(service["spec"].get("publishNotReadyAddresses"))
    groups: dict[tuple[tuple[str, int, str], ...], tuple[list[Object], list[Object]]] = {}
    for pod in pods:
        if not _has_address(pod) or (is_deleting(pod) and not publishes_unready):
            continue
        ready, unready = groups.setdefault(_resolve_ports(service, pod), ([], []))
        (ready if is_ready(pod) or publishes_unready else unready).append(_build_address(service, pod))
    subsets = []
    for ports, (ready, unready) in sorted(groups.items()):
        subset: Object = {}
        if ready:
            subset["addresses"] = sorted(ready, key=_address_sort_key)
        if unready:
            subset["notReadyAddresses"] = sorted(unready, key=_address_sort_key)
        if ports:
            subset["ports"] = [_build_subset_port(*port) for port in ports]
        subsets.append(subset)
    return subsets


def _find_first_label(service: Object) -> tuple[str, str, str] | None:
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    return (service["metadata"]["namespace"], *min(selector.items())) if selector else None


def _has_address(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("podIP")) and not is_finished(pod)


def _resolve_ports(service: Object, pod: Object) -> tuple[tuple[str, int, str], ...]:
    """Return the Service's ports on the pod, without named ports that no container has."""
    ports = []
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort", port["port"])
        number = target if isinstance(target, int) else _find_named_port(pod, target, port.get("protocol", "TCP"))
        if number is not None:
            ports.append((port.get("name", ""), number or port["port"], port.get("protocol", "TCP")))
    return tuple(sorted(ports))


def _find_named_port(pod: Object, name: str, protocol: str) -> int | None:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return None


def _build_slice_port(name: str, number: int, protocol: str) -> Object:
    return {"name": name, "protocol": protocol, "port": number}


def _build_subset_port(name: str, number: int, protocol: str) -> Object:
    return ({"name": name} if name else {}) | {"port": number, "protocol": protocol}


def _build_endpoint(service: Object, pod: Object) -> Object:
    serving, terminating = is_ready(pod), is_deleting(pod)
    published = bool(service["spec"].get("publishNotReadyAddresses"))
    endpoint: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {
            "ready": published or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
    }
    endpoint |= _build_hostname(service, pod)
    return endpoint | {"targetRef": _build_target_ref(pod), "nodeName": pod["spec"].get("nodeName")}


def _build_address(service: Object, pod: Object) -> Object:
    address: Object = {"ip": pod["status"]["podIP"]} | _build_hostname(service, pod)
    return address | {"nodeName": pod["spec"].get("nodeName"), "targetRef": _build_target_ref(pod)}


def _build_hostname(service: Object, pod: Object) -> Object:
    """Return the pod's host name if the Service gives it a DNS name."""
    hostname = pod["spec"].get("hostname")
    governs = pod["spec"].get("subdomain") == service["metadata"]["name"]
    return {"hostname": hostname} if hostname and governs else {}


def _build_target_ref(pod: Object) -> Object:
    metadata = pod["metadata"]
    return {
        "kind": POD.kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }


def _address_sort_key(address: Object) -> tuple[int, ...]:
    ip = str(address["ip"])
    return tuple(int(part) for part in ip.split(".")) if "." in ip else ()

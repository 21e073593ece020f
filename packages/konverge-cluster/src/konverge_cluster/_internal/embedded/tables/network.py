"""Printers of Services, endpoints, Ingresses and NetworkPolicies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.tables.printers import (
    NONE,
    TablePrinter,
    build_printer,
    format_age,
    format_labels,
    format_selector,
    get_field,
)

__all__ = ["NETWORK"]

_MAX_ITEMS = 3


def _service(obj: Object, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    ports = ",".join(_service_port(port) for port in spec.get("ports") or ())
    return [
        obj["metadata"]["name"],
        spec.get("type", ""),
        addresses[0],
        _external_address(obj),
        ports or NONE,
        format_age(obj, now),
        format_labels(spec.get("selector")),
    ]


def _service_port(port: Mapping[str, Any]) -> str:
    numbers = f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else f"{port.get('port')}"
    return f"{numbers}/{port.get('protocol', 'TCP')}"


def _external_address(obj: Object) -> str:
    spec = obj.get("spec") or {}
    own = list(spec.get("externalIPs") or ())
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(own) or NONE
        case "LoadBalancer":
            return ",".join([*_load_balancer_addresses(obj), *own]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
        case _:
            return "<unknown>"


def _load_balancer_addresses(obj: Object) -> list[str]:
    ingress = get_field(obj, "status", "loadBalancer", "ingress", default=())
    return sorted({entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""})


def _format_first(items: Sequence[str], *, total: int | None = None) -> str:
    """Format the first items of a long list."""
    count = len(items) if total is None else total
    text = ",".join(items[:_MAX_ITEMS])
    return f"{text} + {count - _MAX_ITEMS} more..." if len(items) > _MAX_ITEMS else text


def _endpoints(obj: Object, now: datetime) -> list[Any]:
    items: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [entry.get("ip", "") for entry in subset.get("addresses") or ()]
        ports = subset.get("ports") or ()
        items += [f"{ip}:{port.get('port')}" for port in ports for ip in addresses] if ports else addresses
    return [obj["metadata"]["name"], _format_first(items) if obj.get("subsets") else NONE, format_age(obj, now)]


def _endpoint_slice(obj: Object, now: datetime) -> list[Any]:
    ports = [str(port["port"]) if port.get("port") else "*" for port in obj.get("ports") or ()]
    addresses = [ip for endpoint in obj.get("endpoints") or () for ip in endpoint.get("addresses") or ()]
    return [
        obj["metadata"]["name"],
        obj.get("addressType", ""),
        _format_first(ports) or "<unset>",
        _format_first(addresses) or "<unset>",
        format_age(obj, now),
    ]


def _ingress(obj: Object, now: datetime) -> list[Any]:
    rules: Iterable[Any] = get_field(obj, "spec", "rules", default=())
    listed = list(rules)
    hosts = [rule["host"] for rule in listed if rule.get("host")]
    return [
        obj["metadata"]["name"],
        get_field(obj, "spec", "ingressClassName") or NONE,
        _format_first(hosts, total=len(listed)) or "*",
        ",".join(_load_balancer_addresses(obj)),
        "80, 443" if get_field(obj, "spec", "tls") else "80",
        format_age(obj, now),
    ]


def _network_policy(obj: Object, now: datetime) -> list[Any]:
    return [
        obj["metadata"]["name"],
        format_selector(get_field(obj, "spec", "podSelector", default={})),
        format_age(obj, now),
    ]


NETWORK: Mapping[str, TablePrinter] = {
    "services": build_printer("Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector", _service),
    "endpoints": build_printer("Name, Endpoints, Age", _endpoints),
    "endpointslices.discovery.k8s.io": build_printer("Name, AddressType, Ports, Endpoints, Age", _endpoint_slice),
    "ingresses.networking.k8s.io": build_printer("Name, Class, Hosts, Address, Ports, Age", _ingress),
    "networkpolicies.networking.k8s.io": build_printer("Name, Pod-Selector, Age", _network_policy),
}

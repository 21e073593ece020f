"""The rules of Services."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from konverge.kube import Object
from konverge.kube.names import dns_label_mistakes, dns_subdomain_mistakes
from konverge.localcluster.validation.metadata import label_mistakes
from konverge.localcluster.validation.mistakes import Mistake, duplicate, forbidden, invalid, required, unsupported
from konverge.localcluster.validation.pods import PORT_RANGE, PROTOCOLS, port_mistakes

__all__ = ["service_mistakes", "service_status_mistakes", "service_update_mistakes"]

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")


def service_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with a Service."""
    spec = obj.get("spec") or {}
    kind, ports = spec.get("type", "ClusterIP"), spec.get("ports") or []
    address = spec.get("clusterIP", "")
    if not ports and address != "None" and kind != "ExternalName":
        yield required("spec.ports")
    yield from _port_list_mistakes(ports, kind)
    yield from label_mistakes(spec.get("selector"), "spec.selector")
    if kind not in _TYPES:
        yield unsupported("spec.type", kind, _TYPES)
    if kind == "ExternalName":
        name = spec.get("externalName", "")
        if not name:
            yield required("spec.externalName")
        for detail in dns_subdomain_mistakes(name.removesuffix(".")) if name else ():
            yield invalid("spec.externalName", name, detail)
    elif address == "None":
        if kind in ("NodePort", "LoadBalancer"):
            told = f"may not be set to 'None' for {kind} services"
            yield invalid("spec.clusterIPs[0]", address, told)
    elif address and not _is_address(address):
        yield invalid("spec.clusterIPs[0]", address, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
    affinities = ("ClientIP", "None")
    if spec.get("sessionAffinity", "None") not in affinities:
        yield unsupported("spec.sessionAffinity", spec["sessionAffinity"], affinities)


def _port_list_mistakes(ports: Sequence[Mapping[str, Any]], kind: str) -> Iterator[Mistake]:
    names: set[str] = set()
    taken: set[tuple[Any, Any]] = set()
    for index, port in enumerate(ports):
        at, name = f"spec.ports[{index}]", port.get("name")
        if name:
            for detail in dns_label_mistakes(name):
                yield invalid(f"{at}.name", name, detail)
            if name in names:
                yield duplicate(f"{at}.name", name)
            names.add(name)
        elif len(ports) > 1:
            yield required(f"{at}.name")
        number = port.get("port") or 0
        if not 1 <= number <= 65535:
            yield invalid(f"{at}.port", number, PORT_RANGE)
        protocol = port.get("protocol", "TCP")
        if protocol not in PROTOCOLS:
            yield unsupported(f"{at}.protocol", protocol, PROTOCOLS)
        if kind != "ExternalName":
            yield from port_mistakes(port.get("targetPort", number), f"{at}.targetPort")
        if port.get("nodePort") and kind in ("ClusterIP", "ExternalName"):
            yield forbidden(f"{at}.nodePort", f"may not be used when `type` is '{kind}'")
        if (number, protocol) in taken:
            yield duplicate(at, {"port": number, "protocol": protocol})
        taken.add((number, protocol))


def service_update_mistakes(old: Object, new: Object) -> Iterator[Mistake]:
    """An address that was given stays, as long as the type has one."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    was, now = before.get("clusterIP"), after.get("clusterIP")
    if was and now != was and "ExternalName" not in (before.get("type"), after.get("type")):
        yield invalid("spec.clusterIPs[0]", [now or ""], "may not change once set")


def service_status_mistakes(obj: Object) -> Iterator[Mistake]:
    """What is wrong with the status of a Service."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if (status.get("loadBalancer") or {}).get("ingress") and spec.get("type") != "LoadBalancer":
        yield forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True

"""Addresses and ports of Services, chosen from those that no other Service uses."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from konverge._internal.kube import Object
from konverge.clock import Entropy
from konverge.errors import ServerError
from konverge_cluster._internal.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["allocate_addresses", "release_addresses"]

_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST_PORT, _LAST_PORT = 30000, 32767
_WITH_PORTS = ("NodePort", "LoadBalancer")
_DRAWS = 1000


def release_addresses(old: Object | None, new: Object) -> None:
    """Adjust the addresses that an update keeps to the Service's type, in place.

    A Service that keeps a type with addresses keeps those that the update does not mention. One that changes to a type
    without addresses loses them.
    """
    spec, before = new["spec"], (old or {}).get("spec") or {}
    kind = spec.get("type")
    if kind == "ExternalName":
        if before.get("type") != kind and spec.get("clusterIP") in (before.get("clusterIP"), None):
            for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
                spec.pop(name, None)
        spec.pop("externalTrafficPolicy", None)
    elif before.get("clusterIP") and not spec.get("clusterIP") and before.get("type") != "ExternalName":
        spec["clusterIP"], spec["clusterIPs"] = before["clusterIP"], before["clusterIPs"]
    earlier = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        known = earlier.get((port.get("protocol"), port.get("port")))
        if kind not in _WITH_PORTS:
            if known and port.get("nodePort") == known:
                del port["nodePort"]
        elif known and not port.get("nodePort"):
            port["nodePort"] = known
    if kind not in _WITH_PORTS and before.get("type") in _WITH_PORTS:
        spec.pop("externalTrafficPolicy", None)
        spec.pop("allocateLoadBalancerNodePorts", None)


def allocate_addresses(service: Object, others: Iterable[Object], entropy: Entropy) -> None:
    """Assign the addresses that the Service's type requires, in place.

    Args:
        service: The Service; valid and with defaults.
        others: The specs of the other Services.
        entropy: The source of randomness for the choice.

    Raises:
        InvalidError: The Service requests an address or a port that is in use or out of range.
    """
    spec, kind = service["spec"], service["spec"].get("type")
    if kind == "ExternalName":
        return
    other_specs = list(others)
    address = spec.get("clusterIP")
    if not address:
        address = spec["clusterIP"] = _draw_address({other.get("clusterIP") for other in other_specs}, entropy)
    elif address != "None":
        _check_address(service, address, other_specs)
    spec["clusterIPs"] = [address]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind not in _WITH_PORTS:
        return
    taken = {port.get("nodePort") for other in other_specs for port in other.get("ports") or ()}
    for index, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort"):
            port["nodePort"] = _draw_port(taken, entropy)
        elif port["nodePort"] in taken:
            message = "provided port is already allocated"
            raise _new_invalid_service(
                service, field_invalid(f"spec.ports[{index}].nodePort", port["nodePort"], message)
            )
        taken.add(port["nodePort"])


def _check_address(service: Object, address: str, other_specs: list[Any]) -> None:
    if ipaddress.ip_address(address) not in _NETWORK:
        message = (
            f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
            f"The range of valid IPs is {_NETWORK}"
        )
    elif any(other.get("clusterIP") == address for other in other_specs):
        message = f"failed to allocate IP {address}: provided IP is already allocated"
    else:
        return
    raise _new_invalid_service(service, field_invalid("spec.clusterIPs", [address], message))


def _new_invalid_service(service: Object, error: FieldError) -> Exception:
    return new_invalid("", "Service", service["metadata"].get("name", ""), [error])


def _draw_address(taken: set[Any], entropy: Entropy) -> str:
    for _ in range(_DRAWS):
        # The first and the last address and that of the API server cannot be assigned.
        drawn = str(_NETWORK[int(entropy.uniform(10, _NETWORK.num_addresses - 2))])
        if drawn not in taken:
            return drawn
    raise ServerError("no free cluster IP was found")


def _draw_port(taken: set[Any], entropy: Entropy) -> int:
    for _ in range(_DRAWS):
        drawn = int(entropy.uniform(_FIRST_PORT, _LAST_PORT + 1))
        if drawn <= _LAST_PORT and drawn not in taken:
            return drawn
    raise ServerError("no free node port was found")

"""The addresses and ports that Services get, drawn from what no other Service has."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from konverge.clock import Entropy
from konverge.errors import ServerError
from konverge.kube import Object
from konverge_cluster.embedded.validation.field_errors import FieldError, field_invalid, new_invalid

__all__ = ["allocate_addresses", "release_addresses"]

_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
_FIRST_PORT, _LAST_PORT = 30000, 32767
_WITH_PORTS = ("NodePort", "LoadBalancer")
_DRAWS = 1000


def release_addresses(old: Object | None, new: Object) -> None:
    """Fit what an update keeps of its addresses to the Service's type, in place.

    A Service that stays of a type with addresses keeps those that the update does not mention; one that changes to a
    type without loses what it got for the old one.
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
    """Give the Service the addresses that its type has, in place.

    Args:
        service: The Service, valid and with defaults.
        others: The specs of the other Services.
        entropy: Draws the free ones.

    Raises:
        InvalidError: It asks for an address or a port that is taken or cannot be had.
    """
    spec, kind = service["spec"], service["spec"].get("type")
    if kind == "ExternalName":
        return
    held = list(others)
    wanted = spec.get("clusterIP")
    if not wanted:
        wanted = spec["clusterIP"] = _draw_address({other.get("clusterIP") for other in held}, entropy)
    elif wanted != "None":
        _check_address(service, wanted, held)
    spec["clusterIPs"] = [wanted]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind not in _WITH_PORTS:
        return
    taken = {port.get("nodePort") for other in held for port in other.get("ports") or ()}
    for index, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort"):
            port["nodePort"] = _draw_port(taken, entropy)
        elif port["nodePort"] in taken:
            told = "provided port is already allocated"
            raise _new_invalid_service(service, field_invalid(f"spec.ports[{index}].nodePort", port["nodePort"], told))
        taken.add(port["nodePort"])


def _check_address(service: Object, wanted: str, held: list[Any]) -> None:
    if ipaddress.ip_address(wanted) not in _NETWORK:
        told = (
            f"failed to allocate IP {wanted}: the provided IP ({wanted}) is not in the valid range. "
            f"The range of valid IPs is {_NETWORK}"
        )
    elif any(other.get("clusterIP") == wanted for other in held):
        told = f"failed to allocate IP {wanted}: provided IP is already allocated"
    else:
        return
    raise _new_invalid_service(service, field_invalid("spec.clusterIPs", [wanted], told))


def _new_invalid_service(service: Object, mistake: FieldError) -> Exception:
    return new_invalid("", "Service", service["metadata"].get("name", ""), [mistake])


def _draw_address(taken: set[Any], entropy: Entropy) -> str:
    for _ in range(_DRAWS):
        # The first and the last address, and that of the API server itself, are nobody's.
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

"""The quality-of-service class of a pod, from the requests and limits of its containers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from konverge._internal.kube.quantities import quantity_to_fraction

__all__ = ["compute_qos_class"]

_COUNTED = ("cpu", "memory")


def compute_qos_class(spec: Mapping[str, Any]) -> str:
    """Return the class of a pod with that spec.

    It is ``Guaranteed`` if each container limits cpu and memory and requests as much, ``BestEffort`` if no container
    requests or limits any, and ``Burstable`` otherwise. The resources of the whole pod replace those of its containers.
    """
    whole = spec.get("resources")
    parts = [whole] if whole else [entry.get("resources") for entry in _list_containers(spec)]
    is_guaranteed, is_best_effort = True, True
    for part in parts:
        written = (part or {}).get("limits") or {}
        limits, requests = _read_amounts(written), _read_amounts(written | ((part or {}).get("requests") or {}))
        is_best_effort = is_best_effort and not requests
        is_guaranteed = is_guaranteed and limits.keys() == set(_COUNTED) and requests == limits
    if is_best_effort:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _list_containers(spec: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _read_amounts(resources: Mapping[str, Any]) -> dict[str, Fraction]:
    amounts = {name: quantity_to_fraction(resources[name]) for name in _COUNTED if name in resources}
    return {name: amount for name, amount in amounts.items() if amount > 0}

"""The reasons why a pod does not fit a node: node affinity and insufficient resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from konverge._internal.kube import Object
from konverge._internal.kube.quantities import quantity_to_fraction
from konverge_cluster._internal.embedded.controllers.pod_state import is_finished

__all__ = ["compute_requests", "find_insufficient_resources", "matches_node", "matches_terms"]


def matches_node(pod: Object, node: Object) -> bool:
    """Return True if the node has the labels that the pod's selector and required affinity demand."""
    labels: Mapping[str, str] = node["metadata"].get("labels") or {}
    if not (pod["spec"].get("nodeSelector") or {}).items() <= labels.items():
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or matches_terms(required.get("nodeSelectorTerms") or (), node)


def matches_terms(terms: Iterable[Mapping[str, Any]], node: Object) -> bool:
    """Return True if the node matches one of the terms of a node selector."""
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    return any(_matches_term(term, labels, name) for term in terms)


def _matches_term(term: Mapping[str, Any], labels: Mapping[str, str], name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_matches_expression(expression, labels) for expression in expressions) and all(
        _matches_expression(field, {"metadata.name": name}) for field in fields
    )


def _matches_expression(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression.get("key", ""), list(expression.get("values") or ())
    found = labels.get(key)
    match expression.get("operator"):
        case "In":
            return found in values
        case "NotIn":
            return found not in values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
        case "Gt":
            return found is not None and found.isdigit() and int(found) > int(values[0])
        case "Lt":
            return found is not None and found.isdigit() and int(found) < int(values[0])
        case _:
            return False


def compute_requests(pod: Object) -> dict[str, Fraction]:
    """Return the resources that a pod needs: its containers together or a larger init container, and its overhead."""
    spec = pod["spec"]
    total = _sum_requests(spec.get("containers") or ())
    for container in spec.get("initContainers") or ():
        for name, amount in _sum_requests((container,)).items():
            total[name] = max(total.get(name, Fraction(0)), amount)
    for name, quantity in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, Fraction(0)) + quantity_to_fraction(quantity)
    return total


def _sum_requests(containers: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for container in containers:
        for name, quantity in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, Fraction(0)) + quantity_to_fraction(quantity)
    return total


def find_insufficient_resources(pod: Object, node: Object, others: Iterable[Object]) -> list[str]:
    """Return the names of the resources that the node lacks for the pod, in order.

    Args:
        pod: The pod without a node.
        node: The node.
        others: The pods of the cluster; those on the node use its resources until they finish.
    """
    needed = {name: amount for name, amount in compute_requests(pod).items() if amount > 0}
    if not needed:
        return []
    name = node["metadata"]["name"]
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    left = {resource: quantity_to_fraction(allocatable.get(resource, 0)) for resource in needed}
    for other in others:
        if other["spec"].get("nodeName") == name and not is_finished(other):
            for resource, amount in compute_requests(other).items():
                if resource in left:
                    left[resource] -= amount
    return sorted(resource for resource, amount in needed.items() if amount > left[resource])

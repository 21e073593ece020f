"""The operator of the soak and the failover bench: a bed in a garden, with three children.

``konverge run bench/sample_operator.py`` runs it. ``GARDEN_OPERATOR`` in the environment sets the name of the operator,
by which an audit log distinguishes replicas.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from konverge import Component, ComponentBuilder, Operator, prerequisites
from konverge.crd import Metadata, custom_resource
from konverge.kube import GroupVersionKind, Object
from konverge.primitives import ConfigMap, Deployment, Secret

__all__ = ["BED", "CHILD_KINDS", "Bed", "children", "new_bed", "operator"]

BED = GroupVersionKind("bench.konverge.dev", "v1", "Bed")
CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
SECRET = GroupVersionKind("", "v1", "Secret")
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
CHILD_KINDS = (CONFIG_MAP, SECRET, DEPLOYMENT)


@dataclass
class BedSpec:
    plant: str = "fern"


@custom_resource(group=BED.group, version=BED.version)
@dataclass
class Bed:
    """A bed in the garden."""

    metadata: Metadata
    spec: BedSpec


def new_bed(name: str, namespace: str, plant: str = "fern") -> Object:
    """Return a bed as a user creates it."""
    return {
        "apiVersion": BED.api_version,
        "kind": BED.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"plant": plant},
    }


def children(name: str, namespace: str, plant: str) -> dict[GroupVersionKind, Object]:
    """Return the desired children of the bed by kind."""
    metadata = {"name": name, "namespace": namespace, "labels": {"bed": name}}
    pod = {"containers": [{"name": "gardener", "image": "konverge.test/gardener:1", "args": [plant]}]}
    template = {"metadata": {"labels": {"bed": name}}, "spec": pod}
    # No pods: the soak tests the operator, not the node.
    deployment = {"replicas": 0, "selector": {"matchLabels": {"bed": name}}, "template": template}
    return {
        CONFIG_MAP: {"metadata": metadata, "data": {"plant": plant}},
        SECRET: {"metadata": metadata, "data": {"recipe": base64.b64encode(plant.encode()).decode()}},
        DEPLOYMENT: {"metadata": metadata, "spec": deployment},
    }


def is_ready(bed: Mapping[str, Any]) -> bool:
    """Return True if the bed is Ready for its current generation."""
    conditions = (bed.get("status") or {}).get("conditions") or ()
    generation = bed["metadata"]["generation"]
    return any(
        found["type"] == "Ready" and found["status"] == "True" and found.get("observedGeneration") == generation
        for found in conditions
    )


def soil(bed: Bed) -> Component:
    wanted = _children(bed)
    return (
        ComponentBuilder("soil", condition_type="SoilReady")
        .with_resource(ConfigMap(wanted[CONFIG_MAP]))
        .with_resource(Secret(wanted[SECRET]))
        .build()
    )


def bench_operator(bed: Bed) -> Component:
    return (
        ComponentBuilder("gardener", condition_type="GardenerReady")
        .with_prerequisite(prerequisites.depends_on("SoilReady"))
        .with_resource(Deployment(_children(bed)[DEPLOYMENT]))
        .build()
    )


def _children(bed: Bed) -> dict[GroupVersionKind, Object]:
    return children(bed.metadata.name, bed.metadata.namespace, bed.spec.plant)


operator = Operator(os.environ.get("GARDEN_OPERATOR", "garden"))
operator.manages(Bed, soil, bench_operator)

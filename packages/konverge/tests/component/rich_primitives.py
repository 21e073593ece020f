"""The objects of rich_kinds.yaml and rich_workloads.yaml, as primitives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from konverge import primitives
from konverge.kube import Object
from konverge.primitives import Primitive

__all__ = ["KINDS", "WORKLOADS", "build_contents", "build_rich_primitive"]

_TEXTS = [Path(__file__).with_name(name).read_text() for name in ("rich_kinds.yaml", "rich_workloads.yaml")]
# Of the ranges that the clusters take the addresses of Services from.
_NETWORKS = {"embedded": "10.96.213", "real": "10.0.213"}


def _load_objects(text: str) -> dict[str, dict[str, Object]]:
    return {
        kind: variants
        for kind, variants in yaml.load(text, Loader=yaml.CSafeLoader).items()
        if not kind.startswith(".")
    }


KINDS, WORKLOADS = (
    [(kind, variant) for kind, found in _load_objects(text).items() for variant in found] for text in _TEXTS
)
"""Kind and variant of each, as the two files have them."""


def build_contents(namespace: str, cluster: str, host: int) -> dict[str, dict[str, Object]]:
    """By kind and variant, what each object has beside its metadata.

    Args:
        namespace: The test's.
        cluster: The cluster's name.
        host: The last part of the address that a Service asks for; each test module has its own.
    """
    text = "\n".join(_TEXTS).replace("NAMESPACE", namespace).replace("ADDRESS", f"{_NETWORKS[cluster]}.{host}")
    return _load_objects(text)


def build_rich_primitive(kind: str, content: Object, name: str, namespace: str) -> Primitive[Any]:
    """The primitive over an object of that content; one that is cluster-scoped has the namespace in its name."""
    made: Any = getattr(primitives, kind)
    metadata = {"name": name, "namespace": namespace}
    if made.is_cluster_scoped:
        metadata = {"name": f"{name}-{namespace}"}
    primitive: Primitive[Any] = made({**content, "metadata": {**metadata, "labels": {"part": "rich"}}})
    return primitive

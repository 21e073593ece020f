"""The objects of rich_objects.yaml."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path

import yaml

from konverge.kube import Object

_TEXT = Path(__file__).with_name("rich_objects.yaml").read_text()


@cache
def _load_all(namespace: str) -> dict[str, Object]:
    objects: list[Object] = list(yaml.safe_load_all(_TEXT.replace("NAMESPACE", namespace)))
    return {f"{each['apiVersion']}/{each['kind']}": each for each in objects}


NAMES = list(_load_all(""))


def load_rich_object(name: str, namespace: str = "default") -> Object:
    """Load one object by apiVersion and kind, for a namespace."""
    return copy.deepcopy(_load_all(namespace)[name])

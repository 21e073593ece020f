"""Which columns a resource has, and what an object puts into them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from konverge.kube import Object
from konverge.localcluster.resources import Resource

__all__ = ["columns_of", "row_of"]


def columns_of(resource: Resource) -> list[Object]:
    """The columns."""
    return [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]


def row_of(resource: Resource, obj: Object, now: datetime) -> list[Any]:
    """The cells."""
    return [obj["metadata"].get("name", "")]

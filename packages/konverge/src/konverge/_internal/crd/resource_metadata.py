"""The metadata of a typed custom resource."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from konverge._internal.kube import ObjectKey

__all__ = ["Metadata"]


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The part of an object's metadata that authors need; the rest stays in the object itself.

    The fields that the server sets (`uid`, `generation`, the timestamps) are empty before the object is sent.
    """

    name: str
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None

    @property
    def key(self) -> ObjectKey:
        """The namespace and name of the object."""
        return ObjectKey(self.namespace, self.name)

    @property
    def is_deleting(self) -> bool:
        """True if the object is deleted and waits only for finalizers."""
        return self.deletion_timestamp is not None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return the schema of an instance: `konverge.crd.decode` passes an instance to a pydantic model."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

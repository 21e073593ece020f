"""The metadata that a typed custom resource carries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from konverge.kube import ObjectKey

__all__ = ["Metadata"]


class Metadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What an author needs of an object's metadata; everything else stays in the object itself.

    What the server fills in (`uid`, `generation`, the timestamps) is empty in an object that was never sent.
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
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)

    @property
    def is_deleting(self) -> bool:
        """Tell whether the object was deleted and only waits for finalizers."""
        return self.deletion_timestamp is not None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let a pydantic model have metadata: what `konverge.crd.decode` gives it is an instance already."""
        from pydantic_core import core_schema

        return core_schema.is_instance_schema(cls)

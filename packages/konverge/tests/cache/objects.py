"""Small objects for the cache, in the forms of a server's responses."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from konverge._internal.cache.cached_object import RawObject, parse_object
from konverge.kube import GroupVersionKind, Object, ObjectKey

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def key(name: str = "web") -> ObjectKey:
    return ObjectKey("default", name)


def config_map(
    revision: int,
    name: str = "web",
    *,
    uid: str = "",
    owners: Sequence[str] = (),
    labels: dict[str, str] | None = None,
    namespace: str = "default",
) -> Object:
    metadata: Object = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(revision),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    if labels:
        metadata["labels"] = labels
    if owners:
        metadata["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner, "controller": True}
            for owner in owners
        ]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"revision": str(revision)}}


def raw(obj: Object) -> RawObject:
    """Return the object in the form that the reflector passes to the store."""
    return parse_object(obj)


def item(obj: Object) -> msgspec.Raw:
    """Return the object as an item of a list."""
    return msgspec.Raw(msgspec.json.encode(obj))


def line(event_type: str, obj: Object) -> bytes:
    """Return the object as a line of a watch."""
    return msgspec.json.encode({"type": event_type, "object": obj})


def bookmark(revision: int, *, end: bool = False) -> bytes:
    metadata: Object = {"resourceVersion": str(revision)}
    if end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})

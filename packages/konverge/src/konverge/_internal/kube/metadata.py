"""The part of an object's metadata that decisions need, as a small value that is fast to decode.

Decoding is lenient: a field of the wrong type (null, a number instead of text) counts as absent, because one malformed
object must never end a watch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge._internal.kube.objects import ObjectKey

__all__ = ["ObjectMeta", "OwnerReference", "decode_metadata", "parse_revision"]


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A reference from an object to one of its owners."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The identity, the version and the owners of an object.

    Timestamps are as the server wrote them (`konverge.kube.parse_time` parses them); empty if unset. Annotations are
    left out: they can be longer than the rest of the object, and no lookup uses them.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}  # msgspec gives each instance its own
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectMeta:
        """Read the metadata of a decoded object, leniently."""
        metadata = obj.get("metadata")
        return _convert_leniently(metadata if isinstance(metadata, Mapping) else {})

    @property
    def key(self) -> ObjectKey:
        """The namespace and name that identify the object in its kind."""
        return ObjectKey(self.namespace, self.name)

    @property
    def revision(self) -> int:
        """The resource version as a number (see `parse_revision`)."""
        return parse_revision(self.resource_version)

    @property
    def is_deleting(self) -> bool:
        """True if the object has a deletion timestamp."""
        return bool(self.deletion_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that controls the object; None if there is none."""
        return next((owner for owner in self.owner_references if owner.controller), None)


def parse_revision(resource_version: str) -> int:
    """Parse a resource version as a number; return 0 if it is not one.

    Resource versions of one resource are integers of at most 128 bits that grow (KEP-5504, part of conformance since
    1.35).
    """
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) < 40 else 0


_decoder = msgspec.json.Decoder(ObjectMeta)


def decode_metadata(raw: bytes | msgspec.Raw) -> ObjectMeta:
    """Decode metadata from JSON, leniently.

    Raises:
        ValueError: The text is not a JSON object.
    """
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        pass  # well-formed, but some field has the wrong type: convert each field separately
    except msgspec.DecodeError as error:
        raise ValueError(f"metadata: expected JSON: {error}") from error
    metadata = msgspec.json.decode(raw)
    if not isinstance(metadata, dict):
        raise ValueError(f"metadata: expected an object, found {type(metadata).__name__}")
    return _convert_leniently(metadata)


def _convert_leniently(metadata: Mapping[str, Any]) -> ObjectMeta:
    generation = metadata.get("generation")
    labels = metadata.get("labels")
    return ObjectMeta(
        name=_read_text(metadata.get("name")),
        namespace=_read_text(metadata.get("namespace")),
        uid=_read_text(metadata.get("uid")),
        resource_version=_read_text(metadata.get("resourceVersion")),
        generation=generation if isinstance(generation, int) else 0,
        creation_timestamp=_read_text(metadata.get("creationTimestamp")),
        deletion_timestamp=_read_text(metadata.get("deletionTimestamp")),
        labels={str(name): value for name, value in labels.items() if isinstance(value, str)}
        if isinstance(labels, Mapping)
        else {},
        owner_references=tuple(
            OwnerReference(
                api_version=_read_text(owner.get("apiVersion")),
                kind=_read_text(owner.get("kind")),
                name=_read_text(owner.get("name")),
                uid=_read_text(owner.get("uid")),
                controller=owner.get("controller") is True,
            )
            for owner in _read_list(metadata.get("ownerReferences"))
            if isinstance(owner, Mapping)
        ),
        finalizers=tuple(name for name in _read_list(metadata.get("finalizers")) if isinstance(name, str)),
    )


def _read_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _read_text(value: object) -> str:
    return value if isinstance(value, str) else ""

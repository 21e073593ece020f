"""The part of an object's metadata that decisions are made of, as a small value that is quick to decode.

Decoding is lenient: what a field should not be (null, a number where text belongs) counts as absent, since one odd
object must never end a watch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from konverge.kube.objects import ObjectKey

__all__ = ["ObjectMeta", "OwnerReference", "decode_metadata", "parse_revision"]


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Who an object belongs to."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What identifies and versions an object, and whom it belongs to.

    Timestamps are as the server wrote them (`konverge.kube.parse_time` reads them); empty when unset. Annotations are
    left out: they can be longer than the rest of the object, and nothing is found by them.
    """

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}  # msgspec gives each its own
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> ObjectMeta:
        """The metadata of a decoded object, leniently."""
        found = obj.get("metadata")
        return _convert_leniently(found if isinstance(found, Mapping) else {})

    @property
    def key(self) -> ObjectKey:
        """Which object of its kind it is."""
        return ObjectKey(self.namespace, self.name)

    @property
    def revision(self) -> int:
        """The resource version as a number (see `parse_revision`)."""
        return parse_revision(self.resource_version)

    @property
    def is_deleting(self) -> bool:
        """Tell whether it is on its way out."""
        return bool(self.deletion_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        """The one owner that controls it, None without."""
        return next((owner for owner in self.owner_references if owner.controller), None)


def parse_revision(resource_version: str) -> int:
    """A resource version as a number; 0 when it is none.

    Resource versions of one resource are integers of at most 128 bits that grow (KEP-5504, part of conformance since
    1.35).
    """
    return int(resource_version) if resource_version.isdecimal() and len(resource_version) < 40 else 0


_decoder = msgspec.json.Decoder(ObjectMeta)


def decode_metadata(raw: bytes | msgspec.Raw) -> ObjectMeta:
    """The metadata in JSON, leniently.

    Raises:
        ValueError: It is not even a JSON object.
    """
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError:
        pass  # well-formed, but some field is odd: look at each by itself
    except msgspec.DecodeError as error:
        raise ValueError(f"metadata is not JSON: {error}") from error
    found = msgspec.json.decode(raw)
    if not isinstance(found, dict):
        raise ValueError(f"metadata is not an object (found {type(found).__name__})")
    return _convert_leniently(found)


def _convert_leniently(found: Mapping[str, Any]) -> ObjectMeta:
    generation = found.get("generation")
    labels = found.get("labels")
    return ObjectMeta(
        name=_read_text(found.get("name")),
        namespace=_read_text(found.get("namespace")),
        uid=_read_text(found.get("uid")),
        resource_version=_read_text(found.get("resourceVersion")),
        generation=generation if isinstance(generation, int) else 0,
        creation_timestamp=_read_text(found.get("creationTimestamp")),
        deletion_timestamp=_read_text(found.get("deletionTimestamp")),
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
            for owner in _read_list(found.get("ownerReferences"))
            if isinstance(owner, Mapping)
        ),
        finalizers=tuple(name for name in _read_list(found.get("finalizers")) if isinstance(name, str)),
    )


def _read_list(found: object) -> list[Any]:
    return found if isinstance(found, list) else []


def _read_text(found: object) -> str:
    return found if isinstance(found, str) else ""

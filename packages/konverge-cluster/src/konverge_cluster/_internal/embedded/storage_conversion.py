"""Conversion between one stored form and several served forms: versions of custom resources, and of Events.

Objects are stored in one form. A resource that serves another form converts on writes and reads. Only field names
change, unless a webhook converts (`webhooks.webhook_converter`).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from konverge._internal.apply import Schema, with_schema_defaults
from konverge._internal.kube import Object
from konverge_cluster._internal.embedded.pruning import prune

__all__ = ["EventConversion", "StorageConversion", "VersionConversion", "WebhookConversion"]


class StorageConversion(Protocol):
    """Conversion between a resource's form and the stored form. The arguments are not changed."""

    def to_stored(self, obj: Object) -> Object:
        """Return the stored form of a served object."""

    def from_stored(self, obj: Object) -> Object:
        """Return the served form of a stored object."""

    def to_stored_path(self, path: str) -> str:
        """Return the path in the stored form for a dotted path."""


@dataclass(frozen=True, slots=True)
class VersionConversion:
    """A version of a custom resource that differs from the others only in apiVersion (conversion strategy ``None``).

    A write keeps only the fields of the storage version. A read adds the defaults of the version in which the object
    is stored, and shows only the fields of the served version.

    Attributes:
        served: The served apiVersion.
        stored: The apiVersion of the storage version.
        schemas: The schemas of all versions, by apiVersion.
    """

    served: str
    stored: str
    schemas: Mapping[str, Schema]

    def to_stored(self, obj: Object) -> Object:
        """Return the object as the storage version has it."""
        if self.served == self.stored:
            return obj
        return self._keep_known(obj | {"apiVersion": self.stored}, self.stored)

    def from_stored(self, obj: Object) -> Object:
        """Return the object as the served version has it."""
        version = obj["apiVersion"]
        schema = self.schemas.get(version)
        if schema is not None:
            completed = with_schema_defaults(obj, schema) | {"metadata": obj["metadata"]}
            obj = self._keep_known(completed, version)
        return obj if version == self.served else self._keep_known(obj | {"apiVersion": self.served}, self.served)

    def to_stored_path(self, path: str) -> str:
        """Return the path, which is the same."""
        return path

    def _keep_known(self, obj: Object, version: str) -> Object:
        known: Object = copy.deepcopy({name: value for name, value in obj.items() if name != "metadata"})
        prune(known, self.schemas[version])
        return {**known, "metadata": obj["metadata"]}


@dataclass(frozen=True, slots=True)
class WebhookConversion:
    """A version of a custom resource that a webhook converts (conversion strategy ``Webhook``).

    Attributes:
        served: The served apiVersion.
        stored: The apiVersion of the storage version.
        client_config: The client configuration of the webhook.
    """

    served: str
    stored: str
    client_config: Mapping[str, Any]

    def to_stored(self, obj: Object) -> Object:
        """Return the object, which must have the storage version."""
        return _with_version(obj, self.stored)

    def from_stored(self, obj: Object) -> Object:
        """Return the object, which must have the served version."""
        return _with_version(obj, self.served)

    def to_stored_path(self, path: str) -> str:
        """Return the same path: field selectors use the stored form."""
        return path


def _with_version(obj: Object, version: str) -> Object:
    if obj["apiVersion"] != version:
        raise RuntimeError(f"the webhook has not been asked for the form of {version} (this is {obj['apiVersion']})")
    return obj


# events.k8s.io/v1 to v1.
_EVENT_FIELDS: Mapping[str, str] = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_EVENT_FIELDS_BACK: Mapping[str, str] = {core: name for name, core in _EVENT_FIELDS.items()}


class EventConversion:
    """An Event of ``events.k8s.io/v1``, stored in the form of the core group."""

    def to_stored(self, obj: Object) -> Object:
        """Return the event with the field names of the core group."""
        return {_EVENT_FIELDS.get(name, name): value for name, value in obj.items()} | {"apiVersion": "v1"}

    def from_stored(self, obj: Object) -> Object:
        """Return the event with the field names of events.k8s.io."""
        renamed = {_EVENT_FIELDS_BACK.get(name, name): value for name, value in obj.items()}
        for name in ("reportingController", "reportingInstance"):
            if not renamed.get(name):
                renamed.pop(name, None)
        return renamed | {"apiVersion": "events.k8s.io/v1"}

    def to_stored_path(self, path: str) -> str:
        """Return the field path with its first name as in the core group, for example ``involvedObject.name``."""
        name, dot, rest = path.partition(".")
        return _EVENT_FIELDS.get(name, name) + dot + rest

"""One stored object, several served forms: versions of a custom resource, and the two forms of an Event.

Objects are stored in one form. A resource that serves another converts on the way in and on the way out; nothing but
the names of fields ever changes, unless a webhook converts (`konverge_cluster.embedded.webhooks.webhook_converter`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from konverge.kube import Object

__all__ = ["EventConversion", "StorageConversion", "VersionConversion", "WebhookConversion"]


class StorageConversion(Protocol):
    """How a resource's form and the stored form become each other. Neither changes what it is given."""

    def to_stored(self, obj: Object) -> Object:
        """The stored form of a served object."""

    def from_stored(self, obj: Object) -> Object:
        """The served form of a stored object."""

    def to_stored_path(self, path: str) -> str:
        """Where the stored form has the field of that dotted path."""


class VersionConversion:
    """Another version of a custom resource: only apiVersion differs (conversion strategy ``None``)."""

    def __init__(self, *, served: str, stored: str) -> None:
        self._served = served
        self._stored = stored

    def to_stored(self, obj: Object) -> Object:
        """With the apiVersion of the storage version."""
        return obj | {"apiVersion": self._stored}

    def from_stored(self, obj: Object) -> Object:
        """With the apiVersion that is served."""
        return obj | {"apiVersion": self._served}

    def to_stored_path(self, path: str) -> str:
        """The same."""
        return path


@dataclass(frozen=True, slots=True)
class WebhookConversion:
    """A version of a custom resource that a webhook converts (conversion strategy ``Webhook``).

    Attributes:
        served: The apiVersion that is served.
        stored: That of the storage version.
        client_config: How the webhook is reached.
    """

    served: str
    stored: str
    client_config: Mapping[str, Any]

    def to_stored(self, obj: Object) -> Object:
        """The object, which has to be in the storage version."""
        return _with_version(obj, self.stored)

    def from_stored(self, obj: Object) -> Object:
        """The object, which has to be in the version that is served."""
        return _with_version(obj, self.served)

    def to_stored_path(self, path: str) -> str:
        """The same: field selectors look at the stored form."""
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
    """An Event of ``events.k8s.io/v1``, stored as the core group's."""

    def to_stored(self, obj: Object) -> Object:
        """In the names of the core group."""
        return {_EVENT_FIELDS.get(name, name): value for name, value in obj.items()} | {"apiVersion": "v1"}

    def from_stored(self, obj: Object) -> Object:
        """In the names of events.k8s.io."""
        renamed = {_EVENT_FIELDS_BACK.get(name, name): value for name, value in obj.items()}
        for name in ("reportingController", "reportingInstance"):
            if not renamed.get(name):
                renamed.pop(name, None)
        return renamed | {"apiVersion": "events.k8s.io/v1"}

    def to_stored_path(self, path: str) -> str:
        """With its first name in the core group's spelling."""
        name, dot, rest = path.partition(".")
        return _EVENT_FIELDS.get(name, name) + dot + rest

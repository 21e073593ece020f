"""Applies of objects with values that are made once: of two requests with different values, one fails.

A server-side apply has no "create only", and a request can arrive late: after a timeout, or after a pause of the
process. So an object that does not exist is created without its values. The values follow in an apply that names the
UID and the version of that object, like each later apply. Every request with other values names an older version.
"""

from __future__ import annotations

from dataclasses import dataclass

from konverge._internal.component.client_protocol import ApplyResult, ComponentClient
from konverge._internal.kube import Object
from konverge._internal.primitives.value_generation import GENERATED_AT
from konverge.errors import ConflictError

__all__ = ["apply_guarded"]

# The types of Secrets for which the server requires keys: they are blank until the values are made.
_REQUIRED_KEYS = {
    "kubernetes.io/basic-auth": ("username", "password"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
# The server requires JSON in their keys, so that they cannot be blank.
_WHOLE = frozenset({"kubernetes.io/dockercfg", "kubernetes.io/dockerconfigjson"})
_BLANK = "Cg=="  # a line end


@dataclass(frozen=True, slots=True)
class _GuardedResult:
    """The response to a guarded apply (`konverge._internal.component.client_protocol.ApplyResult`)."""

    object: Object
    created: bool


async def apply_guarded(client: ComponentClient, obj: Object, live: Object | None, field_manager: str) -> ApplyResult:
    """Apply the object, if it has not changed since it was read.

    Args:
        client: The cluster.
        obj: The desired object in the server's form.
        live: The object as it was read from the server; None if it does not exist.
        field_manager: The field manager.

    Raises:
        konverge.errors.ConflictError: The object changed or was deleted since, or another client has created it.
    """
    created = False
    if live is None:
        reserved = await client.apply(_remove_values(obj), field_manager=field_manager)
        if not reserved.created:
            raise ConflictError("the object appeared during the reconcile")
        live, created = reserved.object, True
    metadata = live["metadata"]
    guard = {name: metadata[name] for name in ("uid", "resourceVersion") if metadata.get(name)}
    if len(guard) == 2:  # without a resource version, the object exists only in a dry run
        obj = {**obj, "metadata": {**obj["metadata"], **guard}}
    applied = await client.apply(obj, field_manager=field_manager)
    return _GuardedResult(applied.object, created or applied.created)


def _remove_values(obj: Object) -> Object:
    """Return the object without its values, and without the record that they were made."""
    kind = obj.get("type")
    if kind in _WHOLE:
        return obj
    annotations = {name: text for name, text in obj["metadata"].get("annotations", {}).items() if name != GENERATED_AT}
    data = obj.get("data") or {}
    blank = {key: _BLANK for key in _REQUIRED_KEYS.get(str(kind), ()) if key in data}
    reserved = {name: value for name, value in obj.items() if name not in ("data", "stringData", "immutable")}
    reserved["metadata"] = {**obj["metadata"], "annotations": annotations}
    return reserved | ({"data": blank} if blank else {})

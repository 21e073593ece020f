"""A private API server with the initial objects of a rendering."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress

from konverge._internal.client import Client
from konverge._internal.crd import UnstructuredResource, crd_manifest, find_definition
from konverge._internal.extras import missing_package
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey, format_identity
from konverge._internal.operator.placeholder_definitions import install_placeholders
from konverge.clock import Clock, Entropy
from konverge.errors import ConfigurationError, ConflictError, KonvergeError

__all__ = ["private_server", "store_object"]

_USER_AGENT = "konverge-render"
_FIELD_MANAGER = "given"
_NAMESPACE = GroupVersionKind("", "v1", "Namespace")
_OPEN = "x-kubernetes-preserve-unknown-fields"


@asynccontextmanager
async def private_server(
    kinds: Iterable[type[UnstructuredResource]],
    given: Iterable[Object],
    namespace: str,
    *,
    further_kinds: Mapping[GroupVersionKind, bool],
    clock: Clock,
    entropy: Entropy,
) -> AsyncIterator[Client]:
    """Run a server in memory without controllers: its objects do not change by themselves.

    Kinds that the server does not know get definitions that accept any object.

    Args:
        kinds: The custom resources of the box.
        given: The objects, with their status; namespaced ones without a namespace get the default.
        namespace: The default namespace; it is created, as are the namespaces of the objects.
        further_kinds: Further kinds, and whether they are namespaced.
        clock: The clock of the server.
        entropy: The source of its identifiers.

    Raises:
        konverge.errors.ConfigurationError: The server rejects an object, which the message names.
    """
    try:
        from konverge_cluster._internal.embedded import LocalCluster
    except ImportError as error:
        raise missing_package("the server of a rendering", error) from None

    async with LocalCluster(clock=clock, entropy=entropy, controllers=False) as cluster:
        client = Client(cluster.transport(), user_agent=_USER_AGENT, clock=clock)
        try:
            for cls in kinds:
                await client.apply(_build_definition(cls), field_manager=_FIELD_MANAGER)
            objects = list(given)
            await install_placeholders(client, {**further_kinds, **_collect_kinds(objects)})
            await client.close()
            client = Client(cluster.transport(), user_agent=_USER_AGENT, clock=clock)  # one without cached discovery
            for obj in sorted(objects, key=lambda each: GroupVersionKind.of(each) != _NAMESPACE):
                try:
                    await store_object(client, obj, namespace)
                except KonvergeError as error:
                    raise ConfigurationError(f"given {_format_object_name(obj)}: {error}") from error
            yield client
        finally:
            await client.close()


async def store_object(client: Client, obj: Object, namespace: str) -> Object:
    """Store an object in the server, with its status and its namespace.

    Raises:
        konverge.errors.KonvergeError: The server rejects the object.
    """
    gvk = GroupVersionKind.of(obj)
    metadata = dict(obj.get("metadata") or {})
    if (await client.mapping(gvk)).namespaced:
        metadata.setdefault("namespace", namespace)
        parent = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": metadata["namespace"]}}
        with suppress(ConflictError):
            await client.create(parent)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        metadata.pop(name, None)
    try:
        stored = await client.create({**obj, "metadata": metadata})
    except ConflictError:
        if gvk != _NAMESPACE:
            raise
        stored = await client.get(gvk, ObjectKey("", str(metadata["name"])))
    if obj.get("status"):
        stored = await client.update({**stored, "status": obj["status"]}, subresource="status")
    return stored


def _build_definition(cls: type[UnstructuredResource]) -> Object:
    """Return the definition of a kind; one without a schema in the box accepts any object."""
    definition = find_definition(cls)
    manifest = crd_manifest(cls)
    if definition.schema.get("properties", {}).get("spec", {}).get(_OPEN):
        for version in manifest["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"][_OPEN] = True
    return manifest


def _collect_kinds(objects: Iterable[Object]) -> dict[GroupVersionKind, bool]:
    found: dict[GroupVersionKind, bool] = {}
    for obj in objects:
        if not isinstance(obj.get("apiVersion"), str) or not isinstance(obj.get("kind"), str):
            raise ConfigurationError("given objects: expected apiVersion and kind, found none")
        gvk = GroupVersionKind.of(obj)
        found[gvk] = found.get(gvk, False) or bool((obj.get("metadata") or {}).get("namespace"))
    return found


def _format_object_name(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    return format_identity(
        GroupVersionKind.of(obj), ObjectKey(str(metadata.get("namespace", "")), str(metadata.get("name")))
    )

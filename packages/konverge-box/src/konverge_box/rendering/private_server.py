"""A private API server that holds what a rendering was given."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress

from konverge.client import Client
from konverge.clock import Clock, Entropy
from konverge.crd import UnstructuredResource, crd_manifest, find_definition, unstructured_resource
from konverge.errors import ConfigurationError, ConflictError, KindNotServedError, KonvergeError
from konverge.extras import missing_package
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_identity

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
    made: Mapping[GroupVersionKind, bool],
    clock: Clock,
    entropy: Entropy,
) -> AsyncIterator[Client]:
    """A server in memory without controllers: what it holds stays as it is.

    Kinds that no server knows by itself are made up: their objects take anything.

    Args:
        kinds: The custom resources of the box.
        given: The objects, with their status; those without a namespace whose kind has one get the default.
        namespace: The default; it is made, as are all that objects name.
        made: Further kinds, and whether they have namespaces.
        clock: Its time.
        entropy: Its identifiers.

    Raises:
        konverge.errors.ConfigurationError: It refuses an object; the message says which.
    """
    try:
        from konverge_cluster.embedded import LocalCluster
    except ImportError as error:
        raise missing_package("the server of a rendering", error) from None

    async with LocalCluster(clock=clock, entropy=entropy, controllers=False) as cluster:
        client = Client(cluster.transport(), user_agent=_USER_AGENT, clock=clock)
        try:
            for cls in kinds:
                await client.apply(_build_definition(cls), field_manager=_FIELD_MANAGER)
            objects = list(given)
            for gvk, is_namespaced in {**made, **_collect_kinds(objects)}.items():
                await _serve_kind(client, gvk, is_namespaced=is_namespaced)
            await client.close()
            client = Client(cluster.transport(), user_agent=_USER_AGENT, clock=clock)  # one that has not asked before
            for obj in sorted(objects, key=lambda each: GroupVersionKind.of(each) != _NAMESPACE):
                try:
                    await store_object(client, obj, namespace)
                except KonvergeError as error:
                    raise ConfigurationError(f"given {_format_object_name(obj)}: {error}") from error
            yield client
        finally:
            await client.close()


async def store_object(client: Client, obj: Object, namespace: str) -> Object:
    """Put an object into the server, with its status, and its namespace with it.

    Raises:
        konverge.errors.KonvergeError: The server refuses it.
    """
    gvk = GroupVersionKind.of(obj)
    metadata = dict(obj.get("metadata") or {})
    if (await client.mapping(gvk)).namespaced:
        metadata.setdefault("namespace", namespace)
        home = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": metadata["namespace"]}}
        with suppress(ConflictError):
            await client.create(home)
    for name in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        metadata.pop(name, None)
    try:
        made = await client.create({**obj, "metadata": metadata})
    except ConflictError:
        if gvk != _NAMESPACE:
            raise
        made = await client.get(gvk, ObjectKey("", str(metadata["name"])))
    if obj.get("status"):
        made = await client.update({**made, "status": obj["status"]}, subresource="status")
    return made


async def _serve_kind(client: Client, gvk: GroupVersionKind, *, is_namespaced: bool) -> None:
    try:
        await client.mapping(gvk)
    except KindNotServedError:
        made_up = unstructured_resource(gvk, {}, scope="Namespaced" if is_namespaced else "Cluster")
        await client.apply(_build_definition(made_up), field_manager=_FIELD_MANAGER)


def _build_definition(cls: type[UnstructuredResource]) -> Object:
    """The definition of a kind; one whose schema the cluster would have takes anything."""
    definition = find_definition(cls)
    manifest = crd_manifest(cls)
    if definition.gvk.group.endswith(".k8s.io"):  # a server wants to know who has agreed to that
        manifest["metadata"].setdefault("annotations", {})["api-approved.kubernetes.io"] = "unapproved, made up"
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

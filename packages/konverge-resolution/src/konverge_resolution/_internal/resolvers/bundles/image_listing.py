"""The definitions that an image has: those of its annotations, its titles, or its archive."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from konverge._internal.cancellation import await_shielded
from konverge_resolution._internal.definition_listing import ListedDefinition
from konverge_resolution._internal.resolvers.bundles.archives import MAX_ARCHIVE_BYTES, list_archive
from konverge_resolution._internal.resolvers.bundles.layer_selection import (
    API_VERSION,
    KIND,
    NAME,
    TITLE,
    check_layers,
    find_archive,
    is_bundle,
    is_file_layer,
)
from konverge_resolution._internal.resolvers.bundles.manifests import Descriptor, Manifest
from konverge_resolution._internal.resolvers.bundles.registry_client import RegistryClient

__all__ = ["list_image"]


async def list_image(registry: RegistryClient, manifest: Manifest, what: str) -> Sequence[ListedDefinition]:
    """Return the definitions of an image; only an archive must be fetched for that.

    Args:
        registry: The client for the image's repository.
        manifest: The manifest of the image.
        what: The name of the image in messages.

    Raises:
        ResolutionError: The image has too many layers, or its archive cannot be read.
    """
    check_layers(manifest, what)
    if is_bundle(manifest):
        return [_list_object(layer) for layer in manifest.layers]
    listed = [_list_file(layer) for layer in manifest.layers if is_file_layer(layer)]
    archive = find_archive(manifest)
    if archive is None:
        return listed
    data = await registry.get_blob(archive, max_bytes=MAX_ARCHIVE_BYTES, what=f"the archive of {what}")
    files = await await_shielded(asyncio.to_thread(list_archive, data, what=what))
    return listed + [ListedDefinition({"name": path}, size, archive.digest) for path, size in sorted(files.items())]


def _list_object(layer: Descriptor) -> ListedDefinition:
    selected = {"kind": layer.get_annotation(KIND), "name": layer.get_annotation(NAME)}
    return ListedDefinition(selected, layer.size, layer.digest, {"apiVersion": layer.get_annotation(API_VERSION)})


def _list_file(layer: Descriptor) -> ListedDefinition:
    title = layer.get_annotation(TITLE)
    return ListedDefinition({"name": title} if title else {}, layer.size, layer.digest, {"mediaType": layer.media_type})

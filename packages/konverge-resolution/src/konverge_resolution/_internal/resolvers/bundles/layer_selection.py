"""Selection of the layer with the definition that a reference names. Pure.

There are three layouts. In Tekton bundles, annotations of each layer give name, kind and version of its object. In
plain artifacts, as oras pushes them, layers are YAML files with a title. In archives, such as those of Flux and Helm,
one layer has many files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from konverge._internal.suggestions import closest_match
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error
from konverge_resolution._internal.resolvers.bundles.manifests import Descriptor, Manifest

__all__ = [
    "API_VERSION",
    "KIND",
    "MAX_LAYERS",
    "NAME",
    "TITLE",
    "LayerChoice",
    "build_missing_error",
    "check_layers",
    "find_archive",
    "is_bundle",
    "is_file_layer",
    "select_layer",
]

NAME = "dev.tekton.image.name"
KIND = "dev.tekton.image.kind"
API_VERSION = "dev.tekton.image.apiVersion"
TITLE = "org.opencontainers.image.title"

MAX_LAYERS = 20
"""Maximum number of layers in a bundle; the same limit as in Tekton."""

_FILE_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/json")
_TAR_TYPE = re.compile(
    r"application/vnd\.(oci\.image\.layer\.(nondistributable\.)?v1\.tar(\+(gzip|zstd))?"
    r"|docker\.image\.rootfs\.(foreign\.)?diff\.tar(\.(gzip|zstd))?)"
)
_ARCHIVE_TYPE = re.compile(r"application/(vnd\.[a-z0-9][a-z0-9.-]*\.|x-)tar([+.](gzip|gz|zstd))?")
"""Media types of archives with many files: those of images, Flux, Helm and others."""
_ENDINGS = ("yaml", "yml", "json")
_MAX_LISTED = 20
_MAX_TEXT = 80


def is_bundle(manifest: Manifest) -> bool:
    """Tell whether an image has Tekton's layout, complete or not."""
    return any(layer.get_annotation(name) for layer in manifest.layers for name in (NAME, KIND, API_VERSION))


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """Layer with the definition.

    Args:
        layer: The layer.
        is_archive: Whether the name of the reference is a path in the layer, and not that of the layer.
    """

    layer: Descriptor
    is_archive: bool = False


def select_layer(manifest: Manifest, *, name: str, kind: str, what: str) -> LayerChoice:
    """Return the layer with the definition.

    Args:
        manifest: The manifest of the image.
        name: The name of the object, the title of the file with or without its extension, or a path in the archive.
        kind: The kind of the object in upper or lower case; ignored for a plain artifact and an archive.
        what: The name of the image in messages.

    Raises:
        ResolutionError: ``UnsupportedContent``: the image has none of the layouts; ``NotFound``: no layer matches.
    """
    check_layers(manifest, what)
    return (
        LayerChoice(_select_bundle_layer(manifest, name, kind, what))
        if is_bundle(manifest)
        else _select_artifact_layer(manifest, name, what)
    )


def check_layers(manifest: Manifest, what: str) -> None:
    """Refuse an image without layers, or with too many.

    Raises:
        ResolutionError: ``UnsupportedContent``.
    """
    if not manifest.layers:
        raise build_unsupported_error(what, "layers", "none")
    if len(manifest.layers) > MAX_LAYERS:
        raise build_unsupported_error(what, f"at most {MAX_LAYERS} layers", str(len(manifest.layers)))


def _select_bundle_layer(manifest: Manifest, name: str, kind: str, what: str) -> Descriptor:
    seen = set()
    for number, layer in enumerate(manifest.layers):
        for annotation in (NAME, KIND, API_VERSION):
            if not layer.get_annotation(annotation):
                raise build_unsupported_error(what, f"annotation {annotation} on layer {number}", "none")
        identity = (layer.get_annotation(API_VERSION), layer.get_annotation(KIND).lower(), layer.get_annotation(NAME))
        if identity in seen:
            raise build_unsupported_error(what, "each object once", f"{' '.join(identity)[:200]!r} twice")
        seen.add(identity)
    # A bundle can contain several versions of an object: the first one is used, as in Tekton's resolver.
    for layer in manifest.layers:
        if layer.get_annotation(NAME) == name and layer.get_annotation(KIND).lower() == kind.lower():
            _check_media_type(layer, what)
            return layer
    available = [f"{layer.get_annotation(KIND)}/{layer.get_annotation(NAME)}" for layer in manifest.layers]
    raise build_missing_error(what, f"{kind}/{name}", available)


def _select_artifact_layer(manifest: Manifest, name: str, what: str) -> LayerChoice:
    files = [layer for layer in manifest.layers if is_file_layer(layer)]
    matches = [layer for layer in files if name in _list_names(layer.get_annotation(TITLE))]
    if len(matches) > 1:
        raise build_unsupported_error(what, "each file once", f"{len(matches)} with the title {name[:_MAX_TEXT]!r}")
    if matches:
        return LayerChoice(matches[0])
    if len(manifest.layers) == 1 and files and not files[0].get_annotation(TITLE):
        return LayerChoice(files[0])  # the artifact consists of this file
    if (archive := find_archive(manifest)) is not None:
        return LayerChoice(archive, is_archive=True)
    if files:
        raise build_missing_error(
            what, name, [layer.get_annotation(TITLE) or "a file without a title" for layer in files]
        )
    types = ", ".join(sorted({layer.media_type[:_MAX_TEXT] for layer in manifest.layers})[:5])
    raise build_unsupported_error(
        what, f"layers with {NAME}, layers of a media type such as {_FILE_TYPES[0]}, or one archive", types
    )


def find_archive(manifest: Manifest) -> Descriptor | None:
    """Return the only layer that is an archive with many files; None without one or with several."""
    archives = [
        layer
        for layer in manifest.layers
        if _ARCHIVE_TYPE.fullmatch(_get_plain_type(layer)) and not is_file_layer(layer)
    ]
    return archives[0] if len(archives) == 1 else None


def _check_media_type(layer: Descriptor, what: str) -> None:
    """Refuse a layer that declares other content than a tar or a file, before it is fetched."""
    if not _TAR_TYPE.fullmatch(_get_plain_type(layer)) and not is_file_layer(layer):
        raise build_unsupported_error(
            what, "a layer with a tar, YAML or JSON", f"media type {layer.media_type[:_MAX_TEXT]!r}"
        )


def is_file_layer(layer: Descriptor) -> bool:
    """Tell whether a layer of a plain artifact is one file: by its media type, or by its title.

    oras gives a file without a type the media type of a tar.
    """
    plain = _get_plain_type(layer)
    if plain in _FILE_TYPES or (plain.startswith("application/vnd.") and plain.endswith(("+yaml", "+json"))):
        return True
    is_untyped = bool(_TAR_TYPE.fullmatch(plain)) or plain == "application/octet-stream"
    return is_untyped and len(_list_names(layer.get_annotation(TITLE))) > 1


def _get_plain_type(layer: Descriptor) -> str:
    return layer.media_type.partition(";")[0].strip().lower()


def _list_names(title: str) -> tuple[str, ...]:
    """Return a title, and without its extension where it has that of a definition."""
    stem, dot, ending = title.rpartition(".")
    return (title, stem) if dot and stem and ending in _ENDINGS else (title,)


def build_missing_error(what: str, wanted: str, available: Sequence[str]) -> ResolutionError:
    """Return the ``NotFound`` error for a name that an image does not have.

    Args:
        what: The name of the image.
        wanted: The name of the reference.
        available: The names that the image has.
    """
    listed = ", ".join(repr(name[:_MAX_TEXT]) for name in available[:_MAX_LISTED])
    near = closest_match(wanted, available)
    hint = f"; did you mean {near[:_MAX_TEXT]!r}?" if near else ""
    return ResolutionError(Reason.NOT_FOUND, f"{what} has no {wanted[:200]!r}; available: {listed}{hint}")

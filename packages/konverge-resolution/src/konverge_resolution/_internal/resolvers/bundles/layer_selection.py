"""Selection of the layer with the definition that a reference names. Pure.

There are two layouts. In Tekton bundles, annotations of each layer give name, kind and version of its object. In plain
artifacts, as other tools push them, layers are YAML files with a title.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from konverge._internal.suggestions import closest_match
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.resolvers.bundles.failures import build_unsupported_error
from konverge_resolution._internal.resolvers.bundles.manifests import Descriptor, Manifest

__all__ = ["API_VERSION", "KIND", "MAX_LAYERS", "NAME", "TITLE", "is_bundle", "select_layer"]

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
_MAX_LISTED = 20
_MAX_TEXT = 80


def is_bundle(manifest: Manifest) -> bool:
    """Tell whether an image has Tekton's layout, complete or not."""
    return any(layer.get_annotation(name) for layer in manifest.layers for name in (NAME, KIND, API_VERSION))


def select_layer(manifest: Manifest, *, name: str, kind: str, what: str) -> Descriptor:
    """Return the layer with the definition.

    Args:
        manifest: The manifest of the image.
        name: The name of the object, or the title of the file with or without its extension.
        kind: The kind of the object in upper or lower case; ignored for a plain artifact.
        what: The name of the image in messages.

    Raises:
        ResolutionError: ``UnsupportedContent``: the image has neither layout; ``NotFound``: no layer matches.
    """
    if not manifest.layers:
        raise build_unsupported_error(what, "layers", "none")
    if len(manifest.layers) > MAX_LAYERS:
        raise build_unsupported_error(what, f"at most {MAX_LAYERS} layers", str(len(manifest.layers)))
    return (
        _select_bundle_layer(manifest, name, kind, what)
        if is_bundle(manifest)
        else _select_titled_layer(manifest, name, what)
    )


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
    raise _build_not_found_error(what, f"{kind}/{name}", available)


def _select_titled_layer(manifest: Manifest, name: str, what: str) -> Descriptor:
    files = [layer for layer in manifest.layers if _is_file(layer.media_type)]
    if not files:
        types = ", ".join(sorted({layer.media_type[:_MAX_TEXT] for layer in manifest.layers})[:5])
        raise build_unsupported_error(
            what, f"layers with {NAME}, or layers of a media type such as {_FILE_TYPES[0]}", types
        )
    matches = [layer for layer in files if name in _list_names(layer.get_annotation(TITLE))]
    if len(matches) > 1:
        raise build_unsupported_error(what, "each file once", f"{len(matches)} with the title {name[:_MAX_TEXT]!r}")
    if matches:
        return matches[0]
    if len(manifest.layers) == 1 and not files[0].get_annotation(TITLE):
        return files[0]  # the artifact consists of this file
    raise _build_not_found_error(
        what, name, [layer.get_annotation(TITLE) or "a file without a title" for layer in files]
    )


def _check_media_type(layer: Descriptor, what: str) -> None:
    """Refuse a layer that declares other content than a tar or a file, before it is fetched."""
    if not _TAR_TYPE.fullmatch(layer.media_type.partition(";")[0].strip().lower()) and not _is_file(layer.media_type):
        raise build_unsupported_error(
            what, "a layer with a tar, YAML or JSON", f"media type {layer.media_type[:_MAX_TEXT]!r}"
        )


def _is_file(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain in _FILE_TYPES or (plain.startswith("application/vnd.") and plain.endswith(("+yaml", "+json")))


def _list_names(title: str) -> tuple[str, ...]:
    stem, dot, ending = title.rpartition(".")
    return (title, stem) if dot and stem and ending in ("yaml", "yml", "json") else (title,)


def _build_not_found_error(what: str, wanted: str, available: Sequence[str]) -> ResolutionError:
    listed = ", ".join(repr(name[:_MAX_TEXT]) for name in available[:_MAX_LISTED])
    near = closest_match(wanted, available)
    hint = f"; did you mean {near[:_MAX_TEXT]!r}?" if near else ""
    return ResolutionError(Reason.NOT_FOUND, f"{what} has no {wanted[:200]!r}; available: {listed}{hint}")

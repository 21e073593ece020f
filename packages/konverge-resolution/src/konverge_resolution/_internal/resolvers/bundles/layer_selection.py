"""Which layer of an image is the definition that a reference names. Pure.

Two layouts: Tekton's bundles, whose layers each say name, kind and version of their object; and plain artefacts, whose
layers are YAML files with a title, as other tools push them.
"""

from __future__ import annotations

from collections.abc import Sequence

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
"""Of a bundle; Tekton's own limit."""

_FILE_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/json")
_MAX_LISTED = 20
_MAX_TEXT = 80


def is_bundle(manifest: Manifest) -> bool:
    """Tell whether it has Tekton's layout, complete or not."""
    return any(layer.get_annotation(name) for layer in manifest.layers for name in (NAME, KIND, API_VERSION))


def select_layer(manifest: Manifest, *, name: str, kind: str, what: str) -> Descriptor:
    """The layer of the definition.

    Args:
        manifest: The image.
        name: The object's name, or the file's title with or without its ending.
        kind: The object's kind in any case; a plain artefact does not say it.
        what: What messages call the image.

    Raises:
        ResolutionError: ``UnsupportedContent``: the image has neither layout; ``NotFound``: it has, and not this one.
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
                raise build_unsupported_error(what, f"annotation {annotation} of layer {number}", "none")
        identity = (layer.get_annotation(API_VERSION), layer.get_annotation(KIND).lower(), layer.get_annotation(NAME))
        if identity in seen:
            raise build_unsupported_error(what, "every object once", f"{' '.join(identity)[:200]!r} twice")
        seen.add(identity)
    # An object can be there in several versions: the first one is meant, as Tekton's own resolver reads it.
    for layer in manifest.layers:
        if layer.get_annotation(NAME) == name and layer.get_annotation(KIND).lower() == kind.lower():
            return layer
    there = [f"{layer.get_annotation(KIND)}/{layer.get_annotation(NAME)}" for layer in manifest.layers]
    raise _build_not_found_error(what, f"{kind}/{name}", there)


def _select_titled_layer(manifest: Manifest, name: str, what: str) -> Descriptor:
    files = [layer for layer in manifest.layers if _is_file(layer.media_type)]
    if not files:
        types = ", ".join(sorted({layer.media_type[:_MAX_TEXT] for layer in manifest.layers})[:5])
        raise build_unsupported_error(
            what, f"layers with {NAME}, or layers of a media type such as {_FILE_TYPES[0]}", types
        )
    found = [layer for layer in files if name in _list_names(layer.get_annotation(TITLE))]
    if len(found) > 1:
        raise build_unsupported_error(what, "every file once", f"{len(found)} with the title {name[:_MAX_TEXT]!r}")
    if found:
        return found[0]
    if len(manifest.layers) == 1 and not files[0].get_annotation(TITLE):
        return files[0]  # the artefact is this file
    raise _build_not_found_error(
        what, name, [layer.get_annotation(TITLE) or "a file without a title" for layer in files]
    )


def _is_file(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain in _FILE_TYPES or (plain.startswith("application/vnd.") and plain.endswith(("+yaml", "+json")))


def _list_names(title: str) -> tuple[str, ...]:
    stem, dot, ending = title.rpartition(".")
    return (title, stem) if dot and stem and ending in ("yaml", "yml", "json") else (title,)


def _build_not_found_error(what: str, wanted: str, there: Sequence[str]) -> ResolutionError:
    shown = ", ".join(repr(each[:_MAX_TEXT]) for each in there[:_MAX_LISTED])
    return ResolutionError(Reason.NOT_FOUND, f"{what} has no {wanted[:200]!r}; there are: {shown}")

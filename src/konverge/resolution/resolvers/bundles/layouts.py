"""Which layer of an image is the definition that a reference names. Pure.

Two layouts: Tekton's bundles, whose layers each say name, kind and version of their object; and plain artefacts, whose
layers are YAML files with a title, as other tools push them.
"""

from __future__ import annotations

from collections.abc import Sequence

from konverge.resolution.errors import ResolutionError
from konverge.resolution.reasons import Reason
from konverge.resolution.resolvers.bundles.failures import unsupported
from konverge.resolution.resolvers.bundles.manifests import Descriptor, Manifest

__all__ = ["API_VERSION", "KIND", "MAX_LAYERS", "NAME", "TITLE", "is_bundle", "layer_of"]

NAME = "dev.tekton.image.name"
KIND = "dev.tekton.image.kind"
API_VERSION = "dev.tekton.image.apiVersion"
TITLE = "org.opencontainers.image.title"

MAX_LAYERS = 20
"""Of a bundle; Tekton's own limit."""

_FILE_TYPES = ("application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "application/json")
_SHOWN = 20
_SHOWN_LENGTH = 80


def is_bundle(manifest: Manifest) -> bool:
    """Tell whether it has Tekton's layout, complete or not."""
    return any(layer.annotation(name) for layer in manifest.layers for name in (NAME, KIND, API_VERSION))


def layer_of(manifest: Manifest, *, name: str, kind: str, what: str) -> Descriptor:
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
        raise unsupported(what, "layers", "none")
    if len(manifest.layers) > MAX_LAYERS:
        raise unsupported(what, f"at most {MAX_LAYERS} layers", str(len(manifest.layers)))
    return _bundled(manifest, name, kind, what) if is_bundle(manifest) else _titled(manifest, name, what)


def _bundled(manifest: Manifest, name: str, kind: str, what: str) -> Descriptor:
    seen = set()
    for number, layer in enumerate(manifest.layers):
        for annotation in (NAME, KIND, API_VERSION):
            if not layer.annotation(annotation):
                raise unsupported(what, f"annotation {annotation} of layer {number}", "none")
        identity = (layer.annotation(API_VERSION), layer.annotation(KIND).lower(), layer.annotation(NAME))
        if identity in seen:
            raise unsupported(what, "every object once", f"{' '.join(identity)[:200]!r} twice")
        seen.add(identity)
    # An object can be there in several versions: the first one is meant, as Tekton's own resolver reads it.
    for layer in manifest.layers:
        if layer.annotation(NAME) == name and layer.annotation(KIND).lower() == kind.lower():
            return layer
    there = [f"{layer.annotation(KIND)}/{layer.annotation(NAME)}" for layer in manifest.layers]
    raise _not_found(what, f"{kind}/{name}", there)


def _titled(manifest: Manifest, name: str, what: str) -> Descriptor:
    files = [layer for layer in manifest.layers if _is_file(layer.media_type)]
    if not files:
        types = ", ".join(sorted({layer.media_type[:_SHOWN_LENGTH] for layer in manifest.layers})[:5])
        raise unsupported(what, f"layers with {NAME}, or layers of a media type such as {_FILE_TYPES[0]}", types)
    found = [layer for layer in files if name in _names(layer.annotation(TITLE))]
    if len(found) > 1:
        raise unsupported(what, "every file once", f"{len(found)} with the title {name[:_SHOWN_LENGTH]!r}")
    if found:
        return found[0]
    if len(manifest.layers) == 1 and not files[0].annotation(TITLE):
        return files[0]  # the artefact is this file
    raise _not_found(what, name, [layer.annotation(TITLE) or "a file without a title" for layer in files])


def _is_file(media_type: str) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return plain in _FILE_TYPES or (plain.startswith("application/vnd.") and plain.endswith(("+yaml", "+json")))


def _names(title: str) -> tuple[str, ...]:
    stem, dot, ending = title.rpartition(".")
    return (title, stem) if dot and stem and ending in ("yaml", "yml", "json") else (title,)


def _not_found(what: str, wanted: str, there: Sequence[str]) -> ResolutionError:
    shown = ", ".join(repr(each[:_SHOWN_LENGTH]) for each in there[:_SHOWN])
    return ResolutionError(Reason.NOT_FOUND, f"{what} has no {wanted[:200]!r}; there are: {shown}")

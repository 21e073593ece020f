"""Gets the signatures that a registry keeps beside an image: by its list of referrers, and by cosign's tag.

A registry that has no such list may have a tag that stands for it, as OCI's distribution specification has it.
"""

from __future__ import annotations

from collections.abc import Iterable

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.resolved_content import AttachedSignature
from konverge_resolution._internal.resolvers.bundles.manifests import Descriptor, ImageIndex, Manifest
from konverge_resolution._internal.resolvers.bundles.registry_client import RegistryClient
from konverge_resolution._internal.signatures.cosign_signatures import (
    SIGSTORE_BUNDLE,
    SIMPLE_SIGNING,
    is_attached_signature,
)

__all__ = ["MAX_SIGNATURES", "fetch_signatures"]

MAX_SIGNATURES = 20
"""Of one image; what comes after these is not looked at."""

_MAX_BYTES = 256 * 1024
_ARTIFACT = "application/vnd.dev.cosign.artifact.sig.v1+json"
_ANNOTATION = "dev.cosignproject.cosign/signature"


async def fetch_signatures(registry: RegistryClient, digests: Iterable[Digest]) -> tuple[AttachedSignature, ...]:
    """The signatures of what has one of these digests. What cannot be read is no signature.

    Args:
        registry: Where the image is.
        digests: Of the manifest, and of the index that led to it.

    Raises:
        ResolutionError: The registry does not answer.
    """
    found: list[AttachedSignature] = []
    for digest in dict.fromkeys(digests):
        for manifest in await _fetch_manifests(registry, digest):
            for layer in manifest.layers:
                if len(found) >= MAX_SIGNATURES:
                    return tuple(found)
                if is_attached_signature(layer.media_type):
                    try:
                        payload = await registry.get_blob(layer, max_bytes=_MAX_BYTES, what="a signature")
                    except ResolutionError as error:
                        if error.traits.is_transient:
                            raise
                        continue
                    found.append(
                        AttachedSignature(layer.media_type, payload, str(digest), layer.get_annotation(_ANNOTATION))
                    )
    return tuple(found)


async def _fetch_manifests(registry: RegistryClient, digest: Digest) -> list[Manifest]:
    tag = f"{digest.algorithm}-{digest.hex}"
    asked: list[Digest | str] = [
        entry.parsed_digest
        for entry in await _list_referrers(registry, digest, tag)
        if entry.artifact_type in (_ARTIFACT, SIMPLE_SIGNING) or (entry.artifact_type or "").startswith(SIGSTORE_BUNDLE)
    ]
    asked = [*asked[:MAX_SIGNATURES], f"{tag}.sig"]
    found = [await registry.find_manifest(each) for each in asked]
    return [each.document for each in found if each is not None and isinstance(each.document, Manifest)]


async def _list_referrers(registry: RegistryClient, digest: Digest, tag: str) -> tuple[Descriptor, ...]:
    index = await registry.list_referrers(digest)
    if index is not None:
        return index.manifests
    found = await registry.find_manifest(tag)
    return found.document.manifests if found is not None and isinstance(found.document, ImageIndex) else ()

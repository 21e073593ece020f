"""Signatures beside an image in a registry, found by the list of referrers and by cosign's tag.

A registry without such a list can have a tag in its place (OCI distribution specification, "Referrers Tag Schema").
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
"""Maximum number of signatures of one image; further ones are ignored."""

_MAX_BYTES = 256 * 1024
_ARTIFACT = "application/vnd.dev.cosign.artifact.sig.v1+json"
_ANNOTATION = "dev.cosignproject.cosign/signature"


async def fetch_signatures(registry: RegistryClient, digests: Iterable[Digest]) -> tuple[AttachedSignature, ...]:
    """Return the signatures for manifests with these digests; signatures that cannot be read are ignored.

    Args:
        registry: The client for the image's repository.
        digests: The digests of the manifest and of its index.

    Raises:
        ResolutionError: The registry cannot be reached.
    """
    signatures: list[AttachedSignature] = []
    for digest in dict.fromkeys(digests):
        for manifest in await _fetch_manifests(registry, digest):
            for layer in manifest.layers:
                if len(signatures) >= MAX_SIGNATURES:
                    return tuple(signatures)
                if is_attached_signature(layer.media_type):
                    try:
                        payload = await registry.get_blob(layer, max_bytes=_MAX_BYTES, what="a signature")
                    except ResolutionError as error:
                        if error.traits.is_transient:
                            raise
                        continue
                    signatures.append(
                        AttachedSignature(layer.media_type, payload, str(digest), layer.get_annotation(_ANNOTATION))
                    )
    return tuple(signatures)


async def _fetch_manifests(registry: RegistryClient, digest: Digest) -> list[Manifest]:
    tag = f"{digest.algorithm}-{digest.hex}"
    references: list[Digest | str] = [
        entry.parsed_digest
        for entry in await _list_referrers(registry, digest, tag)
        if entry.artifact_type in (_ARTIFACT, SIMPLE_SIGNING) or (entry.artifact_type or "").startswith(SIGSTORE_BUNDLE)
    ]
    references = [*references[:MAX_SIGNATURES], f"{tag}.sig"]
    manifests = [await registry.find_manifest(reference) for reference in references]
    return [pulled.document for pulled in manifests if pulled is not None and isinstance(pulled.document, Manifest)]


async def _list_referrers(registry: RegistryClient, digest: Digest, tag: str) -> tuple[Descriptor, ...]:
    index = await registry.list_referrers(digest)
    if index is not None:
        return index.manifests
    pulled = await registry.find_manifest(tag)
    return pulled.document.manifests if pulled is not None and isinstance(pulled.document, ImageIndex) else ()

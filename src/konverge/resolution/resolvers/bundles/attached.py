"""Gets the signatures that a registry keeps beside an image: by its list of referrers, and by cosign's tag."""

from __future__ import annotations

from collections.abc import Iterable

from konverge.resolution.errors import ResolutionError
from konverge.resolution.reference import Digest
from konverge.resolution.resolvers.bundles.manifests import Manifest
from konverge.resolution.resolvers.bundles.pulling import Registry
from konverge.resolution.result import Attached
from konverge.resolution.signatures.attached import SIGSTORE_BUNDLE, SIMPLE_SIGNING, is_attached_signature

__all__ = ["MAX_SIGNATURES", "attached_signatures"]

MAX_SIGNATURES = 20
"""Of one image; what comes after these is not looked at."""

_MAX_BYTES = 256 * 1024
_ARTIFACT = "application/vnd.dev.cosign.artifact.sig.v1+json"
_ANNOTATION = "dev.cosignproject.cosign/signature"


async def attached_signatures(registry: Registry, digests: Iterable[Digest]) -> tuple[Attached, ...]:
    """The signatures of what has one of these digests. What cannot be read is no signature.

    Raises:
        ResolutionError: The registry does not answer.
    """
    found: list[Attached] = []
    for digest in dict.fromkeys(digests):
        for manifest in await _manifests(registry, digest):
            for layer in manifest.layers:
                if len(found) >= MAX_SIGNATURES:
                    return tuple(found)
                if is_attached_signature(layer.media_type):
                    try:
                        payload = await registry.blob(layer, max_bytes=_MAX_BYTES, what="a signature")
                    except ResolutionError as error:
                        if error.facts.may_pass:
                            raise
                        continue
                    found.append(Attached(layer.media_type, payload, str(digest), layer.annotation(_ANNOTATION)))
    return tuple(found)


async def _manifests(registry: Registry, digest: Digest) -> list[Manifest]:
    asked: list[Digest | str] = [
        entry.parsed_digest
        for entry in await registry.referrers(digest)
        if entry.artifact_type in (_ARTIFACT, SIMPLE_SIGNING) or (entry.artifact_type or "").startswith(SIGSTORE_BUNDLE)
    ]
    asked = [*asked[:MAX_SIGNATURES], f"{digest.algorithm}-{digest.hex}.sig"]
    found = [await registry.optional_manifest(each) for each in asked]
    return [each.document for each in found if each is not None and isinstance(each.document, Manifest)]

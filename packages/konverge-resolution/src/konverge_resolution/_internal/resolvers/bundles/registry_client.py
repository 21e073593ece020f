"""Requests for manifests and blobs; only bytes that match their digest are returned.

A `RegistryClient` and its connections are for one image and one resolution. It sends only read requests.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.http_failures import build_status_error, wrap_network_errors
from konverge_resolution._internal.network import HttpResponse, HttpSession
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.reference import Digest
from konverge_resolution._internal.resolvers.bundles.failures import PLAIN_HTTP_HINT, build_size_error
from konverge_resolution._internal.resolvers.bundles.image_reference import ImageReference, name_source
from konverge_resolution._internal.resolvers.bundles.manifests import (
    ACCEPTED,
    MAX_MANIFEST_BYTES,
    OCI_INDEX,
    Descriptor,
    ImageIndex,
    Manifest,
    parse_manifest,
)
from konverge_resolution._internal.resolvers.bundles.registry_auth import RegistryAccess, RegistryAuth

__all__ = ["PulledManifest", "RegistryClient", "open_registry"]

_DIGEST_HEADER = "docker-content-digest"


@dataclass(frozen=True, slots=True)
class PulledManifest:
    """Manifest or index with its digest.

    Args:
        document: The parsed document.
        digest: The digest of its bytes.
        found_at: The target of a redirect, as policies name it; empty without redirects.
    """

    document: Manifest | ImageIndex
    digest: Digest
    found_at: str = ""


@asynccontextmanager
async def open_registry(access: RegistryAccess, image: ImageReference) -> AsyncIterator[RegistryClient]:
    """Yield a client for a registry; its connections close when the block ends.

    Args:
        access: The means to send requests to the registry.
        image: The image of the requests.
    """
    async with access.http.session() as session:
        yield RegistryClient(access, session, image)


class RegistryClient:
    """Client for one repository of a registry; created by `open_registry`."""

    def __init__(self, access: RegistryAccess, session: HttpSession, image: ImageReference) -> None:
        self.image = image
        self._access = access
        self._session = session
        self._authorization = RegistryAuth(access, session, image)
        self._base = f"{access.build_origin(image)}/v2/{image.repository}"

    async def resolve_tag(self, tag: str) -> Digest | None:
        """Return the current digest of a tag with one HEAD request; None if the response has no digest.

        The digest is a claim of the registry. The manifest that is fetched by it later is compared with it.

        Raises:
            ResolutionError: The tag does not exist, or the registry cannot be read.
        """
        what = f"image {self.image.name}:{tag}"
        response = await self._request(f"{self._base}/manifests/{tag}", what, accept=ACCEPTED, max_bytes=None)
        try:
            return Digest.parse(response.headers.get(_DIGEST_HEADER, ""))
        except ValueError:
            return None

    async def get_manifest(self, tag_or_digest: Digest | str, *, size: int | None = None) -> PulledManifest:
        """Return the manifest or index of a digest or a tag.

        Args:
            tag_or_digest: The digest or the tag.
            size: The size in the index that refers to it; None if no index does.

        Raises:
            ResolutionError: It does not exist, or it does not match its digest.
        """
        by_digest = isinstance(tag_or_digest, Digest)
        what = f"image {self.image.name}{'@' if by_digest else ':'}{tag_or_digest}"
        response = await self._request(
            f"{self._base}/manifests/{tag_or_digest}", what, accept=ACCEPTED, max_bytes=MAX_MANIFEST_BYTES
        )
        digest = tag_or_digest if isinstance(tag_or_digest, Digest) else _parse_claimed_digest(response, what)
        _check_bytes(response.body, digest, size, what)
        document = parse_manifest(response.body, response.headers.get("content-type", ""), what=what)
        return PulledManifest(document, digest, response.redirected_to and name_source(response.redirected_to))

    async def get_blob(self, descriptor: Descriptor, *, max_bytes: int, what: str) -> bytes:
        """Return the bytes that a manifest points to.

        Args:
            descriptor: The entry of the manifest.
            max_bytes: The maximum size.
            what: The name of the bytes in messages.

        Raises:
            ResolutionError: The blob does not exist, is too large or does not match its digest.
        """
        if descriptor.size > max_bytes:
            raise build_size_error(what, max_bytes, str(descriptor.size))
        url = f"{self._base}/blobs/{descriptor.digest}"
        try:
            response = await self._request(url, what, max_bytes=descriptor.size)
        except ResolutionError as error:
            if error.reason is not Reason.TOO_LARGE:
                raise
            raise _build_mismatch_error(what, f"{descriptor.size} bytes", "more") from None
        _check_bytes(response.body, descriptor.parsed_digest, descriptor.size, what)
        return response.body

    async def list_referrers(self, digest: Digest) -> ImageIndex | None:
        """Return the registry's list of referrers of a manifest; None if the registry has no such list.

        Raises:
            ResolutionError: The registry cannot be reached.
        """
        what = f"list of referrers of {digest}"
        try:
            response = await self._request(
                f"{self._base}/referrers/{digest}", what, accept=(OCI_INDEX,), max_bytes=MAX_MANIFEST_BYTES
            )
            document = parse_manifest(response.body, response.headers.get("content-type", ""), what=what)
        except ResolutionError as error:
            if error.traits.is_transient:
                raise
            return None
        return document if isinstance(document, ImageIndex) else ImageIndex(())

    async def find_manifest(self, tag_or_digest: Digest | str) -> PulledManifest | None:
        """Return the manifest of a digest or a tag; None if it does not exist or cannot be parsed.

        Raises:
            ResolutionError: The registry cannot be reached.
        """
        try:
            return await self.get_manifest(tag_or_digest)
        except ResolutionError as error:
            if error.traits.is_transient:
                raise
            return None

    async def _request(
        self, url: str, what: str, *, accept: Sequence[str] = ("*/*",), max_bytes: int | None
    ) -> HttpResponse:
        """Send a request, and again with a credential if the registry requires one; HEAD if `max_bytes` is None."""
        source = f"registry {self.image.registry} (request for {what})"
        with wrap_network_errors(source, without_tls=PLAIN_HTTP_HINT):
            response = await self._send(url, accept, max_bytes)
            if response.status == 401 and await self._authorization.handle_challenge(response):
                response = await self._send(url, accept, max_bytes)
        if response.status == 200:
            return response
        if response.status in (404, 410):
            message = f"registry {self.image.registry} has no {what}, or hides it (status {response.status})"
            raise ResolutionError(Reason.NOT_FOUND, message)
        has_login, now = self._authorization.has_login, self._access.clock.now()
        raise build_status_error(response, source, has_credential=has_login, now=now)

    async def _send(self, url: str, accept: Sequence[str], max_bytes: int | None) -> HttpResponse:
        credential = self._authorization.credential
        headers = {"Accept": ", ".join(accept)}
        if max_bytes is None:
            return await self._session.head(url, headers=headers, credential=credential)
        return await self._session.get(url, headers=headers, max_bytes=max_bytes, credential=credential)


def _parse_claimed_digest(response: HttpResponse, what: str) -> Digest:
    """Return the digest for a manifest of a tag: the claim of the registry, or the digest of the bytes without one."""
    claimed = response.headers.get(_DIGEST_HEADER, "")
    if not claimed:
        return Digest.of(response.body)
    try:
        return Digest.parse(claimed)
    except ValueError as error:
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{what}: header {_DIGEST_HEADER}: {error}") from None


def _check_bytes(data: bytes, digest: Digest, size: int | None, what: str) -> None:
    if size is not None and len(data) != size:
        raise _build_mismatch_error(what, f"{size} bytes", str(len(data)))
    if not digest.matches(data):
        raise _build_mismatch_error(what, str(digest), str(Digest.of(data, digest.algorithm)))


def _build_mismatch_error(what: str, expected: str, found: str) -> ResolutionError:
    message = f"{what}: digest mismatch: expected {expected}, found {found}"
    return ResolutionError(Reason.DIGEST_MISMATCH, message)

"""Asks a registry for manifests and blobs, and takes only bytes that are what their digest says.

One `Registry` is for one image and one resolution, as are its connections. It only ever reads.
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
    """A manifest or index.

    Args:
        document: It.
        digest: That of its bytes.
        found_at: Where a redirect led, as policies name it; empty without redirects.
    """

    document: Manifest | ImageIndex
    digest: Digest
    found_at: str = ""


@asynccontextmanager
async def open_registry(access: RegistryAccess, image: ImageReference) -> AsyncIterator[RegistryClient]:
    """A registry, as long as the block lasts; its connections end with it.

    Args:
        access: How the registry is asked.
        image: Which image is asked for.
    """
    async with access.http.session() as session:
        yield RegistryClient(access, session, image)


class RegistryClient:
    """One repository of a registry; made by `connected`."""

    def __init__(self, access: RegistryAccess, session: HttpSession, image: ImageReference) -> None:
        self.image = image
        self._access = access
        self._session = session
        self._authorization = RegistryAuth(access, session, image)
        self._base = f"{access.build_origin(image)}/v2/{image.repository}"

    async def resolve_tag(self, tag: str) -> Digest | None:
        """What a tag names now, by one request without a body; None when the registry does not say.

        It is what the registry claims. The manifest that is got by it later is compared with it.

        Raises:
            ResolutionError: There is no such tag, or no answer.
        """
        what = f"image {self.image.name}:{tag}"
        answer = await self._request(f"{self._base}/manifests/{tag}", what, accept=ACCEPTED, max_bytes=None)
        try:
            return Digest.parse(answer.headers.get(_DIGEST_HEADER, ""))
        except ValueError:
            return None

    async def get_manifest(self, asked: Digest | str, *, size: int | None = None) -> PulledManifest:
        """The manifest or index of a digest or a tag.

        Args:
            asked: The digest or the tag.
            size: How large it has to be, if somebody has said so.

        Raises:
            ResolutionError: There is none, or it is not what its digest says.
        """
        by_digest = isinstance(asked, Digest)
        what = f"image {self.image.name}{'@' if by_digest else ':'}{asked}"
        answer = await self._request(
            f"{self._base}/manifests/{asked}", what, accept=ACCEPTED, max_bytes=MAX_MANIFEST_BYTES
        )
        digest = asked if isinstance(asked, Digest) else _parse_claimed_digest(answer, what)
        _check_bytes(answer.body, digest, size, what)
        document = parse_manifest(answer.body, answer.headers.get("content-type", ""), what=what)
        return PulledManifest(document, digest, answer.redirected_to and name_source(answer.redirected_to))

    async def get_blob(self, descriptor: Descriptor, *, max_bytes: int, what: str) -> bytes:
        """The bytes that a manifest points to.

        Args:
            descriptor: Which.
            max_bytes: How many there may be.
            what: What messages call them.

        Raises:
            ResolutionError: There are none, too many, or others.
        """
        if descriptor.size > max_bytes:
            raise build_size_error(what, max_bytes, str(descriptor.size))
        url = f"{self._base}/blobs/{descriptor.digest}"
        try:
            answer = await self._request(url, what, max_bytes=descriptor.size)
        except ResolutionError as error:
            if error.reason is not Reason.TOO_LARGE:
                raise
            raise _build_mismatch_error(what, f"{descriptor.size} bytes", "more") from None
        _check_bytes(answer.body, descriptor.parsed_digest, descriptor.size, what)
        return answer.body

    async def list_referrers(self, digest: Digest) -> ImageIndex | None:
        """The registry's list of what says that it is about the manifest of that digest; None if it has no such list.

        Raises:
            ResolutionError: There is no answer.
        """
        what = f"list of what refers to {digest}"
        try:
            answer = await self._request(
                f"{self._base}/referrers/{digest}", what, accept=(OCI_INDEX,), max_bytes=MAX_MANIFEST_BYTES
            )
            document = parse_manifest(answer.body, answer.headers.get("content-type", ""), what=what)
        except ResolutionError as error:
            if error.traits.is_transient:
                raise
            return None
        return document if isinstance(document, ImageIndex) else ImageIndex(())

    async def find_manifest(self, asked: Digest | str) -> PulledManifest | None:
        """The manifest of a digest or a tag; None when there is none, or none that can be read.

        Raises:
            ResolutionError: There is no answer.
        """
        try:
            return await self.get_manifest(asked)
        except ResolutionError as error:
            if error.traits.is_transient:
                raise
            return None

    async def _request(
        self, url: str, what: str, *, accept: Sequence[str] = ("*/*",), max_bytes: int | None
    ) -> HttpResponse:
        """Ask, once more with what the registry wants to see if it says so; HEAD when there is to be no body."""
        source = f"registry {self.image.registry}, asked for {what},"
        with wrap_network_errors(source, without_tls=PLAIN_HTTP_HINT):
            answer = await self._send(url, accept, max_bytes)
            if answer.status == 401 and await self._authorization.handle_challenge(answer):
                answer = await self._send(url, accept, max_bytes)
        if answer.status == 200:
            return answer
        if answer.status in (404, 410):
            message = f"registry {self.image.registry} has no {what}, or hides it (status {answer.status})"
            raise ResolutionError(Reason.NOT_FOUND, message)
        has_login, now = self._authorization.has_login, self._access.clock.now()
        raise build_status_error(answer, source, has_credential=has_login, now=now)

    async def _send(self, url: str, accept: Sequence[str], max_bytes: int | None) -> HttpResponse:
        credential = self._authorization.credential
        headers = {"Accept": ", ".join(accept)}
        if max_bytes is None:
            return await self._session.head(url, headers=headers, credential=credential)
        return await self._session.get(url, headers=headers, max_bytes=max_bytes, credential=credential)


def _parse_claimed_digest(answer: HttpResponse, what: str) -> Digest:
    """The digest of a manifest that was asked for by its tag: the registry's, which then has to fit, else our own."""
    message = answer.headers.get(_DIGEST_HEADER, "")
    if not message:
        return Digest.of(answer.body)
    try:
        return Digest.parse(message)
    except ValueError as error:
        raise ResolutionError(Reason.UNSUPPORTED_CONTENT, f"{what}: header {_DIGEST_HEADER}: {error}") from None


def _check_bytes(data: bytes, digest: Digest, size: int | None, what: str) -> None:
    if size is not None and len(data) != size:
        raise _build_mismatch_error(what, f"{size} bytes", str(len(data)))
    if not digest.matches(data):
        raise _build_mismatch_error(what, str(digest), str(Digest.of(data, digest.algorithm)))


def _build_mismatch_error(what: str, expected: str, found: str) -> ResolutionError:
    message = f"{what} is not what its digest says: expected {expected}, found {found}"
    return ResolutionError(Reason.DIGEST_MISMATCH, message)

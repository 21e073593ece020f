"""A registry that lies: it serves what it is told to, over HTTP/1.1, and keeps what it was asked."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.resolution.servers.http_server import Handler, http_server

__all__ = ["FakeRegistry", "RegistryReply", "Request", "fake_registry"]


@dataclass(frozen=True, slots=True)
class Request:
    """A request that came in."""

    method: str
    path: str
    query: str
    host: str
    authorization: str


@dataclass(frozen=True, slots=True)
class RegistryReply:
    """What it answers.

    Args:
        status: The status.
        body: The body.
        headers: The headers.
        cut: How many bytes of the body really come before it hangs up; None for all.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None


@dataclass
class FakeRegistry:
    """A running registry; everything may be changed at any time.

    Args:
        port: Where it listens, on the loopback interface.
        manifests: Bytes and media type, by repository and tag or digest.
        blobs: By digest, of all repositories.
        replies: What it says instead, by the last part of the path or the path itself.
        realm: Where its tokens are; empty for no tokens.
        logins: Users and passwords; without any, everybody may read.
        seen: What it was asked.
    """

    port: int = 0
    manifests: dict[tuple[str, str], tuple[bytes, str]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    replies: dict[str, RegistryReply | Callable[[Request], RegistryReply]] = field(default_factory=dict)
    realm: str = ""
    logins: dict[str, str] = field(default_factory=dict)
    seen: list[Request] = field(default_factory=list)

    def name(self, host: str = "registry.test") -> str:
        return f"{host}:{self.port}"

    def push(self, repository: str, reference: str, manifest: bytes, blobs: Mapping[str, bytes]) -> str:
        """Put an image into it; answers the manifest's digest."""
        digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
        type_ = json.loads(manifest)["mediaType"]
        for name in (reference, digest):
            self.manifests[repository, name] = (manifest, type_)
        self.blobs |= blobs
        return digest

    def count(self, method: str, part: str) -> int:
        """How many requests of that method had this in their path."""
        return sum(request.method == method and part in request.path for request in self.seen)

    def reply(self, request: Request) -> RegistryReply:
        message = self.replies.get(request.path) or self.replies.get(request.path.rpartition("/")[2])
        if message is not None:
            return message if isinstance(message, RegistryReply) else message(request)
        if request.path == "/token":
            return self._token(request)
        if (refused := self._check_access(request)) is not None:
            return refused
        parts = request.path.removeprefix("/v2/").split("/")
        repository, kind, reference = "/".join(parts[:-2]), *parts[-2:]
        if kind == "manifests" and (repository, reference) in self.manifests:
            body, type_ = self.manifests[repository, reference]
            digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
            return RegistryReply(200, body, {"Content-Type": type_, "Docker-Content-Digest": digest})
        if kind == "blobs" and reference in self.blobs:
            return RegistryReply(200, self.blobs[reference], {"Content-Type": "application/octet-stream"})
        return RegistryReply(404, b'{"errors":[{"code":"NAME_UNKNOWN"}]}')

    def _check_access(self, request: Request) -> RegistryReply | None:
        if self.realm:
            if request.authorization == "Bearer a-token":
                return None
            scope = f"repository:{'/'.join(request.path.split('/')[2:-2])}:pull,push"
            message = f'Bearer realm="{self.realm}",service="registry.test",scope="{scope}"'
            return RegistryReply(401, b"", {"WWW-Authenticate": message})
        if not self.logins or self._is_known(request.authorization):
            return None
        return RegistryReply(401, b"", {"WWW-Authenticate": 'Basic realm="registry"'})

    def _token(self, request: Request) -> RegistryReply:
        if self.logins and not self._is_known(request.authorization):
            return RegistryReply(401)
        asked = parse_qs(request.query).get("scope", [""])[0]
        # Whatever the challenge offers, nobody here needs more than to read.
        return RegistryReply(200, json.dumps({"token": "a-token" if asked.endswith(":pull") else "wrong"}).encode())

    def _is_known(self, authorization: str) -> bool:
        known = {f"{user}:{password}" for user, password in self.logins.items()}
        encoded = authorization.removeprefix("Basic ")
        return authorization.startswith("Basic ") and base64.b64decode(encoded).decode() in known


@contextmanager
def fake_registry(tls: ssl.SSLContext | None = None) -> Iterator[FakeRegistry]:
    """One of one's own."""
    registry = FakeRegistry()

    class Answering(Handler):
        disable_nagle_algorithm = True
        wbufsize = -1  # header and body at once

        def do_GET(self) -> None:
            found = urlsplit(self.path)
            headers = self.headers
            request = Request(
                self.command, found.path, found.query, headers.get("Host", ""), headers.get("Authorization", "")
            )
            registry.seen.append(request)
            reply = registry.reply(request)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if "Content-Length" not in reply.headers:
                self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body[: reply.cut])
            self.wfile.flush()
            self.close_connection = reply.cut is not None

        do_HEAD = do_GET

    with http_server(Answering, tls) as registry.port:
        yield registry

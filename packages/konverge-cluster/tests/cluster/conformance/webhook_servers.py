"""A webhook server for tests: HTTPS on loopback, a handler for each path, and a record of requests."""

from __future__ import annotations

import base64
import ipaddress
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from konverge._internal.runtime.observability.connection_limiter import ConnectionLimiter, ConnectionStates
from konverge.clock import SystemClock
from konverge.kube import Object

Answer: TypeAlias = Object | web.Response
Handler: TypeAlias = Callable[[Object], Answer | Awaitable[Answer]]
"""Takes the ``request`` of a review, gives its ``response`` (without the UID), or an answer of another kind."""


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return a self-signed certificate for 127.0.0.1, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhooks")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2049, 1, 1, tzinfo=UTC))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    unlocked = serialization.NoEncryption()
    chain, private = folder / "tls.crt", folder / "tls.key"
    chain.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unlocked))
    return chain, private


@dataclass
class WebhookServer:
    """A server that answers reviews.

    Attributes:
        handlers: The handlers by path.
        asked: The path and the ``request`` of each review, in the order of arrival.
    """

    port: int
    authority: str
    handlers: dict[str, Handler] = field(default_factory=dict)
    asked: list[tuple[str, Object]] = field(default_factory=list)

    def client_config(self, path: str) -> Object:
        """Return the client configuration for a handler."""
        return {"url": f"https://127.0.0.1:{self.port}/{path}", "caBundle": self.authority}

    async def answer(self, request: web.Request) -> web.Response:
        path = request.match_info["path"]
        review = json.loads(await request.read())
        self.asked.append((path, review["request"]))
        response = self.handlers[path](review["request"])
        if not isinstance(response, dict | web.Response):
            response = await response
        if isinstance(response, web.Response):
            return response
        response_fields = {"uid": review["request"]["uid"], **response}
        return web.json_response(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response_fields}
        )


@asynccontextmanager
async def webhook_server(folder: Path) -> AsyncIterator[WebhookServer]:
    """Serve while the block runs."""
    chain, private = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, private)
    server = WebhookServer(0, base64.b64encode(chain.read_bytes()).decode())
    application = web.Application()
    application.router.add_post("/{path:.*}", server.answer)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    assert runner.server is not None
    # A site of aiohttp does not close connections in their handshake, and an API server can have one.
    log = logging.getLogger(__name__)
    connections = ConnectionLimiter(
        runner.server, ConnectionStates(), context, SystemClock(), log, max_connections=1000, silent_seconds=100
    )
    try:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            server.port = listening.getsockname()[1]
            async with connections.accept_connections(listening):
                yield server
    finally:
        await runner.cleanup()


def json_patch(*operations: Any) -> Object:
    """Return the response that admits the request and changes its object."""
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


ALLOWED: Object = {"allowed": True}

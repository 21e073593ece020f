"""HTTP and HTTPS servers on loopback."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

from aiohttp import web

from tests.client.certificates import CertificateAuthority, KeyPair

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Servers:
    """Servers that are stopped after the test."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runners: list[web.AppRunner] = []

    async def start(
        self,
        handler: Handler,
        *,
        tls: KeyPair | None = None,
        client_authority: CertificateAuthority | None = None,
    ) -> str:
        """Start a server with that handler for all requests; return its URL."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        self._runners.append(runner)
        context = self._context(tls, client_authority) if tls is not None else None
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        (_, port), *_ = runner.addresses
        return f"{'https' if tls else 'http'}://127.0.0.1:{port}"

    async def stop(self) -> None:
        for runner in self._runners:
            await runner.cleanup()

    def _context(self, tls: KeyPair, client_authority: CertificateAuthority | None) -> ssl.SSLContext:
        certificate, key = self._folder / "server.crt", self._folder / "server.key"
        certificate.write_bytes(tls.certificate)
        key.write_bytes(tls.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        if client_authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=client_authority.certificate.decode())
        return context

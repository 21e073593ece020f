"""An HTTP/1.1 server for a handler, in a thread, on a free port of the loopback interface."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Handler", "http_server"]


class Handler(BaseHTTPRequestHandler):
    """Keeps connections, and logs nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # clients hang up, or are killed, in the middle; that is what some tests are about


@contextmanager
def http_server(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Serve as long as the block lasts; gives the port."""
    listening = _Server(("127.0.0.1", 0), handler)
    if tls is not None:
        listening.socket = tls.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield listening.server_address[1]
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()

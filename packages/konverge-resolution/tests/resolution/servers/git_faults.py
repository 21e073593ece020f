"""A server that speaks just enough of git's protocol to misbehave in it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count

from tests.resolution.servers.http_server import Handler, http_server

__all__ = ["FaultServer", "fault_server"]

_ADVERTISED = b"001e# service=git-upload-pack\n0000"


@dataclass
class FaultServer:
    """A running server; the first part of the path says what it does.

    ``hang`` never answers, ``drip`` sends a byte each second, ``cut`` ends in the middle, ``endless`` has references
    without end, ``page`` is a page of HTML, ``echo`` answers with the credential that it was shown.

    Args:
        port: Where it listens, on the loopback interface.
        asked: Set as soon as there is a request.
        ending: Set when it ends, for those who hang.
    """

    port: int = 0
    asked: threading.Event = field(default_factory=threading.Event)
    ending: threading.Event = field(default_factory=threading.Event)

    def url(self, fault: str) -> str:
        return f"http://git.test:{self.port}/{fault}/boxes.git"


@contextmanager
def fault_server() -> Iterator[FaultServer]:
    """Serve faults."""
    server = FaultServer()

    class Faults(Handler):
        def do_GET(self) -> None:
            server.asked.set()
            getattr(self, self.path.split("/")[1])()

        do_POST = do_GET

        def begin(self, length: int | None, type_: str = "application/x-git-upload-pack-advertisement") -> None:
            self.send_response(200)
            self.send_header("Content-Type", type_)
            if length is None:
                self.send_header("Connection", "close")
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(length))
            self.end_headers()

        def hang(self) -> None:
            server.ending.wait()

        def drip(self) -> None:
            self.begin(1 << 20)
            for position in range(1 << 20):
                self.wfile.write(_ADVERTISED[position : position + 1] or b"0")
                if server.ending.wait(1):
                    return

        def cut(self) -> None:
            self.begin(1 << 20)
            self.wfile.write(_ADVERTISED)
            self.close_connection = True

        def endless(self) -> None:
            self.begin(None)
            self.wfile.write(_ADVERTISED)
            for number in count():
                line = b"%040x refs/heads/%0900d%b\n" % (number + 1, number, b"" if number else b"\0agent=a")
                self.wfile.write(b"%04x%b" % (len(line) + 4, line))

        def page(self) -> None:
            self.begin(13, "text/html")
            self.wfile.write(b"<html></html>")

        def echo(self) -> None:
            said = self.headers.get("Authorization", "").encode()
            line = b"ERR " + said
            self.begin(len(line) + 4 + len(_ADVERTISED))
            self.wfile.write(_ADVERTISED + b"%04x%b" % (len(line) + 4, line))

    with http_server(Faults) as server.port:
        try:
            yield server
        finally:
            server.ending.set()

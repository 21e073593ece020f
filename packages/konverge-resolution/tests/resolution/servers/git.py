"""Git over HTTP: ``git http-backend`` behind a small HTTP/1.1 server with basic auth, TLS and counters."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from io import BufferedReader
from pathlib import Path

from tests.resolution.servers.http_server import Handler, http_server

__all__ = ["GitServer", "RecordedRequest", "git", "git_server"]

_PIECE = 64 * 1024


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """A request that came in."""

    method: str
    path: str
    authorization: str


@dataclass
class GitServer:
    """A running server.

    Args:
        root: The folder of its repositories.
        port: Where it listens, on the loopback interface.
        scheme: ``http`` or ``https``.
        credentials: User and password, by the first part of the path that asks for them.
        redirects: Where to, by the first part of the path.
        moves: With which status and to which server requests are redirected whose path ends so.
        statuses: What to answer with at once, by the first part of the path.
        speaks_only_protocol_0: Whether it ignores that clients can do better.
        seen: Every request.
        bytes_sent: In all bodies.
    """

    root: Path
    port: int = 0
    scheme: str = "http"
    credentials: dict[str, tuple[str, str]] = field(default_factory=dict)
    redirects: dict[str, str] = field(default_factory=dict)
    moves: dict[str, tuple[int, str]] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    speaks_only_protocol_0: bool = False
    seen: list[RecordedRequest] = field(default_factory=list)
    bytes_sent: int = 0

    def url(self, path: str, host: str = "git.test") -> str:
        return f"{self.scheme}://{host}:{self.port}/{path}"

    def reset_counters(self) -> None:
        """Set the counters to zero."""
        self.seen.clear()
        self.bytes_sent = 0


def git(*arguments: str, folder: Path, **environment: str) -> str:
    """Run git without the configuration of the machine."""
    names = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z"}
    names |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in names.items()}
    clean = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-c", "init.defaultBranch=main", *arguments],
        cwd=folder, env={**clean, **names, **environment}, check=True, capture_output=True,
    )  # fmt: skip
    return done.stdout.decode().strip()


@contextmanager
def git_server(root: Path, tls: ssl.SSLContext | None = None) -> Iterator[GitServer]:
    """Serve the repositories of a folder."""
    server = GitServer(root, scheme="http" if tls is None else "https")

    class Answering(Handler):
        def do_GET(self) -> None:
            _answer(self, server)

        do_POST = do_GET

    with http_server(Answering, tls) as server.port:
        yield server


def _answer(handler: BaseHTTPRequestHandler, server: GitServer) -> None:
    body = _body(handler)
    target = handler.path
    if target.startswith("http://"):  # as proxies pass it on
        target = "/" + target.split("/", 3)[3]
    path, _, query = target.partition("?")
    authorization = handler.headers.get("Authorization", "")
    server.seen.append(RecordedRequest(handler.command, handler.path, authorization))
    first = path.split("/")[1]
    moved = next((move for end, move in server.moves.items() if path.endswith(end)), None)
    if moved is not None:
        _short(handler, moved[0], {"Location": moved[1] + handler.path})
    elif first in server.redirects:
        _short(handler, 302, {"Location": server.redirects[first] + handler.path})
    elif first in server.statuses:
        _short(handler, server.statuses[first])
    elif first in server.credentials and authorization != _basic(*server.credentials[first]):
        _short(handler, 401, {"WWW-Authenticate": 'Basic realm="git"'})
    else:
        _backend(handler, server, path, query, body)


def _basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    if handler.headers.get("Transfer-Encoding", "").lower() != "chunked":
        return handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
    pieces = []
    while size := int(handler.rfile.readline().split(b";")[0], 16):
        pieces.append(handler.rfile.read(size))
        handler.rfile.readline()
    handler.rfile.readline()
    return b"".join(pieces)


def _short(handler: BaseHTTPRequestHandler, status: int, headers: Mapping[str, str] | None = None) -> None:
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", "0")
    handler.end_headers()


def _backend(handler: BaseHTTPRequestHandler, server: GitServer, path: str, query: str, body: bytes) -> None:
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(server.root), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_PROJECT_ROOT": str(server.root), "GIT_HTTP_EXPORT_ALL": "1", "REMOTE_ADDR": "127.0.0.1",
        "REQUEST_METHOD": handler.command, "PATH_INFO": path, "QUERY_STRING": query, "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
        "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
    }  # fmt: skip
    if not server.speaks_only_protocol_0:
        environment["GIT_PROTOCOL"] = handler.headers.get("Git-Protocol", "")
    backend = subprocess.Popen(
        ["git", "-c", "safe.directory=*", "http-backend"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert backend.stdin is not None
    assert isinstance(backend.stdout, BufferedReader)
    try:
        backend.stdin.write(body)
        backend.stdin.close()
        status, headers = 200, []
        while line := backend.stdout.readline().strip():
            name, _, value = line.decode().partition(": ")
            if name == "Status":
                status = int(value.split()[0])
            else:
                headers.append((name, value))
        handler.send_response(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while piece := backend.stdout.read1(_PIECE):
            server.bytes_sent += len(piece)
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        handler.wfile.write(b"0\r\n\r\n")
    finally:
        backend.stdout.close()
        backend.kill()
        backend.wait()

"""An API server that only repeats prepared bytes, so that a measurement covers its client alone.

`python -m bench.replay_server <pods> <rounds> <settings>` serves a number of Pods, and a number of rounds of changes to
each of them, on a free port of the loopback interface, which it prints. It responds like kube-apiserver, with one chunk
for each watch event:

* a list, complete or in pages;
* a watch with initial events: each Pod, the bookmark that ends them, and then the changes;
* a watch from a version on: the changes.

Under the path ``/paged`` it has no watches with initial events, like servers before 1.32. With
``as=PartialObjectMetadata`` in the ``Accept`` header it sends only metadata. It serves each connection in a thread, and
ends when its standard input ends.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import msgspec

from bench.rich_pods import rich_pod

__all__ = ["replay_server"]

_VERSION = "1000000"
_BLOCK = 256 * 1024
_DISCOVERY = msgspec.json.encode(
    {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "items": [
            {
                "metadata": {},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "pods",
                                "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                                "scope": "Namespaced",
                                "singularResource": "pod",
                                "verbs": ["get", "list", "watch"],
                            }
                        ],
                    }
                ],
            }
        ],
    }
)
_NO_GROUPS = msgspec.json.encode({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": []})

_REFUSAL = msgspec.json.encode(
    {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
    }
)


class _Content:
    """The served content in one form: complete objects or metadata."""

    def __init__(self, pods: list[bytes], rounds: int) -> None:
        self._items = pods
        self.initial = [_chunk(_event("ADDED", pod)) for pod in pods]
        numbered = (
            pod.replace(b'"resourceVersion":"%07d"' % number, b'"resourceVersion":"%d"' % (2_000_000 + turn))
            for turn, (number, pod) in enumerate(
                (number, pod) for _ in range(rounds) for number, pod in enumerate(pods)
            )
        )
        self.changes = [_chunk(_event("MODIFIED", pod)) for pod in numbered]
        metadata = {"resourceVersion": _VERSION, "annotations": {"k8s.io/initial-events-end": "true"}}
        last = msgspec.json.encode({"kind": "Pod", "apiVersion": "v1", "metadata": metadata})
        self.end = _chunk(_event("BOOKMARK", last))

    def page(self, start: int, limit: int) -> bytes:
        """Return a list of at most `limit` items; 0 for all."""
        stop = start + limit if limit else len(self._items)
        metadata = {"resourceVersion": _VERSION}
        if stop < len(self._items):
            metadata["continue"] = str(stop)
        head = msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": metadata})
        return head[:-1] + b',"items":[' + b",".join(self._items[start:stop]) + b"]}"


def _event(name: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (name.encode(), obj)


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _without_body(pod: bytes) -> bytes:
    metadata = msgspec.json.decode(pod)["metadata"]
    return msgspec.json.encode({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})


def _serve(connection: socket.socket, whole: _Content, partial: _Content) -> None:
    with connection, connection.makefile("rb") as reader:
        while True:
            request = reader.readline()
            if not request:
                return
            headers = b""
            while (line := reader.readline()) not in (b"\r\n", b""):
                headers += line.lower()
            target = urlsplit(request.split(b" ")[1].decode())
            path = target.path.removeprefix("/paged")
            is_paged = path != target.path
            query = {name: values[0] for name, values in parse_qs(target.query).items()}
            content = partial if b"as=partialobjectmetadata;" in headers else whole
            if path == "/api":
                _answer(connection, _DISCOVERY, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            elif path == "/apis":
                _answer(connection, _NO_GROUPS, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
            elif is_paged and "sendInitialEvents" in query:
                _answer(connection, _REFUSAL, "application/json", status="422 Unprocessable Entity")
            elif query.get("watch", "false").lower() in ("true", "1"):
                _stream(connection, content, initial="sendInitialEvents" in query)
            else:
                start, limit = int(query.get("continue", 0)), int(query.get("limit", 0))
                _answer(connection, content.page(start, limit), "application/json")


def _answer(connection: socket.socket, body: bytes, content_type: str, *, status: str = "200 OK") -> None:
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)


def _stream(connection: socket.socket, content: _Content, *, initial: bool) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n")
    if initial:
        _send(connection, [*content.initial, content.end])
    _send(connection, content.changes)


def _send(connection: socket.socket, chunks: list[bytes]) -> None:
    waiting = bytearray()
    for chunk in chunks:
        waiting += chunk
        if len(waiting) >= _BLOCK:
            connection.sendall(waiting)
            waiting.clear()
    connection.sendall(waiting)


@contextmanager
def replay_server(pods: int, *, rounds: int = 0, settings: int = 4) -> Iterator[str]:
    """Serve in a separate process while the block runs; yield the address."""
    command = [sys.executable, "-m", "bench.replay_server", str(pods), str(rounds), str(settings)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()
            server.wait()


def _main(pods: int, rounds: int, settings: int) -> None:
    rendered = [rich_pod(number, f"{number:07d}", settings=settings) for number in range(pods)]
    whole, partial = _Content(rendered, rounds), _Content(list(map(_without_body, rendered)), rounds)
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=_accept, args=(listener, whole, partial), daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


def _accept(listener: socket.socket, whole: _Content, partial: _Content) -> None:
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_serve_quietly, args=(connection, whole, partial), daemon=True).start()


def _serve_quietly(connection: socket.socket, whole: _Content, partial: _Content) -> None:
    try:
        _serve(connection, whole, partial)
    except (BrokenPipeError, ConnectionResetError):
        return  # the client has closed the connection


if __name__ == "__main__":
    _main(*map(int, sys.argv[1:]))

"""A real registry: Debian's ``docker-registry``, with its storage in a temporary folder and counters of its own."""

from __future__ import annotations

import hashlib
import http.client
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.resolution.servers.server_process import require_program, server_process

__all__ = ["PASSWORD", "USER", "DockerRegistry", "docker_registry"]

USER, PASSWORD = "reader", "of-this-test"
_HASHED = "$2y$04$K5z2/pbJd96CxNaRohZb9OnZxOmoYio2QD3lHd3L5rXydL/wH8QF."  # of PASSWORD, by bcrypt


@dataclass(frozen=True, slots=True)
class DockerRegistry:
    """A running registry.

    Args:
        port: Where it listens, on the loopback interface.
        debug_port: Where its counters are.
        storage: The folder of its blobs.
        authorization: What it is pushed to with; empty for nothing.
    """

    port: int
    debug_port: int
    storage: Path
    authorization: str = ""

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.port}"

    def count_requests(self, handler: str, method: str) -> int:
        """How many requests it has answered, by its own counter."""
        connection = http.client.HTTPConnection("127.0.0.1", self.debug_port, timeout=10)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        pattern = rf'^registry_http_requests_total{{[^}}]*handler="{handler}",method="{method}"}} (\d+)'
        return sum(int(found) for found in re.findall(pattern, text, re.MULTILINE))

    def push(self, repository: str, reference: str, manifest: bytes, blobs: Mapping[str, bytes]) -> None:
        """Put an image into it."""
        for digest, data in blobs.items():
            _, headers = self._send("POST", f"/v2/{repository}/blobs/uploads/", expected=202)
            found = urlsplit(headers["location"])
            path = f"{found.path}?{found.query}&digest={digest}"
            self._send("PUT", path, data, {"Content-Type": "application/octet-stream"}, expected=201)
        type_ = json.loads(manifest)["mediaType"]
        self._send("PUT", f"/v2/{repository}/manifests/{reference}", manifest, {"Content-Type": type_}, expected=201)

    def alter(self, digest: str, data: bytes) -> None:
        """Put other bytes in the place of a blob's, behind the registry's back."""
        hex_ = digest.removeprefix("sha256:")
        path = self.storage / "docker/registry/v2/blobs/sha256" / hex_[:2] / hex_ / "data"
        assert hashlib.sha256(path.read_bytes()).hexdigest() == hex_
        path.write_bytes(data)

    def _send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None, *, expected: int
    ) -> tuple[bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        message = {"Content-Length": str(len(body)), **(headers or {})}
        if self.authorization:
            message["Authorization"] = self.authorization
        connection.request(method, path, body, message)
        answer = connection.getresponse()
        found = answer.read()
        connection.close()
        assert answer.status == expected, (method, path, answer.status, found)
        return found, {name.lower(): value for name, value in answer.getheaders()}


@contextmanager
def docker_registry(*, authorization: str = "") -> Iterator[DockerRegistry]:
    """One of one's own, ended afterwards; with `authorization` it answers only who knows `USER` and `PASSWORD`."""
    program = require_program("docker-registry")
    with tempfile.TemporaryDirectory(prefix="konverge-registry-") as name:
        folder, log = Path(name), Path(name) / "log"

        def start(ports: Sequence[int]) -> subprocess.Popen[bytes]:
            port, debug_port = ports
            (folder / "config.yml").write_text(json.dumps(_config(folder, port, debug_port, bool(authorization))))
            with log.open("wb") as output:
                return subprocess.Popen([program, "serve", folder / "config.yml"], stdout=output, stderr=output)

        with server_process(start, 2, log) as (port, debug_port):
            yield DockerRegistry(port, debug_port, folder / "data", authorization)


def _config(folder: Path, port: int, debug_port: int, has_users: bool) -> dict[str, Any]:
    """Its own: that of the package listens on all interfaces."""
    config: dict[str, Any] = {
        "version": "0.1",
        "log": {"level": "error", "accesslog": {"disabled": True}},
        "storage": {
            "filesystem": {"rootdirectory": str(folder / "data")},
            "maintenance": {"uploadpurging": {"enabled": False}},
        },
        "http": {
            "addr": f"127.0.0.1:{port}",
            "debug": {"addr": f"127.0.0.1:{debug_port}", "prometheus": {"enabled": True, "path": "/metrics"}},
        },
    }
    if has_users:
        (folder / "users").write_text(f"{USER}:{_HASHED}\n")
        config["auth"] = {"htpasswd": {"realm": "test", "path": str(folder / "users")}}
    return config

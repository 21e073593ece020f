"""A real proxy: Debian's ``tinyproxy``, which wants to see a user and a password."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.resolution.servers.server_process import require_program, server_process

__all__ = ["TinyProxy", "tinyproxy"]

_USER, _PASSWORD = "reader", "of-this-test"


@dataclass(frozen=True, slots=True)
class TinyProxy:
    """A running proxy.

    Args:
        port: Where it listens, on the loopback interface.
        log: What it has done.
    """

    port: int
    log: Path

    @property
    def url(self) -> str:
        """With the user that it lets through."""
        return f"http://{_USER}:{_PASSWORD}@127.0.0.1:{self.port}"

    def list_requests(self) -> list[str]:
        """The first line of each request that it let through or refused."""
        lines = self.log.read_text().splitlines()
        return [line.partition("): ")[2] for line in lines if "Request (file descriptor" in line]


@contextmanager
def tinyproxy() -> Iterator[TinyProxy]:
    """One of one's own, ended afterwards."""
    program = require_program("tinyproxy")
    with tempfile.TemporaryDirectory(prefix="konverge-proxy-") as name:
        log, config = Path(name) / "log", Path(name) / "config"

        def start(ports: Sequence[int]) -> subprocess.Popen[bytes]:
            config.write_text(_config(ports[0], log))
            return subprocess.Popen([program, "-d", "-c", config], stdout=subprocess.DEVNULL)

        with server_process(start, 1, log) as (port,):
            yield TinyProxy(port, log)


def _config(port: int, log: Path) -> str:
    return f"""\
Port {port}
Listen 127.0.0.1
Allow 127.0.0.1
Timeout 30
LogFile "{log}"
LogLevel Connect
BasicAuth {_USER} {_PASSWORD}
"""

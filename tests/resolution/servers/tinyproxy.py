"""A real proxy: Debian's ``tinyproxy``, which wants to see a user and a password."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.box.servers import free_port, missing
from tests.resolution.servers.docker_registry import is_ready

__all__ = ["TinyProxy", "tinyproxy"]

_USER, _PASSWORD = "reader", "of-this-test"
_TRIES = 3


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

    def asked(self) -> list[str]:
        """The first line of each request that it let through or refused."""
        lines = self.log.read_text().splitlines()
        return [line.partition("): ")[2] for line in lines if "Request (file descriptor" in line]


@contextmanager
def tinyproxy() -> Iterator[TinyProxy]:
    """One of one's own, ended afterwards."""
    program = shutil.which("tinyproxy")
    if program is None:
        missing("tinyproxy")
        raise AssertionError("unreachable: the case was left out")
    with tempfile.TemporaryDirectory(prefix="konverge-proxy-") as name:
        log = Path(name) / "log"
        for _ in range(_TRIES):  # somebody else may take the free port first
            port = free_port()
            (Path(name) / "config").write_text(_config(port, log))
            process = subprocess.Popen([program, "-d", "-c", Path(name) / "config"], stdout=subprocess.DEVNULL)
            if is_ready(process, (port,)):
                try:
                    yield TinyProxy(port, log)
                finally:
                    process.terminate()
                    process.wait(20)
                return
            process.kill()
            process.wait()
        raise AssertionError(f"the proxy has not started:\n{log.read_text()[-3000:]}")


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

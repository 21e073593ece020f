"""OpenSSH's server on a free port of the loopback interface, with one user's key."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.database_servers import free_port, skip_or_fail

__all__ = ["SshServer", "ssh_server"]

_START_SECONDS = 20


@dataclass(frozen=True, slots=True)
class SshServer:
    """A running server.

    Args:
        port: Where it listens.
        user: Who may log in.
        private_key: With what.
        host_key: The public key of the host.
    """

    port: int
    user: str
    private_key: bytes
    host_key: str

    def format_known_hosts(self, host: str) -> bytes:
        return f"[{host}]:{self.port} {self.host_key}\n".encode()


@contextmanager
def ssh_server() -> Iterator[SshServer]:
    """Run one, or leave the case out."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None:
        skip_or_fail("sshd")
        raise AssertionError("unreachable: the case was left out")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # it refuses to run as root without
    with tempfile.TemporaryDirectory(prefix="konverge-sshd-") as name:
        folder = Path(name)
        for key in ("host", "user"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / key)]
            subprocess.run(made, check=True)
        port = free_port()
        lines = [
            f"Port {port}", "ListenAddress 127.0.0.1", f"HostKey {folder / 'host'}", "PidFile none", "UsePAM no",
            f"AuthorizedKeysFile {folder / 'user.pub'}", "StrictModes no", "PasswordAuthentication no",
            "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password", "AcceptEnv GIT_PROTOCOL",
            "LogLevel QUIET",
        ]  # fmt: skip
        (folder / "config").write_text("\n".join(lines) + "\n")
        process = subprocess.Popen([program, "-D", "-e", "-f", str(folder / "config")])
        try:
            _wait(process, port)
            host_key = " ".join((folder / "host.pub").read_text().split()[:2])
            yield SshServer(port, getpass.getuser(), (folder / "user").read_bytes(), host_key)
        finally:
            process.terminate()
            process.wait()


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    """Until it listens; connecting is what tells."""
    for _ in range(_START_SECONDS * 100):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            if connection.recv(4) == b"SSH-":
                return
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
            break
    raise AssertionError("sshd has not started")

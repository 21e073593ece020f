"""Servers that tests talk to, each in a temporary folder of its own, on a free port of the loopback interface.

Import the fixture that is needed in a ``conftest.py``. Where a server's programs are absent, its cases are left out
with one line; with ``KONVERGE_REQUIRE_REAL=1`` that is an error (``make servers`` installs them).
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = [
    "PostgresServer",
    "RedisServer",
    "free_port",
    "postgres_server",
    "redis_server",
    "running_postgres",
    "running_redis",
    "skip_or_fail",
]

_START_SECONDS = 60
_TRIES = 3


@dataclass(frozen=True, slots=True)
class PostgresServer:
    """A running server; the user may do everything."""

    host: str
    port: int
    user: str
    password: str

    def conninfo(self, dbname: str = "postgres") -> str:
        return (
            f"host={self.host} port={self.port} user={self.user} password={self.password} dbname={dbname} "
            "connect_timeout=5"
        )


@dataclass(frozen=True, slots=True)
class RedisServer:
    """A running server without TLS."""

    host: str
    port: int
    password: str


def skip_or_fail(program: str) -> None:
    """Leave the case out, or fail where everything has to be there."""
    said = f"{program} is not installed (make servers installs it)"
    if os.environ.get("KONVERGE_REQUIRE_REAL"):
        pytest.fail(said)
    pytest.skip(said)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all cases of this process: each makes its databases and roles under names of its own."""
    with running_postgres() as server:
        yield server


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    programs = _postgres_programs()
    if programs is None:
        skip_or_fail("PostgreSQL")
        raise AssertionError("unreachable: the case was left out")
    # Not below pytest's folder, which other users cannot enter: PostgreSQL refuses to run as root.
    folder = Path(tempfile.mkdtemp(prefix="konverge-postgres-"))
    user = _user()
    try:
        if user is not None:
            shutil.chown(folder, user)
        password, data = "admin-of-this-test", folder / "data"
        (folder / "password").write_text(password)
        (folder / "password").chmod(0o644)
        _run([programs / "initdb", "-D", data, "-U", "admin", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}",
              "--encoding=UTF8", "--no-locale", "--no-sync"], user, folder)  # fmt: skip
        process, port = _start_postgres(programs, data, folder, user)
        try:
            yield PostgresServer("127.0.0.1", port, "admin", password)
        finally:
            process.terminate()  # "smart": waits for clients, so it is followed by an interrupt, which does not
            process.send_signal(2)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for all cases of this process: each has keys of its own."""
    with running_redis() as server:
        yield server


@contextmanager
def running_redis() -> Iterator[RedisServer]:
    program = shutil.which("redis-server")
    if program is None:
        skip_or_fail("Redis")
        raise AssertionError("unreachable: the case was left out")
    password = "of-this-test"
    with tempfile.TemporaryDirectory(prefix="konverge-redis-") as folder:
        for _ in range(_TRIES):  # somebody else may take the free port first
            port = free_port()
            command = [program, "--bind", "127.0.0.1", "--port", str(port), "--requirepass", password]
            command += ["--save", "", "--appendonly", "no", "--dir", folder]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert process.stdout is not None
            # It says so as soon as it listens; a port that is taken ends it.
            is_ready = any("Ready to accept connections" in line for line in process.stdout)
            if is_ready:
                try:
                    yield RedisServer("127.0.0.1", port, password)
                finally:
                    process.terminate()
                    process.communicate(timeout=20)
                return
            process.wait()
            process.stdout.close()
    raise AssertionError("Redis has not started")


def _postgres_programs() -> Path | None:
    """The folder with ``initdb`` and ``postgres``: Debian keeps it out of the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    initdb = shutil.which("initdb")
    return Path(initdb).resolve().parent if initdb else None


def _user() -> str | None:
    return "nobody" if os.geteuid() == 0 else None


def _start_postgres(programs: Path, data: Path, folder: Path, user: str | None) -> tuple[subprocess.Popen[bytes], int]:
    log = folder / "log"
    for _ in range(_TRIES):  # somebody else may take the free port first
        port = free_port()
        options = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off", "autovacuum": "off",
                   "shared_buffers": "16MB", "max_connections": "40", "full_page_writes": "off"}  # fmt: skip
        command: list[str | Path] = [programs / "postgres", "-D", data, "-p", str(port)]
        command += [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
        with log.open("wb") as output:
            process = subprocess.Popen(command, user=user, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
        ready: list[str | Path] = [programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port), "-t", "1"]
        for _ in range(_START_SECONDS * 20):
            if process.poll() is not None:
                break
            if subprocess.run(ready, check=False).returncode == 0:
                return process, port
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        else:
            process.kill()
            process.wait()
    raise AssertionError(f"PostgreSQL has not started:\n{log.read_text()[-3000:]}")


def _run(command: list[str | Path], user: str | None, folder: Path) -> None:
    done = subprocess.run(command, user=user, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise AssertionError(f"{command[0]} failed:\n{done.stderr[-3000:]}")

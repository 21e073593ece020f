"""`RealCluster`: starts the control plane, waits until it works, and stops it."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from konverge._internal.cancellation import await_shielded
from konverge.clock import Clock, Entropy, SystemClock, SystemEntropy
from konverge.errors import KonvergeError
from konverge_cluster._internal.controlplane import commands
from konverge_cluster._internal.controlplane.binaries import find_binaries
from konverge_cluster._internal.controlplane.commands import ADMIN, NODE, ControlPlaneLayout

__all__ = ["ControlPlaneError", "RealCluster"]

_API_SERVER, _ETCD = "kube-apiserver", "etcd"
_SUPERVISOR = Path(__file__).with_name("supervisor.py")
_MEMORY_BACKED = Path("/dev/shm")
_POLL_SECONDS = 0.05
_PORT_ATTEMPTS = 3
_PORTS = (20_000, 30_000)
_MAX_PORT_TRIES = 100
_LOG_TAIL_LINES = 15
_STOP_TIMEOUT_SECONDS = 15


class ControlPlaneError(KonvergeError):
    """The control plane did not start; the message ends with the last output of the program that failed."""


class RealCluster:
    """A separate control plane on loopback, with one node that runs pods without containers.

    Use it as an async context manager, or as a plain one without an event loop (a session fixture). All processes end
    when the context exits, when its start is cancelled, or when this process ends for any reason.

    Args:
        binaries: The folder of the programs; None to search for them (`find_binaries`).
        folder: The folder for logs, the audit log and the kubeconfig, which remain there. None for a temporary folder;
            only its logs remain, and only if the start fails.
        clock: The clock for waits.
        entropy: The source of randomness for tokens and ports.
        start_timeout_seconds: The time limit of the start in seconds; a start usually takes 4 s.
        api_server_options: Further options of kube-apiserver, for example ``--feature-gates=...``.

    Raises:
        BinariesNotFoundError: On entry, if a program is absent.
        ControlPlaneError: On entry, if a program ended or the control plane was not ready in time.
    """

    def __init__(
        self,
        *,
        binaries: Path | None = None,
        folder: Path | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
        start_timeout_seconds: float = 90,
        api_server_options: Sequence[str] = (),
    ) -> None:
        self._binaries = binaries
        self._folder = folder
        self._clock = clock or SystemClock()
        self._entropy = entropy or SystemEntropy()
        self._start_timeout_seconds = start_timeout_seconds
        self._api_server_options = tuple(api_server_options)
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._layout: ControlPlaneLayout | None = None
        self._awaited = ""

    @property
    def url(self) -> str:
        """The URL of the API server."""
        return self._get_layout().url

    @property
    def kubeconfig(self) -> Path:
        """The path of an administrator's kubeconfig."""
        return self._get_layout().get_kubeconfig(ADMIN)

    @property
    def audit_log(self) -> Path:
        """The audit log of the server: one JSON line for each request, written before the response ends."""
        return self._get_layout().audit_log

    async def kill_api_server(self) -> None:
        """Kill kube-apiserver as kill -9 does; everything else continues, and its stored data remains."""
        await self._kill(_API_SERVER)

    async def save_storage(self, folder: Path) -> None:
        """Copy the data of etcd; kube-apiserver and etcd are stopped meanwhile.

        Args:
            folder: The folder for the copy; it must not exist yet.
        """
        layout = self._get_layout()
        await self._kill(_API_SERVER, _ETCD)
        await asyncio.to_thread(shutil.copytree, layout.storage, folder)
        await self._start_programs(_ETCD, _API_SERVER)

    async def restore_storage(self, folder: Path) -> None:
        """Replace the data of etcd with a saved copy, as after a restore from a snapshot.

        Args:
            folder: The folder that `save_storage` wrote.
        """
        layout = self._get_layout()
        await self._kill(_API_SERVER, _ETCD)
        await asyncio.to_thread(shutil.rmtree, layout.storage)
        await asyncio.to_thread(shutil.copytree, folder, layout.storage)
        await self._start_programs(_ETCD, _API_SERVER)

    async def _kill(self, *programs: str) -> None:
        layout = self._get_layout()
        for program in programs:
            self._send_programs({"kill": program})
            # Shielded: a remaining note would be taken for the end of the next process of that name.
            await await_shielded(self._wait_for_exit(layout, program))

    async def _wait_for_exit(self, layout: ControlPlaneLayout, program: str) -> None:
        """Wait until the supervisor has recorded the exit of a program, and remove the record."""
        note = layout.memory / f"{program}.exit"
        async with asyncio.timeout(self._start_timeout_seconds):
            while not note.exists():
                await self._clock.sleep(_POLL_SECONDS)
        note.unlink()

    async def start_api_server(self) -> None:
        """Restart kube-apiserver on the same port and wait until it is ready.

        Raises:
            ControlPlaneError: The server was not ready in time.
        """
        await self._start_programs(_API_SERVER)

    async def _start_programs(self, *names: str) -> None:
        layout = self._get_layout()
        programs = self._build_first_programs(layout)
        self._launch(layout, {name: programs[name] for name in names})
        token = json.loads(self.kubeconfig.read_text())["users"][0]["user"]["token"]
        try:
            async with asyncio.timeout(self._start_timeout_seconds), _open_session(layout, token) as session:
                await self._wait_for(layout, _API_SERVER, lambda: _is_served(session, "/readyz"))
        except TimeoutError:
            raise ControlPlaneError(
                f"{_API_SERVER} was not ready within {self._start_timeout_seconds:g} s:\n"
                + _read_log_tail(layout, _API_SERVER)
            ) from None

    async def __aenter__(self) -> Self:
        await self._start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop_shielded()

    def __enter__(self) -> Self:
        asyncio.run(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _get_layout(self) -> ControlPlaneLayout:
        if self._layout is None:
            raise ControlPlaneError("the control plane is not running: enter its context first")
        return self._layout

    async def _start(self) -> None:
        binaries = self._binaries or find_binaries()
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            layout = self._prepare(binaries)
            try:
                self._supervise(layout)
                await self._run(layout)
            except ControlPlaneError as error:
                # Another process can take a free port before the server does.
                if attempt < _PORT_ATTEMPTS and "address already in use" in _read_log_tail(layout, "kube-apiserver"):
                    await self._stop_shielded()
                    continue
                logs = self._save_logs(layout)
                await self._stop_shielded()
                raise ControlPlaneError(f"the control plane did not start: {error}\nAll logs: {logs}") from error
            except BaseException:  # also a cancellation or Ctrl-C: no process may remain
                await self._stop_shielded()
                raise
            self._layout = layout
            return

    def _prepare(self, binaries: Path) -> ControlPlaneLayout:
        """Choose a port and create the folders."""
        port = _find_free_port(self._entropy)
        memory_backed = _MEMORY_BACKED if _MEMORY_BACKED.is_dir() else None
        memory = Path(tempfile.mkdtemp(prefix="konverge-", dir=memory_backed))
        folder = self._folder or Path(tempfile.mkdtemp(prefix="konverge-"))
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return ControlPlaneLayout(binaries, folder, memory, port)

    def _supervise(self, layout: ControlPlaneLayout) -> None:
        """Start the supervisor, which removes the folders when it ends."""
        temporary = [layout.memory] if self._folder else [layout.memory, layout.folder]
        self._supervisor = subprocess.Popen(
            [sys.executable, "-I", str(_SUPERVISOR), *map(str, temporary)],
            stdin=subprocess.PIPE,
            process_group=0,  # Ctrl-C must reach only the parent process, which then stops this one
        )

    async def _run(self, layout: ControlPlaneLayout) -> None:
        try:
            async with asyncio.timeout(self._start_timeout_seconds):
                await self._run_programs(layout)
        except TimeoutError:
            raise ControlPlaneError(
                f"{self._awaited} was not ready after {self._start_timeout_seconds:g} s; its last output:\n"
                + _read_log_tail(layout, self._awaited)
            ) from None

    async def _run_programs(self, layout: ControlPlaneLayout) -> None:
        tokens = {user: self._entropy.uid() for user in commands.CLIENTS}
        _write_private(layout.tokens, commands.format_token_file(tokens))
        self._launch(layout, self._build_first_programs(layout))
        await self._wait_for(layout, "kube-apiserver", lambda: _has_certificate(layout))
        certificate = layout.certificate.read_text()
        for user, token in tokens.items():
            _write_private(layout.get_kubeconfig(user), commands.build_kubeconfig(layout.url, certificate, token))

        async with _open_session(layout, tokens[ADMIN]) as session:
            await self._wait_for(layout, "kube-apiserver", lambda: _is_served(session, "/readyz"))
            self._launch(layout, commands.build_later_programs(layout))
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
            async with session.post("/api/v1/nodes", json=node) as answer:
                answer.raise_for_status()
            await self._wait_for(layout, "kwok", lambda: _is_node_ready(session))
            # The controllers create it: its existence shows that they run.
            account = "/api/v1/namespaces/default/serviceaccounts/default"
            await self._wait_for(layout, "kube-controller-manager", lambda: _is_served(session, account))

    def _build_first_programs(self, layout: ControlPlaneLayout) -> dict[str, list[str]]:
        programs = commands.build_first_programs(layout)
        programs[_API_SERVER] += self._api_server_options
        return programs

    def _launch(self, layout: ControlPlaneLayout, programs: dict[str, list[str]]) -> None:
        for name, command in programs.items():
            self._send_programs({"name": name, "command": command, "log": str(layout.get_log(name))})

    def _send_programs(self, instruction: dict[str, Any]) -> None:
        assert self._supervisor is not None
        assert self._supervisor.stdin is not None
        self._supervisor.stdin.write(json.dumps(instruction).encode() + b"\n")
        self._supervisor.stdin.flush()

    async def _wait_for(self, layout: ControlPlaneLayout, program: str, check: Callable[[], Awaitable[bool]]) -> None:
        """Wait for a program while all programs run."""
        self._awaited = program
        while not await check():
            for ended in layout.memory.glob("*.exit"):
                raise ControlPlaneError(
                    f"{ended.stem} ended with exit code {ended.read_text()}; its last output:\n"
                    + _read_log_tail(layout, ended.stem)
                )
            await self._clock.sleep(_POLL_SECONDS)

    def _save_logs(self, layout: ControlPlaneLayout) -> Path:
        if self._folder:
            return self._folder
        folder = Path(tempfile.mkdtemp(prefix="konverge-logs-"))
        for log in layout.folder.glob("*.log"):
            shutil.copy(log, folder)
        return folder

    async def _stop_shielded(self) -> None:
        """Stop everything even if cancelled meanwhile; the thread would continue without its caller otherwise."""
        await await_shielded(asyncio.to_thread(self._stop))

    def _stop(self) -> None:
        """Close the supervisor's input and wait until it has ended all processes. A second call does nothing."""
        self._layout = None
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is None:
            return
        assert supervisor.stdin is not None
        supervisor.stdin.close()
        try:
            supervisor.wait(_STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            supervisor.kill()  # the kernel kills the programs with it
            supervisor.wait()


def _find_free_port(entropy: Entropy) -> int:
    """Return a free loopback port outside the ranges that systems use for outgoing connections.

    An outgoing connection could take a port from those ranges before the API server starts again. A connection to that
    same port is worse: while no server listens there, TCP connects it to itself.
    """
    for _ in range(_MAX_PORT_TRIES):
        port = int(entropy.uniform(*_PORTS))
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise ControlPlaneError(
        f"expected a free port from {_PORTS[0]} to {_PORTS[1]}, found none in {_MAX_PORT_TRIES} tries"
    )


def _write_private(path: Path, content: str) -> None:
    path.touch(mode=0o600)
    path.write_text(content)


def _read_log_tail(layout: ControlPlaneLayout, program: str) -> str:
    try:
        printed = layout.get_log(program).read_text(errors="replace").splitlines()
    except FileNotFoundError:
        return ""
    return "\n".join(f"  {line}" for line in printed[-_LOG_TAIL_LINES:])


def _open_session(layout: ControlPlaneLayout, token: str) -> aiohttp.ClientSession:
    trusted = ssl.create_default_context(cadata=layout.certificate.read_text())
    headers = {"Authorization": f"Bearer {token}"}
    return aiohttp.ClientSession(layout.url, connector=aiohttp.TCPConnector(ssl=trusted), headers=headers)


async def _has_certificate(layout: ControlPlaneLayout) -> bool:
    return layout.has_certificate()


async def _is_served(session: aiohttp.ClientSession, path: str) -> bool:
    try:
        async with session.get(path) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def _is_node_ready(session: aiohttp.ClientSession) -> bool:
    async with session.get(f"/api/v1/nodes/{NODE}") as answer:
        node: dict[str, Any] = await answer.json()
    conditions = node.get("status", {}).get("conditions", ())
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

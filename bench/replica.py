"""A ``konverge run`` in its own process, measured from outside."""

from __future__ import annotations

import asyncio
import os
import random
import re
import signal
import socket
import sys
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

__all__ = ["ProcessUsage", "Replica"]

_STOP_SECONDS = 30.0
_FAILURES = re.compile(r"Traceback|never retrieved|Unhandled|never awaited|^CRITICAL", re.MULTILINE)
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)$")


@dataclass(frozen=True)
class ProcessUsage:
    """The resources of a process at one moment.

    Args:
        megabytes: The resident set in megabytes.
        descriptors: The number of open files and sockets.
        connections: The number of connected TCP sockets.
        threads: The number of threads.
        tasks: The number of tasks in its event loop.
    """

    megabytes: float
    descriptors: int
    connections: int
    threads: int
    tasks: int


class Replica:
    """A process of an operator, as an async context manager; the block's exit ends the process.

    Args:
        kubeconfig: The kubeconfig of the cluster.
        namespace: The namespace that the operator watches.
        log: The file for its output.
        options: Further options of ``konverge run``.
        operator: The name of the operator, by which the audit log identifies its requests.
        file: The operator file.
    """

    def __init__(
        self,
        kubeconfig: Path,
        namespace: str,
        log: Path,
        *options: str,
        operator: str = "garden",
        file: str = "bench/sample_operator.py",
    ) -> None:
        self.operator = operator
        self.log = log
        self._metrics_port, self._probe_port = _free_ports(2)
        self._command = [sys.executable, "-m", "konverge", "run", file, "--kubeconfig", str(kubeconfig)]
        self._command += ["--namespace", namespace, "--metrics", f"127.0.0.1:{self._metrics_port}"]
        self._command += ["--probes", f"127.0.0.1:{self._probe_port}", *options]
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        with self.log.open("wb") as output:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "GARDEN_OPERATOR": self.operator},
                process_group=0,  # Ctrl-C must reach only this process, which then stops the replica
            )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self.process
        if process.returncode is None:
            process.send_signal(signal.SIGCONT)
            process.send_signal(signal.SIGTERM if kind is None else signal.SIGKILL)
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    @property
    def process(self) -> asyncio.subprocess.Process:
        """The process of the replica."""
        assert self._process is not None, "only within the block"
        return self._process

    def check_alive(self) -> None:
        """Raise an error if the process has ended."""
        if self.process.returncode is not None:
            last = self.log.read_text(errors="replace").splitlines()[-5:]
            raise RuntimeError(f"{self.operator} ended with exit code {self.process.returncode}: {last}")

    def is_agent(self, user_agent: str) -> bool:
        """Return True if a request with this user agent came from the replica."""
        return user_agent.startswith("konverge/") and user_agent.endswith(f"({self.operator})")

    async def is_ready(self) -> bool:
        """Return the result of the readiness probe."""
        with suppress(aiohttp.ClientError, TimeoutError):
            code, _ = await self._get(self._probe_port, "readyz")
            return code == 200
        return False

    async def is_live(self) -> bool:
        """Return the result of the liveness probe."""
        code, _ = await self._get(self._probe_port, "healthz")
        return code == 200

    async def metrics(self) -> dict[str, float]:
        """Return the exported metrics, each summed over its labels."""
        _, text = await self._get(self._metrics_port, "metrics")
        found: dict[str, float] = {}
        for line in text.splitlines():
            if sample := _SAMPLE.match(line):
                found[sample["name"]] = found.get(sample["name"], 0.0) + float(sample["value"])
        return found

    async def read_usage(self) -> ProcessUsage:
        """Return the current resources of the process."""
        folder = Path(f"/proc/{self.process.pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        links = []
        for descriptor in (folder / "fd").iterdir():
            with suppress(FileNotFoundError):
                links.append(str(descriptor.readlink()))
        sockets = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}
        lines = [line.split() for line in (folder / "net" / "tcp").read_text().splitlines()[1:]]
        return ProcessUsage(
            megabytes=int(status["VmRSS"].split()[0]) / 1000,
            descriptors=len(links),
            connections=sum(line[9] in sockets and line[3] == "01" for line in lines),
            threads=int(status["Threads"]),
            tasks=int((await self.metrics()).get("konverge_tasks", 0)),
        )

    async def _get(self, port: int, path: str) -> tuple[int, str]:
        timeout = aiohttp.ClientTimeout(total=10)
        url = f"http://127.0.0.1:{port}/{path}"
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url) as answer:
            return answer.status, await answer.text()

    def failures(self) -> list[str]:
        """Return the lines of its log that must never occur."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if _FAILURES.search(line)]


def _free_ports(count: int) -> list[int]:
    """Return ports that are free now and that outgoing connections cannot use before the replica listens."""
    with ExitStack() as stack:
        found: list[int] = []
        while len(found) < count:
            listener, port = stack.enter_context(socket.socket()), random.randint(20_000, 30_000)
            with suppress(OSError):
                listener.bind(("127.0.0.1", port))
                found.append(port)
        return found

"""``konverge resolvers run`` in a process of its own, with a folder of its own for what is temporary."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.resolution.requests.request_namespace import RequestNamespace

__all__ = ["ResolverProcess", "resolver_process"]


class ResolverProcess:
    """A running process.

    Args:
        process: The process.
        log: What it prints.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def log(self) -> str:
        """What it has printed."""
        return self._log.read_text()

    @property
    def peak_memory(self) -> int:
        """The most that it ever held, in bytes."""
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        (found,) = (line.split()[1] for line in lines if line.startswith("VmHWM"))
        return int(found) * 1024

    async def kill(self) -> None:
        """End it as nothing can prepare for."""
        self._process.kill()
        await self._process.wait()

    async def terminate(self) -> int:
        """Ask it to end; its exit code."""
        self._process.terminate()
        return await self._process.wait()


@asynccontextmanager
async def resolver_process(desk: RequestNamespace, only: str, temporary: Path) -> AsyncIterator[ResolverProcess]:
    """Run resolvers for a desk within the block."""
    os.makedirs(temporary, exist_ok=True)
    log = temporary.with_suffix(".log")
    command = [sys.executable, "-m", "konverge", "resolvers", "run", f"--only={only}", f"--home={desk.namespace}"]
    command += [
        f"--namespace={desk.namespace}",
        f"--kubeconfig={await desk.cluster.write_kubeconfig()}",
        "--tekton",
        "-v",
    ]
    command += [f"--credentials={desk.namespace}"]
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=output,
            env={**os.environ, "TMPDIR": str(temporary)},
        )  # fmt: skip
    try:
        yield ResolverProcess(process, log)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()

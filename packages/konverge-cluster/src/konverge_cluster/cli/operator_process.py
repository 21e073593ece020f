"""An operator in a process of its own, started as a user would start it, and ended by its id."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from konverge.cancellation import await_shielded
from konverge.errors import KonvergeError

__all__ = ["OperatorProcess", "operator_process"]

_STOP_SECONDS = 5.0
_LOG_TAIL_LINES = 8


class OperatorProcess:
    """A running ``konverge run``.

    Args:
        process: The process.
        log: What it prints.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    async def wait_for_exit(self) -> None:
        """Wait for an end that nobody asked for; returns only by raising.

        Raises:
            konverge.errors.KonvergeError: It ended; the message has its last line.
        """
        code = await self._process.wait()
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
        last = self.read_log_tail()[-1:] or ["it printed nothing"]
        raise KonvergeError(f"the operator {how}: {last[0].removeprefix('konverge: ')}")

    def read_log_tail(self) -> list[str]:
        """The last lines that it printed."""
        return self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]


@asynccontextmanager
async def operator_process(file: Path, kubeconfig: Path, namespace: str, log: Path) -> AsyncIterator[OperatorProcess]:
    """Run an operator file against a cluster while the block runs; its definitions are installed first.

    Args:
        file: The operator file.
        kubeconfig: Which cluster.
        namespace: What it looks after.
        log: Gets what the operator prints.
    """
    command = [sys.executable, "-m", "konverge", "run", str(file), "--kubeconfig", str(kubeconfig)]
    command += ["--namespace", namespace, "--install-crds"]
    with log.open("wb") as output:
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,  # a Ctrl-C is for us, who then end it
            )
        )
        try:
            yield OperatorProcess(
                await await_shielded(starting), log
            )  # half a start leaves a process that nobody knows
        finally:
            if starting.exception() is None:
                await await_shielded(_stop(starting.result()))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Let it end in good order, or else end it."""
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()

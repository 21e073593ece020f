"""An operator in a separate process, started like a user starts it, and ended by its process id."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from konverge._internal.cancellation import await_shielded
from konverge.errors import KonvergeError

__all__ = ["OperatorProcess", "operator_process"]

_STOP_SECONDS = 5.0
_LOG_TAIL_LINES = 8


class OperatorProcess:
    """A running ``konverge run`` process.

    Args:
        process: The process.
        log: The file with the output of the process.
    """

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        """The process id of the operator."""
        return self._process.pid

    async def wait_for_exit(self) -> None:
        """Wait until the process ends without request; this function returns only by raising.

        Raises:
            konverge.errors.KonvergeError: The process ended; the message contains its last line.
        """
        code = await self._process.wait()
        how = f"ended with exit code {code}" if code >= 0 else f"was ended by signal {-code}"
        last = self.read_log_tail()[-1:] or ["the operator printed nothing"]
        raise KonvergeError(f"the operator {how}: {last[0].removeprefix('konverge: ')}")

    def read_log_tail(self) -> list[str]:
        """Return the last lines of the log."""
        return self._log.read_text(errors="replace").splitlines()[-_LOG_TAIL_LINES:]


@asynccontextmanager
async def operator_process(file: Path, kubeconfig: Path, namespace: str, log: Path) -> AsyncIterator[OperatorProcess]:
    """Run an operator file against a cluster while the block runs, after its definitions are installed.

    Args:
        file: The operator file.
        kubeconfig: The kubeconfig of the cluster.
        namespace: The namespace that the operator watches.
        log: The file for the output of the operator.
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
                process_group=0,  # Ctrl-C must reach only this process, which then stops the operator
            )
        )
        try:
            # Shielded: a start that is cancelled halfway would leave a process that is never stopped.
            yield OperatorProcess(await await_shielded(starting), log)
        finally:
            if starting.exception() is None:
                await await_shielded(_stop(starting.result()))


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Stop the process with SIGTERM, or kill it after a timeout."""
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

"""Running the program that prints credentials: when it is time, once for all who wait, and never for long."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process

from konverge.client.credentials import Credentials, Identity
from konverge.client.exec_plugin import ExecPlugin, issued_by, told_to, without_secrets
from konverge.client.renewal import Issued, Renewal
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

__all__ = ["ExecCredentials"]

# Shorter than a verb's deadline: so the message is of the program, and not of a server that was never asked.
_TIMEOUT_SECONDS = 25.0
_MAX_OUTPUT_BYTES = 1024 * 1024


class ExecCredentials:
    """What an exec plug-in prints, for as long as it is valid.

    The program runs when credentials are needed first, before they expire, and when the server refuses them; once for
    all who wait. What it last printed is in memory alone.

    Args:
        plugin: The program.
        clock: Says what has expired.
        timeout_seconds: How long it may take.
    """

    def __init__(self, plugin: ExecPlugin, clock: Clock, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self.description = f"the credentials that {plugin.command} gives {plugin.whose}"
        self._plugin = plugin
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._renewal = Renewal(self._run, clock, self.description)

    async def identity(self) -> Identity:
        """What the program printed last, while that is valid.

        Cancelling the one who waits for the program ends it; whoever else waits starts it again.

        Raises:
            konverge.errors.ConfigurationError: The program is not there, or does not do what a plug-in must.
            konverge.errors.NotConnectedError: The program failed, or took too long.
        """
        return await self._renewal.current()

    def refused(self, identity: Identity) -> bool:
        """The program may print others now."""
        return self._renewal.refused(identity)

    def separate(self) -> Credentials:
        """One that runs the program by itself."""
        return ExecCredentials(self._plugin, self._clock, timeout_seconds=self._timeout_seconds)

    async def _run(self) -> Issued:
        plugin = self._plugin
        has_terminal = plugin.interactive_mode != "Never" and _is_terminal()
        if plugin.interactive_mode == "Always" and not has_terminal:
            raise ConfigurationError(
                f"{plugin.name} needs a terminal (interactiveMode: Always), and there is none. "
                "Use credentials that need nobody to log in"
            )
        printed = await _printed(plugin, has_terminal, self._timeout_seconds)
        return issued_by(plugin, printed)


async def _printed(plugin: ExecPlugin, has_terminal: bool, timeout_seconds: float) -> bytes:
    """Run the program and give what it printed."""
    program = shutil.which(plugin.command, path=plugin.environment.get("PATH", os.defpath))
    if program is None:
        hint = f". {plugin.install_hint}" if plugin.install_hint else ": install it, or correct the command"
        raise ConfigurationError(f"{plugin.name} is not there{hint}")
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *plugin.arguments,
            env={**plugin.environment, "KUBERNETES_EXEC_INFO": told_to(plugin, interactive=has_terminal)},
            stdin=None if has_terminal else DEVNULL,
            stdout=PIPE,
            stderr=None if has_terminal else PIPE,  # who is asked something must see the question
            start_new_session=not has_terminal,
        )
    except OSError as error:
        raise ConfigurationError(f"cannot run {plugin.name}: {error.strerror}") from error
    try:
        async with asyncio.timeout(timeout_seconds):
            async with asyncio.TaskGroup() as tasks:
                output = tasks.create_task(_read(process.stdout))
                complaint = tasks.create_task(_read(process.stderr))
            code = await process.wait()
    except TimeoutError:
        raise NotConnectedError(f"{plugin.name} did not end within {timeout_seconds:g} s") from None
    finally:
        await _end(process, has_group=not has_terminal)
    if code != 0:
        words = without_secrets(complaint.result() or b"", plugin)
        raise NotConnectedError(f"{plugin.name} failed (exit code {code}){': ' if words else ''}{words}")
    printed = output.result()
    if printed is None:
        raise ConfigurationError(f"{plugin.name} printed more than {_MAX_OUTPUT_BYTES} bytes")
    return printed


async def _read(stream: asyncio.StreamReader | None) -> bytes | None:
    """All that comes; None when that is too much, of which nothing is kept."""
    pieces: list[bytes] = []
    size = 0
    while stream is not None and (piece := await stream.read(65536)):
        size += len(piece)
        if size > _MAX_OUTPUT_BYTES:
            pieces.clear()
        else:
            pieces.append(piece)
    return b"".join(pieces) if size <= _MAX_OUTPUT_BYTES else None


async def _end(process: Process, *, has_group: bool) -> None:
    """End a program that still runs, with all that it started, and wait until it has ended."""
    if process.returncode is None:
        try:
            if has_group and hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        except ProcessLookupError:
            pass  # it was faster
    await process.wait()


def _is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # it has been closed
        return False

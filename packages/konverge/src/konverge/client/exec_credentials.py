"""Running the program that prints credentials: when it is time, once for all who wait, and never for long."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from konverge.cancellation import await_shielded
from konverge.client.credential_renewer import CredentialRenewer, IssuedIdentity
from konverge.client.credentials import Credentials, Identity
from konverge.client.exec_plugin import ExecPlugin, encode_exec_info, parse_exec_credential, redact_stderr
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

__all__ = ["ExecCredentials"]

# Shorter than a verb's deadline: so the message is of the program, and not of a server that was never asked.
_TIMEOUT_SECONDS = 25.0
_MAX_OUTPUT_BYTES = 1024 * 1024

# Once a program has ended, what it printed is read at once, unless somebody else still holds the pipe.
_LAST_OUTPUT_SECONDS = 1.0

_STDOUT, _STDERR = 1, 2


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
        self.description = f"the credentials that {plugin.command} gives {plugin.user}"
        self._plugin = plugin
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._renewal = CredentialRenewer(self._run_plugin, clock, self.description)

    async def get_identity(self) -> Identity:
        """What the program printed last, while that is valid.

        Cancelling the one who waits for the program ends it; whoever else waits starts it again.

        Raises:
            konverge.errors.ConfigurationError: The program is not there, or does not do what a plug-in must.
            konverge.errors.NotConnectedError: The program failed, or took too long.
        """
        return await self._renewal.get_identity()

    def invalidate(self, identity: Identity) -> bool:
        """The program may print others now."""
        return self._renewal.invalidate(identity)

    def clone(self) -> Credentials:
        """One that runs the program by itself."""
        return ExecCredentials(self._plugin, self._clock, timeout_seconds=self._timeout_seconds)

    async def _run_plugin(self) -> IssuedIdentity:
        plugin = self._plugin
        has_terminal = plugin.interactive_mode != "Never" and _is_terminal()
        if plugin.interactive_mode == "Always" and not has_terminal:
            raise ConfigurationError(
                f"{plugin.name} needs a terminal (interactiveMode: Always), and there is none. "
                "Use credentials that need nobody to log in"
            )
        printed = await _run_program(plugin, has_terminal, self._timeout_seconds)
        return parse_exec_credential(plugin, printed)


async def _run_program(plugin: ExecPlugin, has_terminal: bool, timeout_seconds: float) -> bytes:
    """Run the program and give what it printed."""
    program = shutil.which(plugin.command, path=plugin.environment.get("PATH", os.defpath))
    if program is None:
        hint = f". {plugin.install_hint}" if plugin.install_hint else ": install it, or correct the command"
        raise ConfigurationError(f"{plugin.name} is not there{hint}")
    options: dict[str, Any] = {
        "env": {**plugin.environment, "KUBERNETES_EXEC_INFO": encode_exec_info(plugin, interactive=has_terminal)},
        "stdin": None if has_terminal else DEVNULL,
        "stdout": PIPE,
        "stderr": None if has_terminal else PIPE,  # who is asked something must see the question
        "start_new_session": not has_terminal,
    }
    loop = asyncio.get_running_loop()
    starting = asyncio.create_task(loop.subprocess_exec(_ProgramProtocol, program, *plugin.arguments, **options))
    try:
        transport, running = await await_shielded(starting)
        async with asyncio.timeout(timeout_seconds):
            await running.ended.wait()
    except TimeoutError:
        raise NotConnectedError(f"{plugin.name} did not end within {timeout_seconds:g} s") from None
    except OSError as error:
        raise ConfigurationError(f"cannot run {plugin.name}: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"cannot run {plugin.name}: {error}") from error
    finally:
        if starting.exception() is None:
            await await_shielded(_terminate(*starting.result(), has_group=not has_terminal))
    code = transport.get_returncode()
    if code != 0:
        words = redact_stderr(running.read_output(_STDERR) or b"", plugin)
        raise NotConnectedError(f"{plugin.name} failed (exit code {code}){': ' if words else ''}{words}")
    printed = running.read_output(_STDOUT)
    if printed is None:
        raise ConfigurationError(f"{plugin.name} printed more than {_MAX_OUTPUT_BYTES} bytes")
    return printed


class _ProgramProtocol(asyncio.SubprocessProtocol):
    """A program that runs: what it has printed, and how far it is.

    That it has ended does not mean that its pipes have: a child that it left behind may hold them for as long as it
    likes. So neither waits for the other.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.silent = asyncio.Event()
        """Nobody can print any more, and all that was printed is here."""
        self._pieces: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
        self._sizes = {_STDOUT: 0, _STDERR: 0}

    def read_output(self, pipe: int) -> bytes | None:
        """What came through that pipe; None when it was too much, of which nothing is kept."""
        return b"".join(self._pieces[pipe]) if self._sizes[pipe] <= _MAX_OUTPUT_BYTES else None

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._sizes[fd] += len(data)
        if self._sizes[fd] > _MAX_OUTPUT_BYTES:
            self._pieces[fd].clear()
        else:
            self._pieces[fd].append(data)

    def process_exited(self) -> None:
        self.ended.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.silent.set()  # called when the program has ended and all pipes are closed


async def _terminate(transport: asyncio.SubprocessTransport, running: _ProgramProtocol, *, has_group: bool) -> None:
    """End a program that still runs, and in any case what it has left behind; give back its pipes."""
    if has_group and hasattr(os, "killpg"):
        # Also when it has ended well: a child that stays is one more with each renewal. What means to stay, an agent
        # for example, has made a session of its own.
        _kill(lambda: os.killpg(transport.get_pid(), signal.SIGKILL))
    elif not running.ended.is_set():
        _kill(transport.kill)
    try:
        await running.ended.wait()
        # What the program printed last may still be in the pipe. Whoever else holds that is not waited for.
        async with asyncio.timeout(_LAST_OUTPUT_SECONDS):
            await running.silent.wait()
    except TimeoutError:
        pass
    finally:
        transport.close()
    await running.silent.wait()


def _kill(kill: Callable[[], None]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nobody is left (macOS says so with the other one)
        kill()


def _is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # it has been closed
        return False

"""The execution of credential plug-ins: on demand, once for all waiting callers, and with a time limit."""

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

from konverge._internal.cancellation import await_shielded
from konverge._internal.client.credential_renewer import CredentialRenewer, IssuedIdentity
from konverge._internal.client.credentials import Credentials, Identity
from konverge._internal.client.exec_plugin import ExecPlugin, encode_exec_info, parse_exec_credential, redact_stderr
from konverge.clock import Clock
from konverge.errors import ConfigurationError, NotConnectedError

__all__ = ["ExecCredentials"]

# Shorter than a verb's deadline, so that the error names the program, and not a server that received no request.
_TIMEOUT_SECONDS = 25.0
_MAX_OUTPUT_BYTES = 1024 * 1024

# After a program ended, its output is read at once, unless another process still holds the pipe.
_LAST_OUTPUT_SECONDS = 1.0

_STDOUT, _STDERR = 1, 2


class ExecCredentials:
    """The credentials from an exec plug-in.

    The program runs at the first request, before the credentials expire, and after the server rejects them; once for
    all waiting callers. The credentials are only in memory.

    Args:
        plugin: The program.
        clock: The source of time.
        timeout_seconds: The time limit for the program.
    """

    def __init__(self, plugin: ExecPlugin, clock: Clock, *, timeout_seconds: float = _TIMEOUT_SECONDS) -> None:
        self.description = f"the credentials that {plugin.command} gives {plugin.user}"
        self._plugin = plugin
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._renewal = CredentialRenewer(self._run_plugin, clock, self.description)

    async def get_identity(self) -> Identity:
        """Return the identity that the program printed last; run the program if necessary.

        The cancellation of the caller that runs the program ends it; another waiting caller then starts it again.

        Raises:
            konverge.errors.ConfigurationError: The program does not exist, or its output is invalid.
            konverge.errors.NotConnectedError: The program failed, or exceeded its time limit.
        """
        return await self._renewal.get_identity()

    def invalidate(self, identity: Identity) -> bool:
        """Record that the server rejected the identity; the program may print another one."""
        return self._renewal.invalidate(identity)

    def clone(self) -> Credentials:
        """Return credentials that run the program separately."""
        return ExecCredentials(self._plugin, self._clock, timeout_seconds=self._timeout_seconds)

    async def _run_plugin(self) -> IssuedIdentity:
        plugin = self._plugin
        has_terminal = plugin.interactive_mode != "Never" and _is_terminal()
        if plugin.interactive_mode == "Always" and not has_terminal:
            raise ConfigurationError(
                f"{plugin.name} requires a terminal (interactiveMode: Always), and there is none. "
                "Use credentials without an interactive login"
            )
        output = await _run_program(plugin, has_terminal, self._timeout_seconds)
        return parse_exec_credential(plugin, output)


async def _run_program(plugin: ExecPlugin, has_terminal: bool, timeout_seconds: float) -> bytes:
    """Run the program and return its standard output."""
    program = shutil.which(plugin.command, path=plugin.environment.get("PATH", os.defpath))
    if program is None:
        hint = f". {plugin.install_hint}" if plugin.install_hint else ": install it, or correct the command"
        raise ConfigurationError(f"{plugin.name} does not exist{hint}")
    options: dict[str, Any] = {
        "env": {**plugin.environment, "KUBERNETES_EXEC_INFO": encode_exec_info(plugin, interactive=has_terminal)},
        "stdin": None if has_terminal else DEVNULL,
        "stdout": PIPE,
        "stderr": None if has_terminal else PIPE,  # the user must see the program's prompts
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
        stderr = redact_stderr(running.read_output(_STDERR) or b"", plugin)
        raise NotConnectedError(f"{plugin.name} failed (exit code {code}){': ' if stderr else ''}{stderr}")
    output = running.read_output(_STDOUT)
    if output is None:
        raise ConfigurationError(f"{plugin.name} printed more than {_MAX_OUTPUT_BYTES} bytes")
    return output


class _ProgramProtocol(asyncio.SubprocessProtocol):
    """A running program: its output and its state.

    The end of the program does not imply the end of its pipes: a child process may hold them open for any time. So
    neither waits for the other.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.silent = asyncio.Event()
        """All pipes are closed, and the whole output was received."""
        self._pieces: dict[int, list[bytes]] = {_STDOUT: [], _STDERR: []}
        self._sizes = {_STDOUT: 0, _STDERR: 0}

    def read_output(self, pipe: int) -> bytes | None:
        """Return the output of that pipe; None if it was too long (then none of it is kept)."""
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
        self.silent.set()  # asyncio calls this after the program ended and all pipes are closed


async def _terminate(transport: asyncio.SubprocessTransport, running: _ProgramProtocol, *, has_group: bool) -> None:
    """Kill a program that still runs, and its child processes in any case; close its pipes."""
    if has_group and hasattr(os, "killpg"):
        # Also after a success: each renewal would leave one more child process. A process that is to stay, an agent
        # for example, creates its own session.
        _kill(lambda: os.killpg(transport.get_pid(), signal.SIGKILL))
    elif not running.ended.is_set():
        _kill(transport.kill)
    try:
        await running.ended.wait()
        # The last output may still be in the pipe. Do not wait for other processes that hold the pipe.
        async with asyncio.timeout(_LAST_OUTPUT_SECONDS):
            await running.silent.wait()
    except TimeoutError:
        pass
    finally:
        transport.close()
    await running.silent.wait()


def _kill(kill: Callable[[], None]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # no process is left (macOS raises PermissionError then)
        kill()


def _is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # stdin is closed
        return False

"""The process of one version of an operator, as the supervisor of ``konverge run --reload`` sees it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from konverge._internal.cancellation import await_shielded

__all__ = ["ReloadProcess", "VersionFailure"]

_REPORT_LIMIT = 4 * 1024 * 1024
_REPORT_SECONDS = 1.0
_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class VersionFailure:
    """An error that ended a version.

    Args:
        step: ``load`` if the author's file cannot be imported, else ``run``.
        problem: The error on one line.
        code: The exit code for the error.
        files: The files that the error names.
    """

    step: str
    problem: str
    code: int
    files: tuple[str, ...] = ()


class ReloadProcess:
    """A started process (`cli.reload_worker`) and its reports so far.

    Attributes:
        files: The author's files that the version has imported.
        is_prepared: True if the version waits for the permission to run, or has it.
        failure: The error that the version reported; None without one.
    """

    def __init__(self, process: asyncio.subprocess.Process, reports: int, on_report: asyncio.Event) -> None:
        self.files: tuple[str, ...] = ()
        self.is_prepared = False
        self.failure: VersionFailure | None = None
        self._process = process
        self._on_report = on_report
        self._reading = asyncio.create_task(self._read_reports(reports), name=f"reports of process {process.pid}")

    @classmethod
    async def start(cls, on_report: asyncio.Event) -> Self:
        """Start a process, which imports konverge and then waits for `load`.

        Args:
            on_report: Is set after each report and after the end of the process.
        """
        reports, report_end = os.pipe()
        try:
            # In another process group: Ctrl-C must reach only the supervisor, which then stops the operator. With -P,
            # a file of the working directory cannot hide a module of konverge.
            starting = asyncio.create_task(
                asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", "konverge._internal.cli.reload_worker", str(report_end)),
                    stdin=asyncio.subprocess.PIPE,
                    pass_fds=[report_end],
                    process_group=0,
                )
            )
            try:
                process = await await_shielded(starting)
            except asyncio.CancelledError:
                if not starting.cancelled() and starting.exception() is None:
                    starting.result().kill()
                    await await_shielded(starting.result().wait())
                raise
        except BaseException:
            os.close(reports)
            raise
        finally:
            os.close(report_end)
        return cls(process, reports, on_report)

    @property
    def has_ended(self) -> bool:
        """True if the process has ended and its last report is read."""
        return self._reading.done()

    async def load(self, settings: Mapping[str, Any]) -> None:
        """Have the process import the operator and prepare the cluster."""
        await self._send({"command": "load", **settings})

    async def run(self) -> None:
        """Have the process begin to reconcile, after `is_prepared`."""
        await self._send({"command": "run"})

    def terminate(self) -> None:
        """Request the end: the first time, running reconciles can finish; the second time, they are cancelled."""
        with suppress(ProcessLookupError):
            self._process.terminate()

    async def wait(self) -> int:
        """Wait for the end of the process and return its exit code."""
        return await self._process.wait()

    async def stop(self, grace_seconds: float) -> None:
        """End the process; the wait for its end continues if it is cancelled.

        Args:
            grace_seconds: The time for running reconciles.
        """
        await await_shielded(self._stop(grace_seconds))

    async def _stop(self, grace_seconds: float) -> None:
        try:
            for seconds in (grace_seconds, _STOP_SECONDS):
                if self._process.returncode is None and seconds:
                    self.terminate()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(seconds):
                            await self._process.wait()
        finally:
            if self._process.returncode is None:
                self._process.kill()
                await self._process.wait()
            await asyncio.wait([self._reading])

    async def _send(self, command: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(ConnectionError):  # the process has ended
            self._process.stdin.write(json.dumps(command, default=os.fspath).encode() + b"\n")
            await self._process.stdin.drain()

    async def _read_reports(self, reports: int) -> None:
        reader = asyncio.StreamReader(limit=_REPORT_LIMIT)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(reports, "rb")
        )
        reading = asyncio.create_task(self._record_lines(reader))
        try:
            await self._process.wait()
            # A process that the author's code has forked can keep the pipe open.
            await asyncio.wait([reading], timeout=_REPORT_SECONDS)
        finally:
            reading.cancel()
            transport.close()
            self._on_report.set()

    async def _record_lines(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            self._record(json.loads(line))
            self._on_report.set()

    def _record(self, report: Mapping[str, Any]) -> None:
        match report["event"]:
            case "loaded":
                self.files = tuple(report["files"])
            case "prepared":
                self.is_prepared = True
            case "failed":
                self.failure = VersionFailure(report["step"], report["problem"], report["code"], tuple(report["files"]))

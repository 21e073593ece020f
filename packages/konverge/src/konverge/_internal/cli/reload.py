"""``konverge run --reload``: a new version of the operator's files replaces the running one, if it works.

Each version runs in a process of its own (`cli.reload_worker`), so that nothing of an old version remains. A changed
version is imported and prepared beside the running one. If that fails, the running one stays. Otherwise the running one
is stopped before the new one begins: two versions never reconcile at the same time. One more process, which has
imported konverge, always waits for the next version.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.plurals import format_count
from konverge._internal.cli.reload_process import ReloadProcess, VersionFailure
from konverge._internal.cli.source_files import SourceWatch, list_folder_files, read_signatures
from konverge.clock import Clock

__all__ = ["ReloadSupervisor"]

_log = logging.getLogger("konverge.cli")

_POLL_SECONDS = 0.1
_LOAD_SECONDS = 60.0
_RECONCILE_SECONDS = 1.0
# The spare process must not take the processor from a version that begins.
_SPARE_DELAY_SECONDS = 1.0
_MAX_LISTED = 3


class ReloadSupervisor:
    """Runs the versions of one operator file, one after the other.

    Args:
        file: The operator file.
        settings: The content of the message ``load`` for each process (`cli.reload_worker`).
        clock: The time.
    """

    def __init__(self, file: Path, settings: Mapping[str, Any], clock: Clock) -> None:
        self._file = file.absolute()
        self._settings = settings
        self._clock = clock
        self._on_report = asyncio.Event()
        self._watch = SourceWatch()
        self._candidate: ReloadProcess | None = None
        self._running: ReloadProcess | None = None
        self._spare: ReloadProcess | None = None
        self._changed_at = 0.0
        self._changed_at_ns = 0
        self._ran_at = 0.0
        self._has_run = False
        self._is_broken = False
        self._next_poll = 0.0
        self._exit_code: int = ExitCode.DONE

    async def run(self, stop_event: asyncio.Event) -> int:
        """Run versions until the event is set, and return the exit code of the command.

        An error of the first version that is not in its files, for example an unreachable cluster, ends the command.
        """
        try:
            self._watch.add_files(read_signatures([str(self._file)]), imported_at_ns=self._read_nanoseconds())
            await self._load_version()
            while not stop_event.is_set():
                await self._observe_files()
                if self._candidate is not None and (code := await self._observe_candidate(self._candidate)) is not None:
                    return code
                if self._running is not None:
                    await self._observe_running(self._running)
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS):
                        await self._on_report.wait()
                self._on_report.clear()
            if self._running is not None:
                self._running.terminate()
                self._exit_code = await self._running.wait()
            return self._exit_code if self._exit_code >= 0 else ExitCode.FAILED  # negative: ended by a signal
        finally:
            # A running version that got a signal already gets its second one: it cancels its reconciles.
            for process in (self._candidate, self._spare, self._running):
                if process is not None:
                    await process.stop(0)

    async def _observe_files(self) -> None:
        """Load a new version if files have changed."""
        if self._clock.monotonic() < self._next_poll:
            return
        self._next_poll = self._clock.monotonic() + _POLL_SECONDS
        if self._is_broken:
            # A file that appears now may be the one that was missing; it counts as changed.
            await self._watch_files(await self._list_nearby_files(), imported_at_ns=0)
        signatures = await asyncio.to_thread(read_signatures, self._watch.files)
        if changed := self._watch.observe(signatures):
            _log.info("reload: changed: %s", _format_files(changed))
            await self._load_version()

    async def _load_version(self) -> None:
        if self._candidate is not None:
            await self._candidate.stop(0)
        self._changed_at, self._changed_at_ns = self._clock.monotonic(), self._read_nanoseconds()
        if self._spare is None or self._spare.has_ended:
            self._spare = await ReloadProcess.start(self._on_report)
        self._candidate, self._spare = self._spare, None
        await self._candidate.load(self._settings)

    async def _observe_candidate(self, candidate: ReloadProcess) -> int | None:
        """Replace the running version if the candidate is prepared; return an exit code to end the command."""
        await self._watch_files(candidate.files, imported_at_ns=self._changed_at_ns)
        if (failure := self._find_failure(candidate)) is None:
            if candidate.is_prepared:
                await self._replace_running(candidate)
            return None
        self._candidate = None
        await candidate.stop(0)
        # The next change can be in a file that could not be imported, or that does not exist yet.
        nearby = await self._list_nearby_files()
        await self._watch_files([*failure.files, *nearby], imported_at_ns=self._changed_at_ns)
        self._is_broken = True
        if failure.step == "run" and not self._has_run:
            _log.error("%s", failure.problem)
            return failure.code
        state = "waiting for a change" if self._running is None else "the last version keeps running"
        _log.error("reload: %s; %s", failure.problem, state)
        return None

    def _find_failure(self, candidate: ReloadProcess) -> VersionFailure | None:
        if candidate.failure is not None:
            return candidate.failure
        if candidate.has_ended:
            return VersionFailure("load", f"{self._file}: the import ended the process", ExitCode.CONFIGURATION)
        if not candidate.files and self._clock.monotonic() - self._changed_at > _LOAD_SECONDS:
            problem = f"{self._file}: import: not finished within {_LOAD_SECONDS:g} s"
            return VersionFailure("load", problem, ExitCode.CONFIGURATION)
        return None

    async def _replace_running(self, candidate: ReloadProcess) -> None:
        if self._running is not None:
            await self._running.stop(_RECONCILE_SECONDS)
        await candidate.run()
        self._running, self._candidate, self._is_broken = candidate, None, False
        self._ran_at = self._clock.monotonic()
        if self._has_run:
            _log.info("reload: the new version runs after %.2f s", self._ran_at - self._changed_at)
        else:
            _log.info("reload: watching %s", format_count(len(self._watch.files), "file"))
        self._has_run = True

    async def _observe_running(self, running: ReloadProcess) -> None:
        """Watch what the running version has imported, report its end, and start the spare process."""
        await self._watch_files(running.files, imported_at_ns=self._read_nanoseconds())
        if running.has_ended:
            self._exit_code = await running.wait()
            problem = f"exit code {self._exit_code}" if running.failure is None else running.failure.problem
            _log.error("reload: the operator has ended: %s; waiting for a change", problem)
            self._running = None
        elif self._spare is None and self._clock.monotonic() - self._ran_at > _SPARE_DELAY_SECONDS:
            self._spare = await ReloadProcess.start(self._on_report)

    async def _list_nearby_files(self) -> list[str]:
        return await asyncio.to_thread(list_folder_files, self._file.parent)

    async def _watch_files(self, files: Iterable[str], *, imported_at_ns: int) -> None:
        if new := set(files).difference(self._watch.files):
            signatures = await asyncio.to_thread(read_signatures, sorted(new))
            self._watch.add_files(signatures, imported_at_ns=imported_at_ns)

    def _read_nanoseconds(self) -> int:
        return int(self._clock.now().timestamp() * 1e9)


def _format_files(files: list[str]) -> str:
    names = [os.path.relpath(file) for file in files[:_MAX_LISTED]]
    more = len(files) - len(names)
    return ", ".join([*names, *([f"{more} more"] if more else [])])

"""Temporary folders for resolvers: private, limited in size, and removed even if the process was killed.

Each process has one folder with a file lock. The system releases the lock when the process ends, so the next process
finds the folders without an owner and removes them.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from konverge.clock import Clock
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.reasons import Reason
from konverge_resolution._internal.usage_limit import SharedUsage

__all__ = ["LockedFolder", "TemporaryFolders"]

_PREFIX = "konverge-resolution-"
_LOCK = "lock"
_LOOK_SECONDS = 0.5
_MAX_ENTRIES = 100_000
_MAX_TOTAL_BYTES = 3 << 30
"""Limit for all folders in bytes; a Pod of resolvers may have 4 GiB, and sizes are only measured at intervals."""


class TemporaryFolders:
    """Factory of temporary folders below one parent; implements `konverge_resolution.Workspaces`.

    Args:
        clock: The clock for the intervals between measurements.
        parent: The parent folder; the system's folder for temporary files by default. Folders of ended processes are
            removed there.
        max_bytes: Limit for all folders together, in bytes.
    """

    def __init__(self, clock: Clock, parent: Path | None = None, *, max_bytes: int = _MAX_TOTAL_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._shared: SharedUsage[Path] = SharedUsage()
        parent = parent or Path(tempfile.gettempdir())
        parent.mkdir(parents=True, exist_ok=True)
        remove_stale_folders(parent)
        self._own = LockedFolder(parent)

    @asynccontextmanager
    async def folder(self, *, max_bytes: int) -> AsyncIterator[Path]:
        """Provide an empty private folder that is removed after the block in any case.

        Args:
            max_bytes: Limit of its size in bytes. The block is cancelled above it, and when all folders together exceed
                their limit and this one is the largest.

        Raises:
            ResolutionError: ``TooLarge``: the block was cancelled for its size.
        """
        made = Path(tempfile.mkdtemp(dir=self._own.path))
        excess = ""
        until_too_much = asyncio.timeout(None)

        async def watch() -> None:
            nonlocal excess
            while not excess:
                await self._clock.sleep(_LOOK_SECONDS)
                size = await asyncio.to_thread(_measure_size, made)
                if size > max_bytes:
                    excess = f"more than {max_bytes} bytes on disk"
                elif self._shared.record_and_check(made, size, max_bytes=self._max_bytes):
                    excess = f"the largest share of the {self._max_bytes} bytes on disk for all concurrent fetches"
            until_too_much.reschedule(asyncio.get_running_loop().time())

        watching = asyncio.create_task(watch())
        try:
            # `asyncio.timeout` withdraws its cancellation; a plain `Task.cancel` would remain pending.
            async with until_too_much:
                yield made
        except TimeoutError:
            if not until_too_much.expired():
                raise
            raise ResolutionError(Reason.TOO_LARGE, f"the source needs {excess}") from None
        finally:
            watching.cancel()
            # Not in a thread, like its creation: a cancellation in between would leave it behind.
            shutil.rmtree(made, ignore_errors=True)
            self._shared.release(made)

    def close(self) -> None:
        """Remove all folders and release the lock."""
        self._own.close()


class LockedFolder:
    """Private folder of this process, locked until it is closed; `remove_stale_folders` removes it after a kill.

    Args:
        parent: The parent folder.

    Attributes:
        path: The folder.
    """

    def __init__(self, parent: Path) -> None:
        # The lock is taken before the folder gets the name that other processes search for.
        made = Path(tempfile.mkdtemp(prefix=".konverge-", dir=parent))
        self._lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.path = made.rename(parent / f"{_PREFIX}{made.name.removeprefix('.konverge-')}")

    def close(self) -> None:
        """Remove the folder and release the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_stale_folders(parent: Path) -> None:
    """Remove the folders of processes that ended without cleanup."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # not a folder of this package, or already being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process is running
        finally:
            os.close(lock)


def _measure_size(folder: Path) -> int:
    size = entries = 0
    for path, _, names in os.walk(folder):
        for name in names:
            entries += 1
            try:
                size += (Path(path) / name).lstat().st_blocks * 512
            except OSError:
                continue  # removed in the meantime
        if entries > _MAX_ENTRIES:
            return 1 << 62
    return size

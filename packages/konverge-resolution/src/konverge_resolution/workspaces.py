"""Folders for resolvers: private, of bounded size, and gone afterwards, even when the process was killed in between.

Each process has one folder with a lock that lives as long as the process does. The system lets go of the lock however
the process ends, so whoever starts next sees which folders belong to nobody, and removes them.
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
from konverge_resolution.errors import ResolutionError
from konverge_resolution.reasons import Reason
from konverge_resolution.usage_limit import SharedUsage

__all__ = ["TemporaryFolders"]

_PREFIX = "konverge-resolution-"
_LOCK = "lock"
_LOOK_SECONDS = 0.5
_MAX_ENTRIES = 100_000
_MAX_TOTAL_BYTES = 3 << 30
"""Of all folders; a Pod of resolvers may have 4 GiB, and this is seen only when somebody looks."""


class TemporaryFolders:
    """Makes folders below one; implements `konverge_resolution.Workspaces`.

    Args:
        clock: Times the looks at how large a folder is.
        parent: Where they are; the machine's folder for temporary files by default. Folders there of processes that
            have ended are removed.
        max_bytes: How much may be in all of them together.
    """

    def __init__(self, clock: Clock, parent: Path | None = None, *, max_bytes: int = _MAX_TOTAL_BYTES) -> None:
        self._clock = clock
        self._max_bytes = max_bytes
        self._shared: SharedUsage[Path] = SharedUsage()
        self._parent = parent or Path(tempfile.gettempdir())
        self._parent.mkdir(parents=True, exist_ok=True)
        remove_stale_folders(self._parent)
        # The lock is taken before the folder has the name that others look for: they never find it without.
        made = Path(tempfile.mkdtemp(prefix=".konverge-", dir=self._parent))
        self._lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._own = made.rename(self._parent / f"{_PREFIX}{made.name.removeprefix('.konverge-')}")

    @asynccontextmanager
    async def folder(self, *, max_bytes: int) -> AsyncIterator[Path]:
        """An empty private folder that is gone after the block, whatever happens in it.

        Args:
            max_bytes: How much may be in it. The block is cancelled when there is more, and when it has the most of
                what all folders may have together and that is used up.

        Raises:
            ResolutionError: ``TooLarge``: it was cancelled for that.
        """
        made = Path(tempfile.mkdtemp(dir=self._own))
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
                    excess = f"the most of the {self._max_bytes} bytes on disk for all that is fetched now"
            until_too_much.reschedule(asyncio.get_running_loop().time())

        watching = asyncio.create_task(watch())
        try:
            # A plain `Task.cancel` would have to be taken back, however the block ends then.
            async with until_too_much:
                yield made
        except TimeoutError:
            if not until_too_much.expired():
                raise
            raise ResolutionError(Reason.TOO_LARGE, f"the source takes {excess}") from None
        finally:
            watching.cancel()
            # Not in a thread, as making it: a cancellation in the meantime would leave it behind.
            shutil.rmtree(made, ignore_errors=True)
            self._shared.release(made)

    def close(self) -> None:
        """Remove everything that was made here."""
        shutil.rmtree(self._own, ignore_errors=True)
        os.close(self._lock)


def remove_stale_folders(parent: Path) -> None:
    """Remove the folders of processes that have ended without doing so."""
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue  # somebody else's, or being removed
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process lives
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
                continue  # gone in the meantime
        if entries > _MAX_ENTRIES:
            return 1 << 62
    return size

"""Cache of permanently named content in a folder that the processes of one user share.

Content is in files that are named after their digests. A record for each reference has the digest and the provenance.
Nothing in the folder is trusted: a record has a checksum, content is compared with its digest, and what does not match
is removed and fetched again. A damaged, full or unusable folder never makes a resolution fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from konverge._internal.cancellation import await_shielded
from konverge.clock import Clock
from konverge_resolution._internal.content_cache import CacheKey
from konverge_resolution._internal.content_store import read_regular_file, replace_file, shrink_folder
from konverge_resolution._internal.reference import Digest, to_canonical_json
from konverge_resolution._internal.resolved_content import MAX_CONTENT_BYTES, ResolvedContent

__all__ = ["DiskCache"]

_log = logging.getLogger("konverge.resolution")

_MAX_RECORD_BYTES = 1 << 20
_LOCK_SECONDS = 2.0
_LOCK_POLL_SECONDS = 0.05
_STORES_PER_CLEANUP = 64
"""Number of stores between two cleanups of the folder by one process; each reads the status of all files."""


class _Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything about the content of one reference but the content itself."""

    stored_at: datetime
    digest: str
    content: ResolvedContent


class DiskCache:
    """Content by cache key in a folder; the content that was unused for the longest time is removed first.

    Args:
        folder: The folder, created when the first content is stored. It must belong to the user of the process, and
            nobody else must be able to write to it.
        clock: The clock.
        max_bytes: Maximum size of the content in bytes; the records can have a quarter of it in addition. Between two
            cleanups, one process can exceed it by the size of 64 definitions.
        max_files: Maximum number of contents, and of records.
        lifetime: Lifetime of an entry.
    """

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        max_bytes: int = 256 << 20,
        max_files: int = 4096,
        lifetime: timedelta = timedelta(days=30),
    ) -> None:
        self.folder = folder
        self._clock = clock
        self._max_bytes = max_bytes
        self._max_files = max_files
        self._lifetime = lifetime
        self._records = folder / "records"
        self._contents = folder / "content"
        self._writer = asyncio.Lock()
        self._stores = 0
        self._is_unusable = False

    async def get(self, key: CacheKey) -> ResolvedContent | None:
        """Return the content of a key; None if the folder does not have it, or has damaged or expired content."""
        if self._is_unusable:
            return None
        try:
            return await asyncio.to_thread(self._read, key)
        except OSError as error:
            self._give_up(error)
            return None

    async def store(self, key: CacheKey, content: ResolvedContent) -> None:
        """Store content, unless the folder cannot be used or another process holds its lock for two seconds."""
        if self._is_unusable:
            return
        digest = Digest.of(content.data)
        kept = msgspec.structs.replace(content, data=b"")
        record = _encode_record(_Record(self._clock.now(), str(digest), kept))
        if len(record) > _MAX_RECORD_BYTES:
            return
        try:
            async with self._writer, self._file_lock() as is_locked:
                if is_locked:
                    await await_shielded(asyncio.to_thread(self._write, key, digest, content.data, record))
        except OSError as error:
            self._give_up(error)

    def _read(self, key: CacheKey) -> ResolvedContent | None:
        if not self._check_folder():
            return None
        path = self._build_record_path(key)
        encoded = read_regular_file(path, _MAX_RECORD_BYTES)
        if encoded is None:
            return None
        record = _decode_record(encoded)
        if record is None:
            self._discard("its record is damaged", path)
            return None
        if not record.stored_at <= self._clock.now() < record.stored_at + self._lifetime:
            path.unlink(missing_ok=True)
            return None
        digest = Digest.parse(record.digest)
        content_path = self._build_content_path(digest)
        data = read_regular_file(content_path, MAX_CONTENT_BYTES)
        if data is None:  # removed to make room
            path.unlink(missing_ok=True)
            return None
        if not digest.matches(data):
            self._discard("its content does not match its digest", content_path, path)
            return None
        for used in (path, content_path):
            with contextlib.suppress(OSError):  # the time of use only determines the order of removal
                os.utime(used)
        return msgspec.structs.replace(record.content, data=data)

    def _write(self, key: CacheKey, digest: Digest, data: bytes, record: bytes) -> None:
        for folder in (self._records, self._contents):
            folder.mkdir(mode=0o700, exist_ok=True)
        if self._stores % _STORES_PER_CLEANUP == 0:
            self._clean_up()
        self._stores += 1
        replace_file(self._build_content_path(digest), data, mode=0o600)
        replace_file(self._build_record_path(key), record, mode=0o600)

    def _clean_up(self) -> None:
        for folder, max_bytes in ((self._contents, self._max_bytes), (self._records, self._max_bytes // 4)):
            # Only the holder of the lock writes, so a temporary file is what a killed process has left.
            for leftover in folder.glob(".*"):
                leftover.unlink(missing_ok=True)
            shrink_folder(folder, max_bytes=max_bytes, max_files=self._max_files)

    @asynccontextmanager
    async def _file_lock(self) -> AsyncIterator[bool]:
        """Lock the folder against other processes; yield False if that takes too long.

        Raises:
            OSError: The folder cannot be used.
        """
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700, exist_ok=True)
        self._check_folder()
        handle = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            ends = self._clock.monotonic() + _LOCK_SECONDS
            while not (is_locked := _try_lock(handle)) and self._clock.monotonic() < ends:
                await self._clock.sleep(_LOCK_POLL_SECONDS)  # the system reports no release of a lock
            if not is_locked:
                _log.info("cache %s: another process writes to it; this content is not stored", self.folder)
            yield is_locked
        finally:
            os.close(handle)  # releases the lock

    def _check_folder(self) -> bool:
        """Tell whether the folder exists.

        Raises:
            OSError: Another user could have prepared its content.
        """
        try:
            status = self.folder.lstat()
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise OSError(errno.EPERM, "expected a folder of this user that nobody else can write to")
        return True

    def _build_record_path(self, key: CacheKey) -> Path:
        resolver, params, tenant = key
        identity = to_canonical_json([resolver, params.decode(), tenant])
        return self._records / hashlib.sha256(identity).hexdigest()

    def _build_content_path(self, digest: Digest) -> Path:
        return self._contents / f"{digest.algorithm}-{digest.hex}"

    def _discard(self, why: str, *paths: Path) -> None:
        _log.warning("cache %s: removed an entry, because %s; it is fetched again", self.folder, why)
        for path in paths:
            path.unlink(missing_ok=True)

    def _give_up(self, error: OSError) -> None:
        """Stop the use of the folder in this process, with one warning."""
        if not self._is_unusable:
            problem = error.strerror or type(error).__name__
            _log.warning("cache %s: not used: %s", self.folder, problem)
        self._is_unusable = True


def _encode_record(record: _Record) -> bytes:
    body = msgspec.json.encode(record)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decode_record(encoded: bytes) -> _Record | None:
    checksum, _, body = encoded.partition(b"\n")
    if checksum != hashlib.sha256(body).hexdigest().encode():
        return None
    try:
        record = msgspec.json.decode(body, type=_Record)
        Digest.parse(record.digest)
    except (msgspec.MsgspecError, ValueError):  # written by another version of konverge
        return None
    return record


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True

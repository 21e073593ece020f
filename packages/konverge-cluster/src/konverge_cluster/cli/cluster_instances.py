"""The clusters that ``konverge local up`` left running: where each keeps its files, and whether it is alive.

A cluster's server holds a lock on a file for as long as it lives, in whatever way it ends. So a process id is believed
only while the lock is held, and never belongs to a stranger who got the number later.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from konverge.errors import ConfigurationError

__all__ = ["ClusterInstance", "InstanceRecord", "get_state_folder"]


class InstanceRecord(msgspec.Struct, frozen=True):
    """What a running server says of itself; written once it answers requests.

    Args:
        pid: Its process.
        kind: ``embedded`` or ``real``.
        url: Where it listens.
        kubeconfig: The file to reach it with.
    """

    pid: int
    kind: str
    url: str
    kubeconfig: str


def get_state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where the files of all clusters are, by the XDG rules."""
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "konverge" / "clusters"


class ClusterInstance:
    """One cluster of a name.

    Args:
        name: The name.
        folder: Where the clusters' files are; None for the user's state folder.
    """

    def __init__(self, name: str, folder: Path | None = None) -> None:
        self.name = name
        self.folder = (folder or get_state_folder()) / name
        self.kubeconfig = self.folder / "kubeconfig"
        self.log = self.folder / "log"
        self._lock = self.folder / "lock"
        self._record = self.folder / "server.json"

    @contextmanager
    def server_lock(self) -> Iterator[None]:
        """Be this cluster's server while the block runs.

        Raises:
            konverge.errors.ConfigurationError: Another process is.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock.open("w") as lock:
            try:
                os.lockf(lock.fileno(), os.F_TLOCK, 0)
            except OSError:
                raise ConfigurationError(
                    f'a cluster "{self.name}" is running already; stop it with {self.format_command("down")}'
                ) from None
            self._record.unlink(missing_ok=True)  # of a server that was killed
            try:
                yield
            finally:
                self._record.unlink(missing_ok=True)

    def write_record(self, record: InstanceRecord) -> None:
        """Say that the server is ready. All at once: a reader finds the whole record or none."""
        fresh = self._record.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(record))
        fresh.replace(self._record)

    @property
    def is_locked(self) -> bool:
        """Tell whether a server lives, ready or not."""
        with suppress(FileNotFoundError), self._lock.open() as lock:
            try:
                os.lockf(lock.fileno(), os.F_TEST, 0)
            except OSError:
                return True
        return False

    def read_record(self) -> InstanceRecord | None:
        """The server that is ready; None when there is none."""
        if not self.is_locked:
            return None
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=InstanceRecord)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ConfigurationError(
                f"{self._record}: is damaged; end the process that holds {self._lock} by hand"
            ) from None

    def format_command(self, verb: str) -> str:
        """The command line for this cluster, for messages."""
        return f"konverge local {verb}" + ("" if self.name == "default" else f" --name {self.name}")

"""The clusters that ``konverge local up`` left running: the paths of their files and their state.

The server of a cluster holds a lock on a file until its process ends, even if the process is killed. The recorded
process id is valid only while the lock is held, so it never refers to another process that received the same id later.
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
    """Record of a running server. The server writes it when it is ready to answer requests.

    Args:
        pid: The process id of the server.
        kind: ``embedded`` or ``real``.
        url: The URL on which the server listens.
        kubeconfig: The path of the kubeconfig for this cluster.
    """

    pid: int
    kind: str
    url: str
    kubeconfig: str


def get_state_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder for the files of all clusters, according to the XDG base directory specification."""
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "konverge" / "clusters"


class ClusterInstance:
    """A cluster with a name.

    Args:
        name: The name of the cluster.
        folder: The folder for the files of the clusters; None for the user's state folder.
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
        """Hold the server lock of this cluster while the block runs.

        Raises:
            konverge.errors.ConfigurationError: Another process holds the lock.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._lock.open("w") as lock:
            try:
                os.lockf(lock.fileno(), os.F_TLOCK, 0)
            except OSError:
                raise ConfigurationError(
                    f'a cluster "{self.name}" is running already; stop it with {self.format_command("down")}'
                ) from None
            self._record.unlink(missing_ok=True)  # the record of a killed server
            try:
                yield
            finally:
                self._record.unlink(missing_ok=True)

    def write_record(self, record: InstanceRecord) -> None:
        """Record that the server is ready. The write is atomic: a reader finds the whole record or none."""
        fresh = self._record.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(record))
        fresh.replace(self._record)

    @property
    def is_locked(self) -> bool:
        """True if a server process lives, ready or not."""
        with suppress(FileNotFoundError), self._lock.open() as lock:
            try:
                os.lockf(lock.fileno(), os.F_TEST, 0)
            except OSError:
                return True
        return False

    def read_record(self) -> InstanceRecord | None:
        """Return the record of the ready server; None if no server is ready."""
        if not self.is_locked:
            return None
        try:
            return msgspec.json.decode(self._record.read_bytes(), type=InstanceRecord)
        except FileNotFoundError:
            return None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise ConfigurationError(
                f"{self._record}: failed to read the record; stop the process that holds {self._lock}"
            ) from None

    def format_command(self, verb: str) -> str:
        """Return the command line for this cluster, for messages."""
        return f"konverge local {verb}" + ("" if self.name == "default" else f" --name {self.name}")

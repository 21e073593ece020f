"""A guard against side effects of author functions: connections, processes and changes of files.

The interpreter reports them to audit hooks (PEP 578), which can refuse them. The guard prevents accidents. It is no
sandbox: native code need not report what it does. An audit hook cannot be removed, so the guard is for a process that
does nothing else afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["SideEffectError", "forbid_side_effects"]

_FORBIDDEN = {
    "os.chmod": "changes files",
    "os.chown": "changes files",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.forkpty": "starts a process",
    "os.kill": "sends a signal",
    "os.killpg": "sends a signal",
    "os.link": "changes files",
    "os.mkdir": "changes files",
    "os.posix_spawn": "starts a process",
    "os.remove": "changes files",
    "os.rename": "changes files",
    "os.rmdir": "changes files",
    "os.spawn": "starts a process",
    "os.symlink": "changes files",
    "os.system": "starts a process",
    "os.truncate": "changes files",
    "os.utime": "changes files",
    "socket.bind": "opens a port",
    "socket.connect": "opens a connection",
    "socket.getaddrinfo": "opens a connection",
    "socket.gethostbyname": "opens a connection",
    "socket.sendmsg": "opens a connection",
    "socket.sendto": "opens a connection",
    "subprocess.Popen": "starts a process",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class SideEffectError(PermissionError):
    """A function tried to change something outside of its process."""


def forbid_side_effects() -> Callable[[], None]:
    """Forbid side effects of this process from now on, and return a function that ends this.

    The next side effect raises `SideEffectError` in the code that tries it.
    """
    is_on = [True]

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if not is_on:
            return
        activity = _FORBIDDEN.get(event)
        if event == "open" and arguments[0] != os.devnull and isinstance(arguments[2], int):
            activity = "changes files" if arguments[2] & _WRITING else None
        elif event == "sqlite3.connect" and arguments[0] != ":memory:":
            activity = "changes files"
        if activity is not None:
            raise SideEffectError(f"it {activity}, which konverge rbac does not permit")

    sys.addaudithook(refuse)
    return is_on.clear

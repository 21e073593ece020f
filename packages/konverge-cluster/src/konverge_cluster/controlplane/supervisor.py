"""Owns the processes of one control plane and ends them when whoever asked for them is gone.

Run as a file, never imported: ``python supervisor.py FOLDER [FOLDER ...]``. Standard input is the leash. Each line on
it is a JSON object: with ``name``, ``command`` and ``log`` (a path) it starts a process, with ``kill`` (a name) it ends
one. When the leash ends, let go of or because the other side was killed, all processes are ended and the folders
removed. A process that ends before that leaves its exit code in the file ``<name>.exit`` of the first folder.

Why a process of its own: ``PR_SET_PDEATHSIG`` alone fires when the *thread* that started a child ends, exists on Linux
only, and would leave the files behind. Here it is the second line: it covers a killed supervisor.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType

_POLL_SECONDS = 0.1
_PR_SET_PDEATHSIG = 1


def main(folders: list[Path]) -> None:
    """Serve the leash until it ends, then clean up."""
    signal.signal(signal.SIGTERM, _exit_on_signal)
    signal.signal(signal.SIGHUP, _exit_on_signal)
    running: dict[str, subprocess.Popen[bytes]] = {}
    unread = b""
    try:
        while True:
            readable, _, _ = select.select([0], [], [], _POLL_SECONDS)
            if readable:
                received = os.read(0, 65536)
                if not received:
                    return
                *lines, unread = (unread + received).split(b"\n")
                for line in lines:
                    wanted = json.loads(line)
                    if "kill" in wanted:
                        if wanted["kill"] in running:
                            os.killpg(running[wanted["kill"]].pid, signal.SIGKILL)
                        continue
                    running[wanted["name"]] = _start(wanted["command"], Path(wanted["log"]))
            for name in [name for name, process in running.items() if process.poll() is not None]:
                (folders[0] / f"{name}.exit").write_text(str(running.pop(name).returncode))
    finally:
        for process in running.values():
            # Its own group, so that what it may have started ends with it. Killed at once: there is nothing to save.
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def _exit_on_signal(_signal: int, _frame: FrameType | None) -> None:
    sys.exit(0)


def _start(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            process_group=0,
            preexec_fn=_die_with_supervisor  # noqa: PLW1509 - there is only one thread here
            if sys.platform == "linux"
            else None,
        )


def _die_with_supervisor() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])

"""Supervisor of one control plane's processes; it ends them when its parent process ends.

It runs as a file and is never imported: ``python supervisor.py FOLDER [FOLDER ...]``. Each line of standard input is a
JSON object. ``name``, ``command`` and ``log`` (a path) start a process; ``kill`` (a name) kills one. At the end of
standard input, also when the parent was killed, the supervisor kills all processes and removes the folders. If a
process ends earlier, its exit code is in the file ``<name>.exit`` of the first folder.

A separate process is necessary: ``PR_SET_PDEATHSIG`` alone fires when the *thread* that started a child ends, exists
only on Linux, and leaves the files behind. Here it is the second line of defense, for a killed supervisor.
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
    """Read standard input until it ends, then clean up."""
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
                    instruction = json.loads(line)
                    if "kill" in instruction:
                        if instruction["kill"] in running:
                            os.killpg(running[instruction["kill"]].pid, signal.SIGKILL)
                        continue
                    running[instruction["name"]] = _start(instruction["command"], Path(instruction["log"]))
            for name in [name for name, process in running.items() if process.poll() is not None]:
                (folders[0] / f"{name}.exit").write_text(str(running.pop(name).returncode))
    finally:
        for process in running.values():
            # Each process has its own group, so that its children end with it. SIGKILL is safe: no data must be saved.
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

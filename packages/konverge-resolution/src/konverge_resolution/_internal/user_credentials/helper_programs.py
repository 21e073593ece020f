"""Programs that print a credential: bounded in time and output, and nothing that they print gets into a message."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.resolvers.git.process_runner import ProcessLimits, run_process
from konverge_resolution._internal.user_credentials.user_files import UnusableCredentialError
from konverge_resolution._internal.workspaces import LockedFolder

__all__ = ["HelperOutput", "run_helper"]

_SECONDS = 20.0
_MAX_OUTPUT_BYTES = 64 << 10
_LIMITS = ProcessLimits(memory_bytes=None, file_bytes=64 << 20, output_bytes=_MAX_OUTPUT_BYTES)
_LAUNCH = 'exec "$@" >"$0" 2>/dev/null'
"""The output goes to a file: an agent that a helper starts in its own session could hold a pipe open for any time."""


@dataclass(frozen=True, slots=True)
class HelperOutput:
    """Output of a helper; the representation does not contain it.

    Args:
        status: The exit status.
        text: The standard output.
    """

    status: int
    text: str = field(repr=False)


async def run_helper(
    arguments: Sequence[str], text: str, *, environment: Mapping[str, str], name: str, seconds: float = _SECONDS
) -> HelperOutput:
    """Run a helper with the user's environment; a cancellation ends it with its child processes.

    Args:
        arguments: The program and its arguments.
        text: Its standard input.
        environment: The user's environment.
        name: The name of the helper in messages.
        seconds: Time limit in seconds.

    Raises:
        UnusableCredentialError: It does not exist, does not end in time, or prints too much.
    """
    if shutil.which(arguments[0], path=environment.get("PATH")) is None:
        raise UnusableCredentialError(f"{name}: no such program; install it, or remove it from the configuration")
    # After a kill, the next command removes the folder with the others of this package.
    with closing(LockedFolder(Path(tempfile.gettempdir()))) as folder:
        request = folder.path / "request"
        request.write_text(text)
        response, path = _create_file(folder.path)
        try:
            async with asyncio.timeout(seconds):
                # Outside of every repository, whose configuration could name other programs.
                finished = await run_process(
                    ["/bin/sh", "-c", _LAUNCH, path, *arguments],
                    environment=environment,
                    folder=Path("/"),
                    limits=_LIMITS,
                    input_path=str(request),
                )
        except TimeoutError:
            raise UnusableCredentialError(f"{name}: expected a result within {seconds:g} s, found none") from None
        except ResolutionError as error:
            raise UnusableCredentialError(f"{name}: {error.message}") from None
        else:
            output = os.pread(response, _MAX_OUTPUT_BYTES + 1, 0)
        finally:
            os.close(response)
    if len(output) > _MAX_OUTPUT_BYTES:
        raise UnusableCredentialError(f"{name}: expected at most {_MAX_OUTPUT_BYTES} bytes of output, found more")
    return HelperOutput(finished.status, output.decode("utf-8", "replace"))


def _create_file(folder: Path) -> tuple[int, str]:
    """Return a file for a secret, and its path: in memory on Linux, otherwise in a private folder."""
    if hasattr(os, "memfd_create"):
        created = os.memfd_create("konverge-helper", os.MFD_CLOEXEC)
        return created, f"/proc/{os.getpid()}/fd/{created}"
    path = folder / "response"
    return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600), str(path)

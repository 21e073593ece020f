"""Files of the user with credentials: read within a limit, and named in messages as the user writes them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

__all__ = ["UnusableCredentialError", "find_home", "format_path", "read_user_file"]

_MAX_BYTES = 1 << 20


class UnusableCredentialError(Exception):
    """A place with credentials that cannot be used; the message names the place and contains no value."""


def find_home(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder."""
    home = environment.get("HOME", "")
    try:
        return Path(home) if home else Path("~").expanduser()
    except RuntimeError:  # an account without an entry, as in many containers
        return Path("/")


def format_path(path: Path, home: Path) -> str:
    """Return a path for messages, with ``~`` for the home folder."""
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def read_user_file(path: Path, name: str) -> bytes | None:
    """Return the content of a file; None if it does not exist.

    Args:
        path: The file.
        name: Its name in messages.

    Raises:
        UnusableCredentialError: It cannot be read, or is larger than 1 MiB.
    """
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer would block
        with os.fdopen(opened, "rb") as file:
            if not stat.S_ISREG(os.fstat(opened).st_mode):
                raise UnusableCredentialError(f"{name}: expected a regular file")
            data = file.read(_MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnusableCredentialError(f"{name}: {error.strerror}") from None
    if len(data) > _MAX_BYTES:
        raise UnusableCredentialError(f"{name}: expected at most {_MAX_BYTES} bytes, found more")
    return data

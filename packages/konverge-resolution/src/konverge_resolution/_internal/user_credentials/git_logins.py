"""Logins for repositories over HTTP from git's credential helpers."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from konverge_resolution._internal.user_access import UserLogin
from konverge_resolution._internal.user_credentials.helper_programs import run_helper
from konverge_resolution._internal.user_credentials.user_files import UnusableCredentialError

__all__ = ["SOURCE", "find_helper_login"]

SOURCE = "git's credential helpers"
"""Name of the place in messages."""

_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GCM_INTERACTIVE": "never"}
"""No helper may open a prompt: the command may run without a person."""
_REPOSITORY_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE")


async def find_helper_login(url: str, environment: Mapping[str, str]) -> UserLogin | None:
    """Return the login that ``git credential fill`` gets from the user's helpers; None without one.

    Args:
        url: The address of the repository.
        environment: The user's environment.

    Raises:
        UnusableCredentialError: There is no git, or a helper does not end in time.
    """
    user_environment = {name: value for name, value in environment.items() if name not in _REPOSITORY_VARIABLES}
    parts = urlsplit(url)
    request = f"protocol={parts.scheme}\nhost={parts.netloc}\npath={parts.path.strip('/')}\n\n"
    command = ["git", "-c", "core.askPass=", "-c", "credential.interactive=false", "credential", "fill"]
    output = await run_helper(command, request, environment=user_environment | _QUIET, name=SOURCE)
    if output.status:
        return None  # no helper has one, and git must not prompt for it
    found = {name: value for name, _, value in (line.partition("=") for line in output.text.splitlines())}
    user, password = found.get("username", ""), found.get("password", "")
    if not user or not password:
        return None
    if ":" in user or not (user.isprintable() and password.isprintable()):
        raise UnusableCredentialError(f"{SOURCE}: expected a user without a colon and a password, found others")
    return UserLogin(user, password, SOURCE)

"""What git is told: its whole environment, its configuration and its arguments. Pure.

All configuration comes from here, in the environment of the process; no file of the machine, of a user or of a
repository has a say. A credential is in that environment, scoped to one origin, and never in an argument.
"""

from __future__ import annotations

import os
import shlex
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from konverge_resolution.network import Proxy
from konverge_resolution.network.allowed_networks import is_address
from konverge_resolution.resolvers.git.credentials import GitCredential
from konverge_resolution.resolvers.git.remotes import Remote

__all__ = [
    "GitConnection",
    "build_environment",
    "build_repository_files",
    "build_ssh_command",
    "cat_file",
    "fetch",
    "get_program_path",
    "git_version",
    "list_folder",
    "list_references",
    "ls_entry",
    "ls_remote",
    "ls_tree",
]

KEY, KNOWN_HOSTS, CERTIFICATES, INPUT, REPOSITORY = "key", "known_hosts", "certificates", "input", "repository"
"""Files of the private folder."""

_NOWHERE = "/dev/null"
_LARGE_FILE = "1m"
_CONFIGURATION = {
    "protocol.allow": "never",
    "protocol.version": "2",
    # git sends what it has to whatever host an answer to its first request redirects to
    "http.followRedirects": "false",
    "http.proxy": "",
    "http.sslVerify": "true",
    "http.delegation": "none",
    "credential.helper": "",
    "core.askPass": "",
    "core.hooksPath": _NOWHERE,
    "core.attributesFile": _NOWHERE,
    "core.fsmonitor": "false",
    # a blob of 300 MB of zeros is 300 kB on the wire; from this size on, it is never in memory as a whole
    "core.bigFileThreshold": _LARGE_FILE,
    "core.packedGitWindowSize": "16m",
    "core.packedGitLimit": "64m",
    "core.deltaBaseCacheLimit": "16m",
    "core.fsync": "none",  # the folder does not outlive the process
    "pack.threads": "1",
    "index.threads": "1",
    # always one file, whose size is bounded, in place of many
    "fetch.unpackLimit": "1",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
}


@dataclass(frozen=True, slots=True)
class GitConnection:
    """How one repository is reached.

    Args:
        remote: The repository.
        addresses: Those of its host that were checked; git connects to no other.
        credential: What it is asked with.
        certificates: Whether there is a file with authorities that are trusted besides the machine's.
        proxy: Who connects instead; the addresses are its own then.
    """

    remote: Remote
    addresses: tuple[str, ...]
    credential: GitCredential
    certificates: bool = False
    proxy: Proxy | None = None


def build_environment(connection: GitConnection, folder: Path, *, is_filtered: bool = True) -> dict[str, str]:
    """All of git's environment; that of this process is not passed on, except for the path of programs.

    Args:
        connection: How the repository is reached.
        folder: The private folder.
        is_filtered: Whether only what is read is fetched.
    """
    remote = connection.remote
    configuration = {
        **_CONFIGURATION,
        f"protocol.{remote.scheme}.allow": "always",
        "remote.origin.url": remote.url,
        "remote.origin.tagOpt": "--no-tags",
    }
    if is_filtered:
        configuration |= {"remote.origin.promisor": "true", "remote.origin.partialCloneFilter": "blob:none"}
    if connection.certificates:
        configuration["http.sslCAInfo"] = str(folder / CERTIFICATES)
        if (machines := ssl.get_default_verify_paths().capath) is not None:
            configuration["http.sslCAPath"] = machines
    reached = remote.host, remote.port
    if connection.proxy is not None:
        configuration |= {"http.proxy": connection.proxy.url_with_user, "http.proxyAuthMethod": "basic"}
        reached = connection.proxy.address
    if remote.scheme != "ssh" and not is_address(reached[0]):
        pinned = ",".join(f"[{each}]" if ":" in each else each for each in connection.addresses)
        configuration["http.curloptResolve"] = f"{reached[0]}:{reached[1]}:{pinned}"
    if connection.credential.header:
        # Of the most specific URL only; nothing else that git may connect to is shown it.
        configuration[f"http.{remote.origin}/.extraHeader"] = f"Authorization: {connection.credential.header}"
    found = {
        "PATH": get_program_path(),
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "LC_ALL": "C",
        "GIT_DIR": str(folder / REPOSITORY),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": _NOWHERE,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_CONFIG_COUNT": str(len(configuration)),
    }
    for number, (key, value) in enumerate(configuration.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    if remote.scheme == "ssh":
        found |= {"GIT_SSH_COMMAND": shlex.join(build_ssh_command(connection, folder)), "GIT_SSH_VARIANT": "ssh"}
    return found


def get_program_path() -> str:
    """Where git and ssh are looked for."""
    return os.environ.get("PATH", os.defpath)


def build_ssh_command(connection: GitConnection, folder: Path) -> Sequence[str]:
    """How ssh is started: with the Secret's key and host keys, to the address that was checked, and no more.

    Args:
        connection: How the repository is reached.
        folder: The private folder, with the key and the host keys.
    """
    remote = connection.remote
    host = remote.host if remote.port == 22 else f"[{remote.host}]:{remote.port}"  # as known_hosts writes it
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "UserKnownHostsFile": str(folder / KNOWN_HOSTS),
        "GlobalKnownHostsFile": _NOWHERE,
        "HostKeyAlias": host,
        "HostName": connection.addresses[0],
        "CheckHostIP": "no",
        "UpdateHostKeys": "no",
        "CanonicalizeHostname": "no",
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
        "PreferredAuthentications": "publickey",
        "ClearAllForwardings": "yes",
        "ForwardAgent": "no",
        "ForwardX11": "no",
        "PermitLocalCommand": "no",
        "ProxyCommand": "none",
        "ControlMaster": "no",
        "ControlPath": "none",
        "RequestTTY": "no",
        "LogLevel": "ERROR",
    }
    identity = str(folder / KEY) if connection.credential.private_key else "none"
    command = ["ssh", "-F", _NOWHERE, "-i", identity]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    return command


def build_repository_files(commit: str, *, is_filtered: bool) -> dict[str, str]:
    """The files that make an empty bare repository, by path: what ``git init`` would write, and no more.

    Args:
        commit: What will be fetched; the length of its id says which hash the repository has.
        is_filtered: Whether only what is read is fetched.
    """
    extensions = ["partialClone = origin"] if is_filtered else []
    if len(commit) == 64:
        extensions.append("objectFormat = sha256")
    lines = ["[core]", "repositoryFormatVersion = 1", "bare = true", "[extensions]", *extensions]
    return {"HEAD": "ref: refs/heads/none\n", "config": "\n".join(lines) + "\n"}


def git_version() -> list[str]:
    """Ask git for its version."""
    return ["git", "version"]


def ls_remote(references: Sequence[str]) -> list[str]:
    """Ask for references, those that annotated tags lead to with them."""
    asked = [each for name in references for each in (name, f"{name}^{{}}")]
    return ["git", "ls-remote", "--quiet", "--", "origin", *asked]


def ls_tree(commit: str, path: str) -> list[str]:
    """List a path and the folders that lead to it."""
    parts = path.split("/")
    leading = ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]
    return ["git", "ls-tree", "-t", "-z", "--full-tree", commit, "--", *leading]


def ls_entry(commit: str, path: str) -> list[str]:
    """List the entry at a path, and the folders on the way to it that are none but folders; nothing beside these."""
    return ["git", "ls-tree", "-t", "-z", "--full-tree", commit, "--", path]


def list_folder(commit: str, folder: str) -> list[str]:
    """List the names in a folder.

    Args:
        commit: The commit's id.
        folder: Which; empty for the root.
    """
    return ["git", "ls-tree", "-z", "--name-only", f"{commit}:{folder}"]


def list_references() -> list[str]:
    """Ask for all branches and tags."""
    return ["git", "ls-remote", "--quiet", "--heads", "--tags", "--refs", "--", "origin"]


def fetch(commit: str, *, is_filtered: bool) -> list[str]:
    """Fetch one commit.

    Args:
        commit: Its id.
        is_filtered: Whether the files in it are left out.
    """
    options = ["--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    options += ["--no-recurse-submodules"]
    options += ["--filter=blob:none"] if is_filtered else ["--refetch", "--no-filter"]
    return ["git", "fetch", *options, "--", "origin", commit]


def cat_file() -> list[str]:
    """Read what is named on standard input; what is missing is fetched."""
    return ["git", "cat-file", "--batch", "--follow-symlinks"]

"""Environment, configuration and arguments of git. Pure.

All configuration comes from here, in the environment of the process; files of the machine, of users and of repositories
are ignored. A credential is in that environment, scoped to one origin, and never in an argument.
"""

from __future__ import annotations

import os
import shlex
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from konverge_resolution._internal.network import Proxy
from konverge_resolution._internal.network.allowed_networks import is_address
from konverge_resolution._internal.resolvers.git.credentials import GitCredential
from konverge_resolution._internal.resolvers.git.remotes import Remote
from konverge_resolution._internal.user_access import SshAccess

__all__ = [
    "GitConnection",
    "build_environment",
    "build_repository_files",
    "build_ssh_command",
    "cat_file",
    "fetch",
    "fetch_history",
    "get_program_path",
    "git_version",
    "list_commits",
    "list_files",
    "list_folder",
    "list_references",
    "list_tags",
    "ls_entry",
    "ls_remote",
    "ls_tree",
]

KEY, KNOWN_HOSTS, CERTIFICATES, INPUT, REPOSITORY = "key", "known_hosts", "certificates", "input", "repository"
"""Names of the files in the private folder."""

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
    """Connection to one repository.

    Args:
        remote: The repository.
        addresses: The checked addresses of its host; git connects to no other.
        credential: The credential.
        certificates: Whether there is a file with authorities besides those of the system.
        proxy: The proxy; then the addresses are those of the proxy.
    """

    remote: Remote
    addresses: tuple[str, ...]
    credential: GitCredential
    certificates: bool = False
    proxy: Proxy | None = None


def build_environment(connection: GitConnection, folder: Path, *, is_filtered: bool = True) -> dict[str, str]:
    """Return git's whole environment; from this process it receives only the path of programs.

    Args:
        connection: The connection to the repository.
        folder: The private folder.
        is_filtered: Whether only needed files are fetched.
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
        pinned = ",".join(f"[{address}]" if ":" in address else address for address in connection.addresses)
        configuration["http.curloptResolve"] = f"{reached[0]}:{reached[1]}:{pinned}"
    if connection.credential.header:
        # Scoped to the most specific URL: git sends it to no other server.
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
    """Return the search path for git and ssh."""
    return os.environ.get("PATH", os.defpath)


def build_ssh_command(connection: GitConnection, folder: Path) -> Sequence[str]:
    """Return the ssh command, limited to the keys and host keys of the Secret or of the user, and the checked address.

    Args:
        connection: The connection to the repository.
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
    identities = [str(folder / KEY) if connection.credential.private_key else "none"]
    if (access := connection.credential.ssh) is not None:
        options |= _build_user_options(access)
        identities = list(access.identity_files) or identities
    command = ["ssh", "-F", _NOWHERE]
    for identity in identities:
        command += ["-i", identity]
    for name, value in options.items():
        command += ["-o", f"{name}={value}"]
    return command


def _build_user_options(access: SshAccess) -> dict[str, str]:
    host = access.host if access.port == 22 else f"[{access.host}]:{access.port}"
    options = {
        "UserKnownHostsFile": " ".join(access.known_hosts_files) or _NOWHERE,
        "HostKeyAlias": access.host_key_alias or host,
        "IdentitiesOnly": "yes" if access.is_limited_to_files else "no",
        "IdentityAgent": access.agent.replace("%", "%%") or "none",
        "Port": str(access.port),
    }
    return options | ({"User": access.user} if access.user else {})


def build_repository_files(commit: str, *, is_filtered: bool) -> dict[str, str]:
    """Return the files of an empty bare repository by path: only what ``git init`` would need to write.

    Args:
        commit: The commit to fetch; the length of its id determines the hash of the repository.
        is_filtered: Whether only needed files are fetched.
    """
    extensions = ["partialClone = origin"] if is_filtered else []
    if len(commit) == 64:
        extensions.append("objectFormat = sha256")
    lines = ["[core]", "repositoryFormatVersion = 1", "bare = true", "[extensions]", *extensions]
    return {"HEAD": "ref: refs/heads/none\n", "config": "\n".join(lines) + "\n"}


def git_version() -> list[str]:
    """Return the command for git's version."""
    return ["git", "version"]


def ls_remote(references: Sequence[str]) -> list[str]:
    """Return the command for references, including the targets of annotated tags."""
    asked = [each for name in references for each in (name, f"{name}^{{}}")]
    return ["git", "ls-remote", "--quiet", "--", "origin", *asked]


def ls_tree(commit: str, path: str) -> list[str]:
    """Return the command that lists a path and its parent folders."""
    parts = path.split("/")
    leading = ["/".join(parts[:number]) for number in range(1, len(parts) + 1)]
    return ["git", "ls-tree", "-t", "-z", "--full-tree", commit, "--", *leading]


def ls_entry(commit: str, path: str) -> list[str]:
    """Return the command that lists the entry at a path, and real folders on the way to it."""
    return ["git", "ls-tree", "-t", "-z", "--full-tree", commit, "--", path]


def list_folder(commit: str, folder: str) -> list[str]:
    """Return the command that lists the names in a folder.

    Args:
        commit: The id of the commit.
        folder: The folder; empty for the root.
    """
    return ["git", "ls-tree", "-z", "--name-only", f"{commit}:{folder}"]


def list_files(commit: str) -> list[str]:
    """Return the command that lists all files of a commit."""
    return ["git", "ls-tree", "-r", "-z", "--full-tree", commit]


def list_references() -> list[str]:
    """Return the command for all branches and tags."""
    return ["git", "ls-remote", "--quiet", "--heads", "--tags", "--refs", "--", "origin"]


def list_tags() -> list[str]:
    """Return the command for all tags, including the targets of annotated ones."""
    return ["git", "ls-remote", "--quiet", "--tags", "--", "origin"]


def fetch_history() -> list[str]:
    """Return the command that fetches the commits of all branches and tags, without their files."""
    options = ["--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules"]
    references = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
    return ["git", "fetch", *options, "--filter=tree:0", "--", "origin", *references]


def list_commits() -> list[str]:
    """Return the command that lists the ids of all commits of the fetched branches and tags."""
    return ["git", "rev-list", "--all"]


def fetch(commit: str, *, is_filtered: bool) -> list[str]:
    """Return the command that fetches one commit.

    Args:
        commit: The id of the commit.
        is_filtered: Whether its files are omitted.
    """
    options = ["--quiet", "--depth=1", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"]
    options += ["--no-recurse-submodules"]
    options += ["--filter=blob:none"] if is_filtered else ["--refetch", "--no-filter"]
    return ["git", "fetch", *options, "--", "origin", commit]


def cat_file() -> list[str]:
    """Return the command that reads the objects on standard input; missing ones are fetched."""
    return ["git", "cat-file", "--batch", "--follow-symlinks"]

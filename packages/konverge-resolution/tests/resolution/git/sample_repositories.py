"""Repositories for the tests, made by git itself; and what the resolver is given in them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from konverge.clock import SystemClock
from konverge_resolution import FetchRequest, Reason, ResolutionError, ResolvedContent, Services
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.git import GitResolver
from konverge_resolution._internal.resolvers.git.process_runner import ProcessLimits
from konverge_resolution._internal.workspaces import TemporaryFolders
from tests.resolution.servers.git import git

__all__ = [
    "BOX",
    "LIMITS",
    "PATH",
    "Loopback",
    "SampleRepositories",
    "Secrets",
    "build_fetch",
    "list_files",
    "list_processes",
    "make_samples",
    "read_files",
    "resolve",
]

LIMITS = ProcessLimits(memory_bytes=1 << 30, file_bytes=1 << 20, output_bytes=1 << 16)
PATH = {"PATH": os.environ["PATH"]}
BOX = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@dataclass(frozen=True)
class SampleRepositories:
    """What is in the repositories below `root`.

    Args:
        root: Their folder: ``boxes.git``, ``strict.git`` (does not filter), ``sha256.git``.
        commit: Of ``main`` in ``boxes.git``.
        first: The commit before it.
        deleted: A commit whose branch is gone.
        tag_object: The annotated tag's own id.
        sha256: The commit of ``sha256.git``.
        marker: A file that appears when anything of a repository is run.
    """

    root: Path
    commit: str
    first: str
    deleted: str
    tag_object: str
    sha256: str
    marker: Path


def make_samples(root: Path) -> SampleRepositories:
    """Make the repositories."""
    work, marker = root / "work", root / "ran"
    (work / "deep/er").mkdir(parents=True)
    git("init", "--quiet", folder=work)
    (work / "box.yaml").write_text(BOX)
    (work / "deep/er/box.yaml").write_text(BOX.replace("a}", "deep}"))
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("tag", "v1", folder=work)
    git("branch", "release/1.0", folder=work)
    git("tag", "abcdef12", folder=work)
    first = git("rev-parse", "HEAD", folder=work)
    _add_hostile_files(work, marker)
    (work / "box.yaml").write_text(BOX.replace("a}", "b}"))
    (work / "large.bin").write_bytes(hashlib.shake_256(b"a").digest(6 << 20))  # nothing of it can be packed
    (work / "zeros.bin").write_bytes(bytes(64 << 20))
    git("add", ".", folder=work)
    git("update-index", "--add", "--cacheinfo", f"160000,{first},module", folder=work)
    git("commit", "--quiet", "-m", "two", folder=work)
    git("tag", "-a", "-m", "two", "v2", folder=work)
    commit, tag_object = git("rev-parse", "HEAD", folder=work), git("rev-parse", "v2", folder=work)
    git("checkout", "--quiet", "-b", "gone", folder=work)
    git("commit", "--quiet", "--allow-empty", "-m", "three", folder=work)
    deleted = git("rev-parse", "HEAD", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(root / "boxes.git"), folder=root)
    boxes = root / "boxes.git"
    git("branch", "-D", "gone", folder=boxes)
    git("symbolic-ref", "HEAD", "refs/heads/main", folder=boxes)
    git("clone", "--quiet", "--bare", str(boxes), str(root / "strict.git"), folder=root)
    git("config", "uploadpack.allowFilter", "true", folder=boxes)
    return SampleRepositories(root, commit, first, deleted, tag_object, _sha256(root), marker)


def _add_hostile_files(work: Path, marker: Path) -> None:
    """Links in all directions, and everything that makes a git that checks out run something."""
    for name, target in {
        "inside": "deep/er/box.yaml",
        "deep/up": "../box.yaml",
        "folder": "deep",
        "passwd": "/etc/passwd",
        "above": "../../..",
        "etc": "/etc",
        "one": "two",
        "two": "one",
        "nowhere": "missing.yaml",
        **{f"chain{number}": f"chain{number + 1}" for number in range(50)},
        "chain50": "box.yaml",
    }.items():
        (work / name).symlink_to(target)
    (work / "filtered.yaml").write_text("kind: Stored\n")
    (work / "windows.yaml").write_bytes(b"kind: Lines\n")
    (work / "pointer.yaml").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
    (work / ".gitattributes").write_text("filtered.yaml filter=evil\npointer.yaml filter=lfs\nwindows.yaml text\n")
    (work / ".gitmodules").write_text(f'[submodule "module"]\n\tpath = module\n\turl = file://{marker.parent}/work\n')
    (work / ".lfsconfig").write_text("[lfs]\n\turl = http://127.0.0.1:1/\n")
    (work / "hooks").mkdir()
    (work / "hooks/post-checkout").write_text(f"#!/bin/sh\ntouch {marker}\n")
    (work / "hooks/post-checkout").chmod(0o755)
    (work / "a file.yaml").write_text("kind: Blank\n")


def _sha256(root: Path) -> str:
    work = root / "work256"
    work.mkdir()
    git("init", "--quiet", "--object-format=sha256", folder=work)
    (work / "box.yaml").write_text(BOX)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(root / "sha256.git"), folder=root)
    git("config", "uploadpack.allowFilter", "true", folder=root / "sha256.git")
    return git("rev-parse", "HEAD", folder=work)


@dataclass
class Loopback:
    """Every name is the loopback interface, but for those that are not allowed; nothing else resolves them so."""

    denied: frozenset[str] = frozenset()
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def resolve_permitted(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append((host, port))
        if host in self.denied:
            raise ResolutionError(Reason.DENIED, f"host {host} has no address that may be connected to")
        return ("127.0.0.1",)


@dataclass
class Secrets:
    """The Secrets of one namespace."""

    found: Mapping[str, Mapping[str, bytes]] = field(default_factory=dict)

    async def read_value(self, name: str, key: str) -> str:
        try:
            return self.found[name][key].decode()
        except KeyError:
            raise _no_secret() from None

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        try:
            return self.found[name]
        except KeyError:
            raise _no_secret() from None

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        return ()


def _no_secret() -> ResolutionError:
    return ResolutionError(Reason.AUTHENTICATION_REQUIRED, "the Secret that the parameters name cannot be read")


def build_fetch(
    folder: Path,
    params: Mapping[str, str],
    *,
    settings: Mapping[str, str] | None = None,
    secrets: Mapping[str, Mapping[str, bytes]] | None = None,
    addresses: Any = None,
    http: Any = None,
) -> FetchRequest:
    """A checked fetch with services of the test; folders are made below `folder`."""
    resolver = GitResolver()
    defaults, mistakes = parse_settings(settings or {}, resolver.settings)
    assert not mistakes
    found = defaults.select()
    services = Services(
        http=http,
        secrets=Secrets(secrets or {}),
        workspaces=TemporaryFolders(SystemClock(), folder),
        clock=SystemClock(),
        addresses=addresses or Loopback(),
    )
    return FetchRequest(resolver.validate(params, found), found, "web", "", 60, services)


async def resolve(fetch: FetchRequest) -> ResolvedContent:
    """As the engine does it: find out the commit, then get the file."""
    resolver = GitResolver()
    pinned = await resolver.pin(fetch)
    assert pinned is not None
    return await resolver.resolve(replace(fetch, params=pinned))


def list_files(folder: Path) -> list[str]:
    """The names of all files below a folder."""
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def read_files(folder: Path) -> list[str]:
    """What is in all files below a folder."""
    return [path.read_text("latin-1") for path in folder.rglob("*") if path.is_file()]


def list_processes(folder: Path) -> list[str]:
    """The command lines of all processes that run below a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "cwd").startswith(str(folder)):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue  # it has ended
    return found

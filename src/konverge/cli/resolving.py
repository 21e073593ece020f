"""What ``konverge resolve`` does: with an engine, a reference, a lock file; and what it prints."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import click

from konverge.cli.counted import counted
from konverge.cli.resolve_flags import Flags, read_file
from konverge.client.connect import connect
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from konverge.resolution.content_folder import ContentFolder, content_folder_of, replace_file
from konverge.resolution.engine import Engine, Outcome, Requester
from konverge.resolution.failover import Resolves
from konverge.resolution.local import local_engine
from konverge.resolution.lock import MAX_LOCK_BYTES, Lock
from konverge.resolution.locking import LockedDefinitions
from konverge.resolution.reference import Digest, Reference
from konverge.resolution.resolvers import standard_resolvers
from konverge.resolution.services import ClusterObjects
from konverge.resolution.tree import Node, resolve_tree
from konverge.resolution.written import WrittenReference

__all__ = ["fetch_all", "lock_roots", "resolve_one"]


@asynccontextmanager
async def _engine(flags: Flags, resolvers: set[str]) -> AsyncIterator[Engine]:
    clock = SystemClock()
    setup = flags.setup
    async with AsyncExitStack() as stack:
        if flags.kubeconfig is not None:
            user_agent = f"konverge/{version('konverge')} (resolve)"
            client = connect(*flags.kubeconfig, user_agent=user_agent, clock=clock)
            await stack.enter_async_context(client)
            setup = replace(setup, cluster=ClusterObjects(client))
        yield await stack.enter_async_context(local_engine(standard_resolvers(resolvers or None), setup, clock=clock))


async def _tree(flags: Flags, engine: Engine, source: Resolves, roots: Sequence[WrittenReference]) -> list[Node]:
    """These and everything that they refer to, within the time that there is."""
    requester = Requester(flags.namespace)
    return await resolve_tree(source, engine.registry, roots, requester, clock=SystemClock(), seconds=flags.seconds)


async def resolve_one(flags: Flags) -> bytes:
    """Get what the reference names, and lock it where that is wanted; answers what to print.

    Raises:
        ResolutionError: There is no result.
    """
    assert flags.reference is not None
    if flags.lock_file is None:
        async with _engine(flags, {flags.reference.resolver}) as engine:
            outcome = await engine.resolve(flags.reference, Requester(flags.namespace), seconds=flags.seconds)
        _warn(outcome)
        return _shown(outcome, flags.output)
    lock = _lock(flags.lock_file, may_be_absent=not flags.is_offline)
    contents = ContentFolder(flags.content)
    async with _engine(flags, set()) as engine:
        before = Lock() if flags.is_update else lock
        source = LockedDefinitions(
            engine, before, contents, is_offline=flags.is_offline, may_add=True, is_verifying=flags.is_verifying
        )
        nodes = await _tree(flags, engine, source, [WrittenReference((flags.reference,))])
        found = source.lock
        if flags.is_update:
            # What other roots need stays as it was; what nobody needs any more goes.
            others = LockedDefinitions(engine, lock, contents, is_asked_by_lock=True)
            this = others.find(flags.reference)
            roots = [WrittenReference((entry.asked,)) for entry in lock if entry.root and entry is not this]
            if roots:
                await _tree(flags, engine, others, roots)
            found = Lock([*others.used, *source.used])
    found = _with_roots(found, source, [flags.reference])
    if not flags.is_offline:
        _write(flags, flags.lock_file, found, before=lock)
    _tell(nodes)
    return _shown(nodes[0].answer.outcome, flags.output)


async def fetch_all(flags: Flags) -> bytes:
    """Have the content of everything that is locked; with ``--update`` lock what its roots are now.

    Raises:
        ResolutionError: Some of it cannot be had.
    """
    assert flags.lock_file is not None
    lock = _lock(flags.lock_file, may_be_absent=False)
    requester = Requester(flags.namespace)
    contents = ContentFolder(flags.content)
    async with _engine(flags, set()) as engine:
        if not flags.is_update:
            source = LockedDefinitions(
                engine,
                lock,
                contents,
                is_offline=flags.is_offline,
                is_asked_by_lock=True,
                is_verifying=flags.is_verifying,
            )
            asked = (source.resolve(entry.asked, requester, seconds=flags.seconds) for entry in lock)
            answers = await asyncio.gather(*asked, return_exceptions=True)
            failures = [each for each in answers if isinstance(each, BaseException)]
            for failure in failures[1:]:
                click.echo(f"konverge: {failure}", err=True)
            if failures:
                raise failures[0]
            click.echo(f"{flags.lock_file}: {_entries(lock)}, all in {flags.content}", err=True)
            return b""
        updating = LockedDefinitions(engine, Lock(file=lock.file), contents, may_add=True, is_asked_by_lock=True)
        roots = [entry.asked for entry in lock if entry.root]
        nodes = await _tree(flags, engine, updating, [WrittenReference((each,)) for each in roots])
    _write(flags, flags.lock_file, _with_roots(updating.lock, updating, roots), before=lock)
    _tell(nodes)
    return b""


async def lock_roots(flags: Flags, roots: Sequence[WrittenReference]) -> None:
    """Lock what these come to and everything that it refers to, and nothing else.

    Raises:
        ResolutionError: Something of it cannot be had.
    """
    assert flags.lock_file is not None
    lock = _lock(flags.lock_file, may_be_absent=True)
    async with _engine(flags, set()) as engine:
        before = Lock() if flags.is_update else lock
        source = LockedDefinitions(
            engine,
            before,
            ContentFolder(flags.content),
            is_offline=flags.is_offline,
            may_add=True,
            is_verifying=flags.is_verifying,
        )
        nodes = await _tree(flags, engine, source, roots)
    found = _with_roots(source.used, source, [node.reference for node in nodes if node.parent is None])
    if not flags.is_offline:
        _write(flags, flags.lock_file, found, before=lock)
    _tell(nodes)


def _with_roots(lock: Lock, source: LockedDefinitions, roots: Sequence[Reference]) -> Lock:
    """The same, where these were asked for by themselves; of two that mean the same one is there."""
    for root in roots:
        entry = source.find(root)
        assert entry is not None, "a root is locked before it is marked"
        lock = lock.with_root(entry.asked)
    return lock


def _lock(file: Path, *, may_be_absent: bool) -> Lock:
    if may_be_absent and not file.exists():
        return Lock()
    return Lock.read(read_file(file, MAX_LOCK_BYTES), file=str(file))


def _write(flags: Flags, file: Path, lock: Lock, *, before: Lock) -> None:
    """Write the lock file if it has changed, remove content that it does not name, and tell what is new."""
    if lock != before or not file.exists():
        try:
            replace_file(file, lock.text().encode())
        except OSError as error:
            raise ConfigurationError(f"{file}: {error.strerror}") from error
    # Another folder may be that of several lock files. Only now: an interruption may leave too much, never too little.
    if flags.content == content_folder_of(file):
        ContentFolder(flags.content).keep_only(Digest.parse(entry.digest) for entry in lock)
    known, found = ({entry.key: entry.digest for entry in each} for each in (before, lock))
    added, removed = len(found.keys() - known.keys()), len(known.keys() - found.keys())
    changed = sum(found[key] != known[key] for key in found.keys() & known.keys())
    told = f"{file}: {_entries(lock)}, {added} added, {changed} changed"
    click.echo(f"{told}, {removed} removed" if removed else told, err=True)


def _entries(lock: Lock) -> str:
    return counted(len(lock), "entry", "entries")


def _tell(nodes: list[Node]) -> None:
    for node in nodes:
        _warn(node.answer.outcome)


def _warn(outcome: Outcome) -> None:
    for warning in outcome.warnings:
        click.echo(f"konverge: warning: {outcome.resolved.source.uri}: {warning}", err=True)


def _shown(outcome: Outcome, output: Literal["content", "json"]) -> bytes:
    resolved = outcome.resolved
    if output == "content":
        return resolved.data
    source = resolved.source
    record = {
        "resolver": outcome.resolver,
        "source": {"uri": source.uri, "digest": dict(source.digest), "entryPoint": source.entry_point},
        "policySource": outcome.policy_source or source.uri,
        "digest": str(Digest.of(resolved.data)),
        "size": len(resolved.data),
        "fetchedFrom": outcome.fetched_from,
        "attempts": outcome.attempts,
        "pinned": dict(resolved.pinned),
        "annotations": dict(resolved.annotations),
        "policies": list(outcome.policies),
        "warnings": list(outcome.warnings),
        "content": resolved.data.decode(),
    }
    return f"{json.dumps(record, indent=2)}\n".encode()

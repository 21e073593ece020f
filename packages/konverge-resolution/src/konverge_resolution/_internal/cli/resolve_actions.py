"""Actions of ``konverge resolve``: resolve, lock and print."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.exit_codes import format_failure
from konverge._internal.cli.plurals import format_count
from konverge._internal.client.connect import connect
from konverge._internal.message_text import to_printable
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError
from konverge_resolution._internal.cli.progress_display import ProgressDisplay, is_terminal
from konverge_resolution._internal.cli.resolve_flags import ResolveFlags, read_file
from konverge_resolution._internal.cluster_services import ClusterObjectReader
from konverge_resolution._internal.content_store import (
    ContentStore,
    find_content_folder,
    remove_leftovers,
    replace_file,
)
from konverge_resolution._internal.engine import Engine, Requester, ResolutionResult
from konverge_resolution._internal.errors import ResolutionError
from konverge_resolution._internal.local_engine import local_engine
from konverge_resolution._internal.lock_file import MAX_LOCK_BYTES, LockFile
from konverge_resolution._internal.locked_resolver import LockedResolver
from konverge_resolution._internal.reference import Digest, Reference
from konverge_resolution._internal.reference_parsing import ParsedReference
from konverge_resolution._internal.reference_tree import TreeNode, resolve_tree
from konverge_resolution._internal.resolvers import DISK, load_resolvers
from konverge_resolution._internal.source_failover import ReferenceResolver
from konverge_resolution._internal.source_prefix import canonicalize_source

__all__ = ["fetch_all", "list_source", "lock_roots", "resolve_one"]

_MAX_CELL = 253


@asynccontextmanager
async def _open_engine(
    flags: ResolveFlags, resolvers: set[str], roots: Iterable[Reference] = (), *, is_listing: bool = False
) -> AsyncIterator[Engine]:
    """Provide an engine that sends credentials of the user only to the sources of these references.

    Args:
        flags: The options.
        resolvers: The resolvers that may be used; empty for all.
        roots: The references that the user gave. A fetched definition or a lock file gets no credentials.
        is_listing: Whether the definitions of their sources are listed.
    """
    clock = SystemClock()
    setup = flags.setup
    async with AsyncExitStack() as stack:
        if is_terminal(sys.stderr) and not flags.is_verbose:
            display = ProgressDisplay(sys.stderr, clock)
            await stack.enter_async_context(display.updates())
            setup = replace(setup, observer=display)
        if flags.kubeconfig is not None:
            user_agent = f"konverge/{version('konverge')} (resolve)"
            client = connect(*flags.kubeconfig, user_agent=user_agent, clock=clock)
            await stack.enter_async_context(client)
            setup = replace(setup, cluster=ClusterObjectReader(client, is_requester=True))
        engine = await stack.enter_async_context(
            local_engine(load_resolvers(resolvers - {DISK} if resolvers else None), setup, clock=clock)
        )
        requester = Requester(flags.namespace)
        if flags.user_credentials is not None:
            for root in roots:
                with suppress(ResolutionError):  # its resolution raises it again
                    flags.user_credentials.permit_source(engine.check(root, requester, is_listing=is_listing))
        yield engine


async def _resolve_tree(
    flags: ResolveFlags, engine: Engine, source: ReferenceResolver, roots: Sequence[ParsedReference]
) -> list[TreeNode]:
    """Resolve these references and everything that they refer to, within the time limit."""
    requester = Requester(flags.namespace)
    return await resolve_tree(source, engine.registry, roots, requester, clock=SystemClock(), seconds=flags.seconds)


async def resolve_one(flags: ResolveFlags) -> bytes:
    """Resolve one reference and lock it if requested; return the output.

    Raises:
        ResolutionError: There is no result.
    """
    assert flags.reference is not None
    if flags.lock_file is None:
        async with _open_engine(flags, {flags.reference.resolver}, [flags.reference]) as engine:
            outcome = await engine.resolve(flags.reference, Requester(flags.namespace), seconds=flags.seconds)
        _warn(outcome)
        return _format_result(outcome, flags.output)
    lock = _read_lock(flags.lock_file, may_be_absent=not flags.is_offline)
    contents = ContentStore(flags.content)
    async with _open_engine(flags, set(), [flags.reference]) as engine:
        before = LockFile() if flags.is_update else lock
        source = LockedResolver(
            engine, before, contents, is_offline=flags.is_offline, may_add=True, is_verifying=flags.is_verifying
        )
        nodes = await _resolve_tree(flags, engine, source, [ParsedReference((flags.reference,))])
        resolved_lock = source.lock
        if flags.is_update:
            # The entries of other roots stay unchanged; unused entries are removed.
            others = LockedResolver(engine, lock, contents, is_from_lock_file=True)
            replaced = others.find(flags.reference)
            roots = [ParsedReference((entry.reference,)) for entry in lock if entry.root and entry is not replaced]
            if roots:
                await _resolve_tree(flags, engine, others, roots)
            resolved_lock = LockFile([*others.used, *source.used])
        resolved_lock = _with_roots(resolved_lock, source, [flags.reference])
    if not flags.is_offline:
        _write_lock(flags, flags.lock_file, resolved_lock, before=lock)
    _print_warnings(nodes)
    return _format_result(nodes[0].result, flags.output)


async def list_source(flags: ResolveFlags) -> bytes:
    """List the definitions of a source; return the output: one line for each, or JSON.

    Raises:
        ResolutionError: The source cannot be read.
    """
    assert flags.reference is not None
    async with _open_engine(flags, {flags.reference.resolver}, [flags.reference], is_listing=True) as engine:
        listed = await engine.list_definitions(flags.reference, Requester(flags.namespace), seconds=flags.seconds)
    if flags.output == "json":
        records = [
            {"params": dict(each.params), "size": each.size_bytes, "digest": each.digest, **each.details}
            for each in listed
        ]
        return f"{json.dumps(records, indent=2)}\n".encode()
    sizes = ["" if each.size_bytes is None else f"{each.size_bytes} B" for each in listed]
    rows = [
        ("/".join(each.params.values()) or "-", *each.details.values(), size)
        for each, size in zip(listed, sizes, strict=True)
    ]
    return "".join(f"{line}\n" for line in _align_columns(rows)).encode()


def _align_columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows with their columns below each other; names come from the source and can have any character."""
    printable = [[to_printable(cell, _MAX_CELL) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip_longest(*printable, fillvalue="")]
    for row in printable:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()


async def fetch_all(flags: ResolveFlags) -> bytes:
    """Fetch the content of all entries; with ``--update`` lock the current content of the roots.

    Raises:
        ResolutionError: Some content cannot be resolved.
    """
    assert flags.lock_file is not None
    lock = _read_lock(flags.lock_file, may_be_absent=False)
    contents = ContentStore(flags.content)
    if not flags.is_update:
        await _fetch_locked(flags, lock, contents)
        click.echo(f"{flags.lock_file}: {_format_entry_count(lock)}; all content is in {flags.content}", err=True)
        return b""
    async with _open_engine(flags, set()) as engine:
        updating = LockedResolver(engine, LockFile(file=lock.file), contents, may_add=True, is_from_lock_file=True)
        roots = [entry.reference for entry in lock if entry.root]
        nodes = await _resolve_tree(flags, engine, updating, [ParsedReference((root,)) for root in roots])
    _write_lock(flags, flags.lock_file, _with_roots(updating.lock, updating, roots), before=lock)
    _print_warnings(nodes)
    return b""


async def _fetch_locked(flags: ResolveFlags, lock: LockFile, contents: ContentStore) -> None:
    """Fetch all entries; print every failure but the first, which is raised."""
    async with _open_engine(flags, set()) as engine:
        source = LockedResolver(
            engine,
            lock,
            contents,
            is_offline=flags.is_offline,
            is_from_lock_file=True,
            is_verifying=flags.is_verifying,
        )
        requester = Requester(flags.namespace)
        pending = (source.resolve(entry.reference, requester, seconds=flags.seconds) for entry in lock)
        results = await asyncio.gather(*pending, return_exceptions=True)
    failures = [result for result in results if isinstance(result, BaseException)]
    for failure in failures[1:]:
        reason = f"{failure.reason}: " if isinstance(failure, ResolutionError) else ""
        click.echo(f"konverge: {reason}{format_failure(failure)}", err=True)
    if failures:
        raise failures[0]


async def lock_roots(flags: ResolveFlags, roots: Sequence[ParsedReference]) -> None:
    """Lock these references and everything that they refer to, and remove all other entries.

    Raises:
        ResolutionError: A reference cannot be resolved.
    """
    assert flags.lock_file is not None
    lock = _read_lock(flags.lock_file, may_be_absent=True)
    given = [reference for root in roots for reference in root.choices]
    async with _open_engine(flags, set(), given) as engine:
        before = LockFile() if flags.is_update else lock
        source = LockedResolver(
            engine,
            before,
            ContentStore(flags.content),
            is_offline=flags.is_offline,
            may_add=True,
            is_verifying=flags.is_verifying,
        )
        nodes = await _resolve_tree(flags, engine, source, roots)
    used_lock = _with_roots(source.used, source, [node.reference for node in nodes if node.parent is None])
    if not flags.is_offline:
        _write_lock(flags, flags.lock_file, used_lock, before=lock)
    _print_warnings(nodes)


def _with_roots(lock: LockFile, source: LockedResolver, roots: Sequence[Reference]) -> LockFile:
    """Return a copy in which these references are marked as roots; equal references share one entry."""
    for root in roots:
        entry = source.find(root)
        assert entry is not None, "a root is locked before it is marked"
        lock = lock.with_root(entry.reference)
    return lock


def _read_lock(file: Path, *, may_be_absent: bool) -> LockFile:
    if may_be_absent and not file.exists():
        return LockFile()
    return LockFile.parse(read_file(file, MAX_LOCK_BYTES), file=str(file))


def _write_lock(flags: ResolveFlags, file: Path, lock: LockFile, *, before: LockFile) -> None:
    """Write the lock file if it has changed, remove unused content, and print a summary."""
    if lock != before or not file.exists():
        remove_leftovers(file.parent, file.name)
        try:
            replace_file(file, lock.serialize().encode())
        except OSError as error:
            raise ConfigurationError(f"{file}: {error.strerror}") from error
    # Several lock files can share another folder. Removal comes last, so that an interruption never loses content.
    if flags.content == find_content_folder(file):
        ContentStore(flags.content).keep_only(Digest.parse(entry.digest) for entry in lock)
    old, new = ({entry.key: entry.digest for entry in entries} for entries in (before, lock))
    added, removed = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    changed = sum(new[key] != old[key] for key in new.keys() & old.keys())
    message = f"{file}: {_format_entry_count(lock)}, {added} added, {changed} changed"
    click.echo(f"{message}, {removed} removed" if removed else message, err=True)


def _format_entry_count(lock: LockFile) -> str:
    return format_count(len(lock), "entry", "entries")


def _print_warnings(nodes: list[TreeNode]) -> None:
    for node in nodes:
        _warn(node.result)


def _warn(outcome: ResolutionResult) -> None:
    for warning in outcome.warnings:
        click.echo(f"konverge: warning: {outcome.resolved.source.uri}: {warning}", err=True)


def _format_result(outcome: ResolutionResult, output: Literal["content", "json"]) -> bytes:
    resolved = outcome.resolved
    if output == "content":
        return resolved.data
    source = resolved.source
    record = {
        "resolver": outcome.resolver,
        "source": {"uri": source.uri, "digest": dict(source.digest), "entryPoint": source.entry_point},
        "policySource": canonicalize_source(outcome.policy_source or source.uri),
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

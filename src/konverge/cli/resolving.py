"""What ``konverge resolve`` does with its options: an engine, a reference, a lock file, and what is printed."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import click

from konverge.cli.counted import counted
from konverge.cli.yaml_documents import read_objects
from konverge.client.connect import connect
from konverge.clock import SystemClock
from konverge.crd import crd_manifest
from konverge.errors import ConfigurationError
from konverge.kube import Object
from konverge.resolution.content_folder import ContentFolder
from konverge.resolution.engine import Engine, EngineOptions, Outcome, Requester
from konverge.resolution.failover import Resolves
from konverge.resolution.local import CredentialPlace, LocalHints, LocalSetup, local_engine
from konverge.resolution.lock import MAX_LOCK_BYTES, Lock
from konverge.resolution.locking import LockedDefinitions
from konverge.resolution.policy import Policy
from konverge.resolution.reference import Digest, Reference, Value
from konverge.resolution.requests.kinds import ResolutionPolicy
from konverge.resolution.requests.policies import read_policy
from konverge.resolution.resolvers import standard_resolvers
from konverge.resolution.services import ClusterObjects
from konverge.resolution.signatures import SignatureVerifier
from konverge.resolution.tree import Node, resolve_tree
from konverge.resolution.written import WrittenReference

__all__ = ["Flags", "fetch_all", "lock_roots", "resolve_one"]

_MAX_CERTIFICATES = 1 << 20
_HINTS = LocalHints(
    networks="--allow-network CIDR allows one",
    credentials="--credential NAME/KEY=env:VARIABLE or file:PATH",
)


@dataclass(frozen=True, slots=True)
class Flags:
    """What the options say; made by `of`.

    Args:
        reference: What to get; None when there is a lock file alone.
        output: What to print of it.
        namespace: For which namespace policies are asked.
        seconds: How long everything may take.
        lock_file: The lock file; None for none.
        content: Its folder of content.
        is_offline: Ask nobody.
        is_update: Lock what is there now.
        setup: What the engine is set up with.
        kubeconfig: The kubeconfig file and its context, for a cluster; None where none is needed.
    """

    reference: Reference | None
    output: Literal["content", "json"]
    namespace: str
    seconds: float
    lock_file: Path | None
    content: Path
    is_offline: bool
    is_update: bool
    setup: LocalSetup
    kubeconfig: tuple[Path | None, str | None] | None

    @classmethod
    def of(
        cls,
        ctx: click.Context,
        given: Mapping[str, Any],
        resolver: str = "",
        params: Mapping[str, str | None] | None = None,
    ) -> Flags:
        """Read the options.

        Args:
            ctx: The command.
            given: The options of all resolvers.
            resolver: The resolver; empty for none.
            params: Its parameters, None where an option was not given.

        Raises:
            click.UsageError: They do not go together, or one cannot be read.
            konverge.errors.ConfigurationError: A file cannot be used.
        """
        lock_file: Path | None = given["lock_file"]
        for name in ("is_offline", "is_update", "content"):
            if given[name] and lock_file is None:
                raise click.UsageError(f"--{name.removeprefix('is_')} goes with --lock FILE", ctx)
        if given["is_offline"] and given["is_update"]:
            raise click.UsageError("--offline asks nobody, and --update asks what is there now: give one of them", ctx)
        try:
            credentials = tuple(CredentialPlace.parse(each) for each in given["credentials"])
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param_hint="--credential") from None
        settings = _pairs(ctx, "--setting", given["settings"])
        if settings and not resolver:
            raise click.UsageError("--setting is for one resolver: name it", ctx)
        needs_cluster = resolver == "cluster" or given["kubeconfig_file"] or given["context"]
        return cls(
            reference=_reference(ctx, resolver, params or {}, given) if resolver else None,
            output=given.get("output", "content"),
            namespace=given["namespace"],
            seconds=given["seconds"],
            lock_file=lock_file,
            content=given["content"] or Path(f"{lock_file or ''}.d"),
            is_offline=given["is_offline"],
            is_update=given["is_update"],
            setup=LocalSetup(
                settings={resolver: settings} if settings else {},
                policies=tuple(policy for file in given["policy_files"] for policy in _policies(file)),
                credentials=credentials,
                networks=given["networks"],
                certificates=_certificates(given["certificates"]),
                options=EngineOptions(timeout=timedelta(seconds=given["seconds"])),
                verifier=SignatureVerifier(given["trusted_root"]),
                hints=_HINTS,
            ),
            kubeconfig=(given["kubeconfig_file"], given["context"]) if needs_cluster else None,
        )


def _reference(
    ctx: click.Context, resolver: str, params: Mapping[str, str | None], given: Mapping[str, Any]
) -> Reference:
    found: dict[str, Value] = {name: value for name, value in params.items() if value is not None}
    for name, value in _pairs(ctx, "--param", given["parameters"]).items():
        if name in found:
            raise click.UsageError(f"--param {name} is given by an option of its own, too: give one of them", ctx)
        found[name] = value
    try:
        digest = None if given["digest"] is None else Digest.parse(given["digest"])
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param_hint="--digest") from None
    return Reference(resolver, found, digest)


def _pairs(ctx: click.Context, option: str, given: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals or name in found:
            raise click.BadParameter(
                f"expected NAME=VALUE, each name once, found {name[:40]!r}", ctx, param_hint=option
            )
        found[name] = value
    return found


def _policies(file: Path) -> list[Policy]:
    found = []
    for obj in read_objects(file):
        if obj.get("kind") != "ResolutionPolicy":
            raise ConfigurationError(f"{file}: expected ResolutionPolicy objects, found {str(obj.get('kind'))[:80]}")
        if not isinstance(obj.get("metadata"), dict) or not obj["metadata"].get("name"):
            raise ConfigurationError(f"{file}: a ResolutionPolicy has no metadata.name")
        # A server would refuse a field that it does not know; what is misspelt must not be a policy that asks for less.
        if unknown := sorted(_unknown(obj, crd_manifest(ResolutionPolicy)["spec"]["versions"][0]["schema"])):
            raise ConfigurationError(f"{file}: ResolutionPolicy {obj['metadata']['name']}: unknown field {unknown[0]}")
        policy = read_policy(obj)
        if not isinstance(policy, Policy):
            raise ConfigurationError(f"{file}: ResolutionPolicy {policy.scope.name}: {'; '.join(policy.mistakes)}")
        found.append(policy)
    if not found:
        raise ConfigurationError(f"{file}: expected ResolutionPolicy objects, found none")
    return found


def _unknown(obj: Object, schema: Object) -> Iterator[str]:
    """The paths of fields that a definition's schema does not have; of metadata everything is known."""
    pending = [("spec", obj.get("spec"), schema["openAPIV3Schema"]["properties"]["spec"])]
    yield from (name for name in obj if name not in schema["openAPIV3Schema"]["properties"])
    while pending:
        path, value, below = pending.pop()
        if isinstance(value, list) and "items" in below:
            pending += [(f"{path}[{place}]", each, below["items"]) for place, each in enumerate(value)]
        elif isinstance(value, dict) and "properties" in below:
            yield from (f"{path}.{name}" for name in value if name not in below["properties"])
            pending += [
                (f"{path}.{name}", value[name], each) for name, each in below["properties"].items() if name in value
            ]


def _certificates(file: Path | None) -> str:
    return "" if file is None else _read(file, _MAX_CERTIFICATES).decode("utf-8", "replace")


def _read(file: Path, max_bytes: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(max_bytes + 1)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error


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
        source = LockedDefinitions(engine, before, contents, is_offline=flags.is_offline, may_add=True)
        nodes = await _tree(flags, engine, source, [WrittenReference((flags.reference,))])
        found = source.lock
        if flags.is_update:
            # What other roots need stays as it was; what nobody needs any more goes.
            others = LockedDefinitions(engine, lock, contents)
            this = others.find(flags.reference)
            roots = [WrittenReference((entry.asked,)) for entry in lock if entry.root and entry is not this]
            if roots:
                await _tree(flags, engine, others, roots)
            found = Lock([*others.used, *source.used])
    found = _with_roots(found, source, [flags.reference])
    if not flags.is_offline:
        _write(flags.lock_file, found, before=lock)
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
            source = LockedDefinitions(engine, lock, contents, is_offline=flags.is_offline)
            asked = (source.resolve(entry.asked, requester, seconds=flags.seconds) for entry in lock)
            answers = await asyncio.gather(*asked, return_exceptions=True)
            failures = [each for each in answers if isinstance(each, BaseException)]
            for failure in failures[1:]:
                click.echo(f"konverge: {failure}", err=True)
            if failures:
                raise failures[0]
            click.echo(f"{flags.lock_file}: {_entries(lock)}, all in {flags.content}", err=True)
            return b""
        updating = LockedDefinitions(engine, Lock(), contents, may_add=True)
        roots = [entry.asked for entry in lock if entry.root]
        written = [WrittenReference((each,)) for each in roots]
        nodes = await _tree(flags, engine, updating, written)
    found = updating.lock
    found = _with_roots(found, updating, roots)
    _write(flags.lock_file, found, before=lock)
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
            engine, before, ContentFolder(flags.content), is_offline=flags.is_offline, may_add=True
        )
        nodes = await _tree(flags, engine, source, roots)
    found = source.used
    found = _with_roots(found, source, [node.reference for node in nodes if node.parent is None])
    if not flags.is_offline:
        _write(flags.lock_file, found, before=lock)
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
    return Lock.read(_read(file, MAX_LOCK_BYTES), file=str(file))


def _write(file: Path, lock: Lock, *, before: Lock) -> None:
    if lock == before and file.exists():
        return
    try:
        # Beside it and then in its place: who is interrupted has the old one or the new one.
        handle, made = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as opened:
            opened.write(lock.text())
        os.chmod(made, 0o644)
        os.replace(made, file)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from error
    known = {entry.key: entry.digest for entry in before}
    added = sum(entry.key not in known for entry in lock)
    changed = sum(known.get(entry.key, entry.digest) != entry.digest for entry in lock)
    click.echo(f"{file}: {_entries(lock)}, {added} added, {changed} changed", err=True)


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

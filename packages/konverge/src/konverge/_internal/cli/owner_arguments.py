"""The owner argument of a command: ``KIND/NAME`` in a cluster, or a file with the owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge._internal.cli.user_code import call_with_timeout
from konverge._internal.cli.yaml_documents import STDIN, read_objects
from konverge._internal.client import Client
from konverge._internal.client.connect import connect, load_cluster_config
from konverge._internal.crd import find_definition
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge._internal.operator import Operator
from konverge._internal.operator.registrations import OwnerRegistration
from konverge._internal.suggestions import closest_match, did_you_mean
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, KindNotServedError, KonvergeError, NotFoundError

__all__ = ["ClusterFlags", "NamedOwner", "OwnerInFile", "cluster_flags", "find_owner", "read_owner", "run_with_timeout"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_SUFFIXES = (".yaml", ".yml", ".json")
_MAX_LISTED = 5
_LONGEST_SECONDS = 86_400
# Additional wait for the thread after the time limit of its work: the error from inside the thread is more precise.
_THREAD_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NamedOwner:
    """An owner in a cluster, by name."""

    registration: OwnerRegistration
    name: str


@dataclass(frozen=True, slots=True)
class OwnerInFile:
    """An owner from a file."""

    registration: OwnerRegistration
    obj: Object


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """The options for the cluster.

    Args:
        kubeconfig_file: The kubeconfig file; None for the default files.
        context: The context in the kubeconfig; None for the current one.
        namespace: The namespace; None for the namespace of the context.
        timeout_seconds: The time limit for the whole command.
    """

    kubeconfig_file: Path | None
    context: str | None
    namespace: str | None
    timeout_seconds: float

    def get_namespace(self) -> str:
        """Return the namespace for owners without one."""
        return self.namespace or load_cluster_config(self.kubeconfig_file, self.context).namespace

    def connect(self, command: str) -> Client:
        """Return a client for the cluster of the options."""
        user_agent = f"konverge/{version('konverge')} ({command})"
        return connect(self.kubeconfig_file, self.context, user_agent=user_agent, clock=SystemClock())


def cluster_flags(*, timeout_seconds: float = 30.0) -> Callable[[F], F]:
    """Return a decorator that adds the options for the cluster, the namespace and the time limit to a command.

    Args:
        timeout_seconds: The default of the time limit.
    """

    def check_timeout(ctx: click.Context, parameter: click.Parameter, seconds: float) -> float:
        if not 0 < seconds <= _LONGEST_SECONDS:  # also rejects "nan", for which no comparison is true
            raise click.BadParameter(f"expected more than 0 and at most {_LONGEST_SECONDS}, found {seconds:g}")
        return seconds

    def add_options(command: F) -> F:
        for option in (
            click.option("--timeout", "timeout_seconds", type=float, default=timeout_seconds, show_default=True,
                         metavar="SECONDS", callback=check_timeout, help="Time limit for the whole command."),
            click.option("-n", "--namespace",
                         help="Namespace of the owner (default: the namespace of the kubeconfig's context)."),
            click.option("--context", help="Context in the kubeconfig (default: its current context)."),
            click.option("--kubeconfig", "kubeconfig_file", type=click.Path(path_type=Path),
                         help="Kubeconfig file "
                         "(default: KUBECONFIG, then ~/.kube/config, then the Pod's service account)."),
        ):  # fmt: skip
            command = option(command)
        return command

    return add_options


def run_with_timeout(seconds: float, work: Callable[[], Awaitable[T]], activity: str) -> T:
    """Run a coroutine function in a separate event loop with a time limit.

    Args:
        seconds: The time limit.
        work: The coroutine function; it may call code of the author that blocks the loop.
        activity: The description of the work for the error message.

    Raises:
        konverge.errors.KonvergeError: The work did not end within the time limit.
    """
    cancellations: list[Callable[[], object]] = []

    async def run_limited() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        cancellations.append(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            async with asyncio.timeout(seconds):
                return await work()
        except TimeoutError:
            raise KonvergeError(
                f"{activity}: not finished within {seconds:g} s; increase the limit with --timeout"
            ) from None

    def interrupt() -> None:
        with suppress(RuntimeError):  # the loop is already closed
            for cancel in cancellations:
                cancel()

    return call_with_timeout(
        seconds + _THREAD_SECONDS, lambda: asyncio.run(run_limited()), activity, interrupt=interrupt
    )


def find_owner(operator: Operator, text: str) -> NamedOwner | OwnerInFile:
    """Return the owner of the argument: an existing file or pipe, a file by its suffix, or else ``KIND/NAME``.

    Raises:
        konverge.errors.ConfigurationError: The argument is neither, the operator has no such kind, or the file has no
            owner of the operator's kinds or several.
    """
    file = Path(text)
    if file == STDIN or file.suffix in _SUFFIXES or file.is_file() or file.is_fifo():
        return _read_owner_file(operator, file)
    kind, slash, name = text.partition("/")
    if not (slash and kind and name) or "/" in name:
        raise ConfigurationError(f"{text}: expected KIND/NAME or a file with the owner: no such file and no such kind")
    return NamedOwner(_find_registration(operator, kind), name)


def _find_registration(operator: Operator, word: str) -> OwnerRegistration:
    """Return the registration of a resource name as kubectl accepts it: plural, singular or short name."""
    known: dict[str, OwnerRegistration] = {}
    for registration in operator.registered.classes:
        definition = find_definition(registration.cls)
        for name in (definition.singular, definition.plural, *definition.short_names):
            known.setdefault(name, registration)
            known.setdefault(f"{name}.{definition.gvk.group}", registration)
    if word.lower() in known:
        return known[word.lower()]
    kinds = ", ".join(find_definition(registration.cls).gvk.kind for registration in operator.registered.classes)
    raise ConfigurationError(
        f"operator {operator.name}: expected one of its kinds ({kinds or 'none'}), found {word!r}"
        f"{did_you_mean(word, known)}"
    )


def _read_owner_file(operator: Operator, file: Path) -> OwnerInFile:
    by_kind = {find_definition(entry.cls).gvk.group_kind: entry for entry in operator.registered.classes}
    objects = read_objects(file)
    owners = [obj for obj in objects if _parse_gvk(obj, file).group_kind in by_kind]
    if len(owners) != 1:
        expected = " or ".join(kind for _, kind in by_kind) or "owner (the operator has no kinds)"
        kinds = ", ".join(_parse_gvk(obj, file).kind for obj in (owners or objects)[:_MAX_LISTED]) or "nothing"
        raise ConfigurationError(f"{file}: expected one {expected}, found {len(owners) or 'none'} ({kinds})")
    [obj] = owners
    registration = by_kind[_parse_gvk(obj, file).group_kind]
    expected_version = find_definition(registration.cls).gvk.api_version
    if obj["apiVersion"] != expected_version:
        raise ConfigurationError(f"{file}: expected apiVersion {expected_version}, found {obj['apiVersion']}")
    if not ObjectKey.of(obj).name:
        raise ConfigurationError(f"{file}: {obj['kind']}: metadata.name: expected a name, found none")
    return OwnerInFile(registration, obj)


def _parse_gvk(obj: Object, file: Path) -> GroupVersionKind:
    if not isinstance(obj.get("kind"), str) or not isinstance(obj.get("apiVersion"), str):
        raise ConfigurationError(f"{file}: expected objects with apiVersion and kind, found one without")
    return GroupVersionKind.of(obj)


async def read_owner(client: Client, found: NamedOwner, flags: ClusterFlags) -> Object:
    """Read the owner from the cluster.

    Raises:
        konverge.errors.KonvergeError: The owner does not exist; the message lists existing ones.
    """
    definition = find_definition(found.registration.cls)
    key = ObjectKey(flags.get_namespace() if definition.namespaced else "", found.name)
    try:
        return await client.get(definition.gvk, key)
    except KindNotServedError as error:
        raise KindNotServedError(f"{error} (konverge crd prints its definition)") from error
    except NotFoundError as error:
        names = [obj["metadata"]["name"] async for obj in client.items(definition.gvk, namespace=key.namespace)]
        near = closest_match(key.name, names)
        others = [near] if near else names[:_MAX_LISTED]
        where = f" in namespace {key.namespace}" if key.namespace else ""
        existing = f"; existing: {', '.join(others)}" if others else "; there is none of this kind"
        raise KonvergeError(f'{definition.gvk.kind} "{key.name}" not found{where}{existing}') from error

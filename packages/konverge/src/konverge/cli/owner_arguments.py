"""Which owner a command means, and the object: ``KIND/NAME`` in a cluster, or a file that has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge.cli.user_code import call_with_timeout
from konverge.cli.yaml_documents import STDIN, read_objects
from konverge.client import Client
from konverge.client.connect import connect, load_cluster_config
from konverge.clock import SystemClock
from konverge.crd import find_definition
from konverge.errors import ConfigurationError, KindNotServedError, KonvergeError, NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.operator import Operator
from konverge.operator.registrations import OwnerRegistration
from konverge.suggestions import closest_match, did_you_mean

__all__ = ["ClusterFlags", "NamedOwner", "OwnerInFile", "cluster_flags", "find_owner", "read_owner", "run_with_timeout"]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

_SUFFIXES = (".yaml", ".yml", ".json")
_MAX_LISTED = 5
_LONGEST_SECONDS = 86_400
# How much longer a thread is waited for than what it does may take: the message from in there says more.
_THREAD_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class NamedOwner:
    """An owner in a cluster."""

    registration: OwnerRegistration
    name: str


@dataclass(frozen=True, slots=True)
class OwnerInFile:
    """An owner as a file has it."""

    registration: OwnerRegistration
    obj: Object


@dataclass(frozen=True, slots=True)
class ClusterFlags:
    """What the options say of the cluster.

    Args:
        kubeconfig_file: The kubeconfig file; None for the usual ones.
        context: Its context; None for the current one.
        namespace: The namespace; None for the context's.
        timeout_seconds: How long everything may take.
    """

    kubeconfig_file: Path | None
    context: str | None
    namespace: str | None
    timeout_seconds: float

    def get_namespace(self) -> str:
        """The namespace that is meant where none is named."""
        return self.namespace or load_cluster_config(self.kubeconfig_file, self.context).namespace

    def connect(self, command: str) -> Client:
        """A client of the cluster."""
        user_agent = f"konverge/{version('konverge')} ({command})"
        return connect(self.kubeconfig_file, self.context, user_agent=user_agent, clock=SystemClock())


def cluster_flags(command: F) -> F:
    """Give a command the options that say which cluster, which namespace, and how long."""

    def check_timeout(ctx: click.Context, parameter: click.Parameter, seconds: float) -> float:
        if not 0 < seconds <= _LONGEST_SECONDS:  # "nan" is neither above nor below anything
            raise click.BadParameter(f"expected more than 0 and at most {_LONGEST_SECONDS}, found {seconds:g}")
        return seconds

    for option in (
        click.option("--timeout", "timeout_seconds", type=float, default=30.0, show_default=True, metavar="SECONDS",
                     callback=check_timeout, help="Time limit for the whole command."),
        click.option("-n", "--namespace",
                     help="Namespace of the owner (default: the namespace of the kubeconfig's context)."),
        click.option("--context", help="Context in the kubeconfig (default: its current context)."),
        click.option("--kubeconfig", "kubeconfig_file", type=click.Path(path_type=Path),
                     help="Kubeconfig file "
                     "(default: KUBECONFIG, then ~/.kube/config, then the Pod's service account)."),
    ):  # fmt: skip
        command = option(command)
    return command


def run_with_timeout(seconds: float, work: Callable[[], Awaitable[T]], what: str) -> T:
    """Run it in an event loop of its own, for no longer than so long.

    Args:
        seconds: How long.
        work: What to do; it may call an author's code that blocks the loop.
        what: What it is called in the message.

    Raises:
        konverge.errors.KonvergeError: It did not end in time.
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
            raise KonvergeError(f"{what} did not come to an end in {seconds:g} s; --timeout allows more") from None

    def interrupt() -> None:
        with suppress(RuntimeError):  # the loop is closed: it has ended by itself
            for cancel in cancellations:
                cancel()

    return call_with_timeout(seconds + _THREAD_SECONDS, lambda: asyncio.run(run_limited()), what, interrupt=interrupt)


def find_owner(operator: Operator, text: str) -> NamedOwner | OwnerInFile:
    """What the argument means: an existing file or pipe, or a file by its name; anything else is ``KIND/NAME``.

    Raises:
        konverge.errors.ConfigurationError: It is neither, the operator has no such kind, or the file has no owner of
            its kinds or several.
    """
    file = Path(text)
    if file == STDIN or file.suffix in _SUFFIXES or file.is_file() or file.is_fifo():
        return _read_owner_file(operator, file)
    kind, slash, name = text.partition("/")
    if not (slash and kind and name) or "/" in name:
        raise ConfigurationError(f"{text}: expected KIND/NAME, or a file that has the owner; found neither")
    return NamedOwner(_find_registration(operator, kind), name)


def _find_registration(operator: Operator, word: str) -> OwnerRegistration:
    """The class that a word means, as kubectl takes it: its kind, plural, singular or a short name."""
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
        f"operator {operator.name} has no kind {word!r} (it has: {kinds or 'none'}){did_you_mean(word, known)}"
    )


def _read_owner_file(operator: Operator, file: Path) -> OwnerInFile:
    by_kind = {find_definition(found.cls).gvk.group_kind: found for found in operator.registered.classes}
    objects = read_objects(file)
    owners = [obj for obj in objects if _parse_gvk(obj, file).group_kind in by_kind]
    if len(owners) != 1:
        wanted = " or ".join(kind for _, kind in by_kind) or "an owner, of which the operator has no kind"
        kinds = ", ".join(_parse_gvk(obj, file).kind for obj in (owners or objects)[:_MAX_LISTED]) or "nothing"
        raise ConfigurationError(f"{file}: expected one {wanted}, found {len(owners) or 'none'} ({kinds})")
    [obj] = owners
    registration = by_kind[_parse_gvk(obj, file).group_kind]
    wanted_version = find_definition(registration.cls).gvk.api_version
    if obj["apiVersion"] != wanted_version:
        raise ConfigurationError(f"{file}: expected apiVersion {wanted_version}, found {obj['apiVersion']}")
    if not ObjectKey.of(obj).name:
        raise ConfigurationError(f"{file}: the {obj['kind']} has no metadata.name")
    return OwnerInFile(registration, obj)


def _parse_gvk(obj: Object, file: Path) -> GroupVersionKind:
    if not isinstance(obj.get("kind"), str) or not isinstance(obj.get("apiVersion"), str):
        raise ConfigurationError(f"{file}: expected objects with apiVersion and kind, found one without")
    return GroupVersionKind.of(obj)


async def read_owner(client: Client, found: NamedOwner, flags: ClusterFlags) -> Object:
    """The owner as the cluster has it.

    Raises:
        konverge.errors.KonvergeError: There is none; the message says which there are.
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
        there = f"there is {', '.join(others)}" if others else "there is none at all"
        raise KonvergeError(f'no {definition.gvk.kind} "{key.name}"{where}: {there}') from error

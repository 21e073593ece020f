"""``konverge run``: run an operator file against a cluster until a signal."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import click

from konverge._internal.cli.main import is_verbose, verbose_option
from konverge._internal.cli.operator_file import (
    OperatorReference,
    check_file,
    load_operator,
    parse_operator_reference,
)
from konverge._internal.cli.run_options import RunFlags, run_flags
from konverge._internal.cli.signals import abort_on_event, stop_event_on_signal
from konverge._internal.client import Client
from konverge._internal.client.connect import connect
from konverge._internal.crd import crd_manifest, find_definition
from konverge._internal.extras import missing_package
from konverge._internal.kube import GroupVersionKind
from konverge._internal.operator import Operator, RunOptions
from konverge._internal.operator.placeholder_definitions import install_placeholders
from konverge._internal.runtime.log_formatters import LogFormat, install_formatter
from konverge._internal.runtime.shutdown_watchdog import ShutdownWatchdog
from konverge._internal.runtime.start_steps import StartSteps
from konverge.clock import Clock, SystemClock, SystemEntropy
from konverge.errors import KindNotServedError, KonvergeError, NoKubeconfigError

__all__ = ["install_definitions", "process_flags", "run", "run_operator"]

F = TypeVar("F", bound=Callable[..., Any])

_log = logging.getLogger("konverge.cli")

_FIELD_MANAGER = "konverge-run"
_SERVED_SECONDS = 30.0
_POLL_SECONDS = 0.1
_THREADS_SECONDS = 5.0

_LOCAL_CONFLICT = "--local: starts its own cluster; omit --kubeconfig and --context"

_FLAGS = (
    click.option("--kubeconfig", "kubeconfig_file", type=click.Path(path_type=Path),
                 help="Kubeconfig file (default: KUBECONFIG, then ~/.kube/config, then the Pod's service account)."),
    click.option("--context", help="Context in the kubeconfig (default: its current context)."),
    click.option("--local", is_flag=True,
                 help="Start an embedded cluster that ends with the operator; implies --install-crds."),
    click.option("--install-crds", is_flag=True, help="Apply the operator's CustomResourceDefinitions first."),
    click.option("--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True,
                 help="Format of the log."),
    run_flags,
)  # fmt: skip


def process_flags(command: F) -> F:
    """Add the options of every operator process to a command, which passes them to `run_operator`."""
    for option in reversed(_FLAGS):
        command = option(command)
    return command


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.option(
    "--reload",
    "reloads",
    is_flag=True,
    help="Replace the running operator when FILE.py or a file that it imports changes.",
)
@process_flags
@verbose_option
@click.pass_context
def run(ctx: click.Context, /, file: str, reloads: bool, **flags: Any) -> None:
    """Run the operator in FILE.py, or the box in FILE.yaml, until SIGTERM or Ctrl-C.

    At the first signal, running reconciles can finish; a second signal cancels them.
    """
    reference = parse_operator_reference(file)
    if reloads:
        ctx.exit(_run_with_reload(ctx, reference, flags))
    run_operator(ctx, load_operator(reference), **flags)


def run_operator(
    ctx: click.Context,
    operator: Operator,
    *,
    home: str = "",
    kubeconfig_file: Path | None,
    context: str | None,
    local: bool,
    install_crds: bool,
    log_format: LogFormat,
    install_hints: Mapping[GroupVersionKind, str] | None = None,
    installs_placeholders: bool = False,
    before_run: Callable[[], Awaitable[object]] | None = None,
    **flags: Any,
) -> None:
    """Run an operator until the process gets a signal.

    Args:
        ctx: The context of the command.
        operator: The operator.
        home: The namespace of the operator (default: the Pod's namespace).
        kubeconfig_file: The kubeconfig file.
        context: The context in the kubeconfig.
        local: True to start an embedded cluster for the operator.
        install_crds: True to apply the operator's definitions first.
        log_format: The format of the log.
        install_hints: For kinds that the operator does not define: the remedy if the cluster does not serve them.
        installs_placeholders: True to define kinds that the cluster lacks, as `local` does.
        before_run: Is awaited when the cluster is prepared, before the first reconcile.
        **flags: The other options of `process_flags`.
    """
    if local and (kubeconfig_file or context):
        raise click.UsageError(_LOCAL_CONFLICT)
    options = RunFlags(**flags).build_options(operator.name, home)
    _log_to_stderr(log_format, verbose=is_verbose(ctx))
    running = _run(
        operator,
        kubeconfig_file,
        context,
        options,
        local=local,
        install=install_crds or local,
        install_hints=install_hints or {},
        installs_placeholders=local or installs_placeholders,
        before_run=before_run,
    )
    asyncio.run(running)


def _run_with_reload(ctx: click.Context, reference: OperatorReference, flags: dict[str, Any]) -> int:
    if reference.is_box:
        raise click.UsageError("--reload: a running box always reloads its file; omit the option")
    check_file(reference.file)
    if flags["local"] and (flags["kubeconfig_file"] or flags["context"]):
        raise click.UsageError(_LOCAL_CONFLICT)
    RunFlags(**flags).build_options("operator")  # reports invalid options before the first version is loaded
    _log_to_stderr(flags["log_format"], verbose=is_verbose(ctx))
    return asyncio.run(_supervise(reference, flags, verbose=is_verbose(ctx)))


async def _supervise(reference: OperatorReference, flags: dict[str, Any], *, verbose: bool) -> int:
    from konverge._internal.cli.reload import ReloadSupervisor

    clock = SystemClock()
    async with AsyncExitStack() as stack:
        stop_event = stack.enter_context(stop_event_on_signal())
        if flags["local"]:
            kubeconfig = await stack.enter_async_context(_start_cluster(clock))
            flags = {**flags, "local": False, "kubeconfig_file": kubeconfig, "install_crds": True}
            flags["installs_placeholders"] = True
        settings = {"operator": str(reference), "flags": flags, "path": sys.path, "argv": sys.argv, "verbose": verbose}
        return await ReloadSupervisor(reference.file, settings, clock).run(stop_event)


def _log_to_stderr(log_format: LogFormat, *, verbose: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    install_formatter(handler, log_format)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])


async def _run(
    operator: Operator,
    file: Path | None,
    context: str | None,
    options: RunOptions,
    *,
    local: bool,
    install: bool,
    install_hints: Mapping[GroupVersionKind, str],
    installs_placeholders: bool,
    before_run: Callable[[], Awaitable[object]] | None,
) -> None:
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        stop_event = stack.enter_context(stop_event_on_signal())
        if local:
            file = await stack.enter_async_context(_start_cluster(clock))
        user_agent = f"konverge/{version('konverge')} ({operator.name})"
        try:
            client = await stack.enter_async_context(connect(file, context, user_agent=user_agent, clock=clock))
        except NoKubeconfigError as error:
            raise NoKubeconfigError(f"{error} (--local starts a cluster)") from error
        async with asyncio.TaskGroup() as tasks:
            interruption = tasks.create_task(abort_on_event(stop_event))
            steps = StartSteps(clock=clock, entropy=SystemEntropy(), timeout=options.start_timeout)
            if install:
                await steps.run_step(
                    "installing the CustomResourceDefinitions", partial(install_definitions, client, operator, clock)
                )
            if installs_placeholders:
                await steps.run_step(
                    "installing definitions of other kinds", partial(_install_placeholders, client, operator, clock)
                )
            await steps.run_step(
                "discovery of the operator's kinds", partial(_check_served, client, operator, install_hints)
            )
            if before_run is not None:
                await before_run()
            # The operator installs its own signal handlers; until then, a signal interrupts the command.
            await operator.run(client, options, clock=clock, stops_on_signals=True)
            interruption.cancel()
        _log.info("operator %s has stopped", operator.name)
        # A hanging thread of the author's code would keep the interpreter from exiting.
        ShutdownWatchdog().arm(_THREADS_SECONDS, asyncio.get_running_loop())


def _start_cluster(clock: Clock) -> AbstractAsyncContextManager[Path]:
    try:
        from konverge_cluster._internal.cli.run_cluster import run_cluster
    except ImportError as error:
        raise missing_package("the cluster of --local", error) from None
    return run_cluster(clock)


async def install_definitions(client: Client, operator: Operator, clock: Clock) -> None:
    """Apply the CustomResourceDefinitions of the operator's classes and wait until the server serves them.

    Raises:
        konverge.errors.KonvergeError: The server rejects a definition, or does not serve it in time.
    """
    for resource in operator.defined_resources:
        definition = find_definition(resource)
        await client.apply(crd_manifest(resource), field_manager=_FIELD_MANAGER)
        try:
            await _wait_until_served(client, definition.gvk, clock)
        except TimeoutError:
            raise KonvergeError(
                f"CustomResourceDefinition {definition.name}: not served after {_SERVED_SECONDS:g} s; "
                f"find the reason with kubectl describe crd {definition.name}"
            ) from None
        _log.info("CustomResourceDefinition %s is installed", definition.name)


async def _install_placeholders(client: Client, operator: Operator, clock: Clock) -> None:
    """Define the kinds that the embedded cluster lacks and the operator does not define; any object fits."""
    for gvk in await install_placeholders(client, operator.registered.assumed_kinds):
        await _wait_until_served(client, gvk, clock)
        _log.info("%s: the cluster of --local does not serve it; it accepts any object, and nothing works on it", gvk)


async def _wait_until_served(client: Client, gvk: GroupVersionKind, clock: Clock) -> None:
    async with asyncio.timeout(_SERVED_SECONDS):
        while not await _is_served(client, gvk):
            await clock.sleep(_POLL_SECONDS)


async def _is_served(client: Client, gvk: GroupVersionKind) -> bool:
    try:
        await client.mapping(gvk)
    except KindNotServedError:
        return False
    return True


async def _check_served(client: Client, operator: Operator, install_hints: Mapping[GroupVersionKind, str]) -> None:
    """Raise an error at once if the cluster cannot be reached or does not serve the operator's kinds."""
    for resource in operator.custom_resources:
        definition = find_definition(resource)
        try:
            await client.mapping(definition.gvk)
        except KindNotServedError as error:
            remedy = "--install-crds installs it"
            if definition.is_external:
                remedy = install_hints.get(definition.gvk, "this operator does not define it: install its definition")
            raise KindNotServedError(f"{error} ({remedy})") from error

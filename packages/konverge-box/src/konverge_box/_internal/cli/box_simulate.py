"""``konverge box simulate``: a box that runs in a cluster, step by step, compared with its expectations."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias

import click

from konverge._internal.cancellation import await_shielded
from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import is_verbose, verbose_option
from konverge._internal.cli.signals import cancel_on_signal
from konverge._internal.client import Client, HttpTransport, load_cluster_config
from konverge._internal.crd import build_sample_objects, find_definition
from konverge._internal.extras import missing_package
from konverge._internal.kube import GroupVersionKind, Object, ObjectKey
from konverge.clock import SeededEntropy, SimulatedClock, SimulatedLoop, SystemClock, SystemEntropy
from konverge.errors import ConfigurationError, KonvergeError
from konverge_box._internal.cli.box import find_document_kind, read_box
from konverge_box._internal.cli.box_inputs import input_options, read_answers, read_input_objects
from konverge_box._internal.file import OperatorBox
from konverge_box._internal.rendering import DEFAULT_TIME
from konverge_box._internal.runtime.box_validation import load_valid_box
from konverge_box._internal.runtime.resource_class import build_resource_class
from konverge_box._internal.simulation import (
    LoadedSimulation,
    SimulatedCluster,
    StepReport,
    load_simulation,
    reconcile_until_steady,
    simulate,
)
from konverge_box._internal.simulation.required_servers import find_missing_servers
from konverge_box._internal.simulation.simulation_model import KIND

__all__ = ["box_simulate", "build_samples", "run_in_cluster"]

ClusterKind: TypeAlias = Literal["embedded", "kubeconfig"]

_FILE = "simulate.yaml"
_DEFAULT_NAMESPACE = "default"
_SAMPLES = 3
_SIGNS = {"created": "+", "updated": "~", "deleted": "-"}
_STYLES = {"created": "green", "updated": "yellow", "deleted": "red"}
_USER_AGENT = f"konverge/{version('konverge')} (simulate)"
_NAMESPACE = GroupVersionKind("", "v1", "Namespace")


@click.command("simulate")
@click.argument("paths", metavar="FILE|FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--cluster",
    type=click.Choice(["embedded", "kubeconfig"]),
    default="embedded",
    show_default=True,
    help="Embedded cluster in simulated time, or the kubeconfig's cluster in a new namespace.",
)
@click.option(
    "--cycles",
    type=click.IntRange(2, 100),
    default=10,
    show_default=True,
    help="Limit for the number of cycles of a box without a simulation.",
)
@click.option(
    "--object",
    "object_files",
    metavar="CR.yaml",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Custom resources for a box without a simulation (default: samples of its schema). Can be repeated.",
)
@input_options(
    given="File with the initial objects in the cluster, for a box without a simulation. Can be repeated.",
    answers="Responses to external calls, for a box without a simulation.",
)
@verbose_option
@click.pass_context
def box_simulate(
    ctx: click.Context,
    paths: tuple[Path, ...],
    cluster: ClusterKind,
    cycles: int,
    object_files: tuple[Path, ...],
    given_files: tuple[Path, ...],
    answers_file: Path | None,
) -> None:
    """Run boxes in a cluster and compare the results with the expectations.

    FILE is a simulation or a box. For a box, the command applies its custom resources and reconciles them until a
    reconcile writes nothing. A FOLDER stands for its simulate.yaml, or for the simulate.yaml files of its subfolders.
    The output marks changes with + (created), ~ (updated) and - (deleted). Responses to calls come from the file; no
    call is sent. A simulation whose servers do not run is left out, with what would start them. Exit code 1: an
    expectation is not met, or a box is not steady.
    """
    # The report contains the errors of reconciles, so the log stays silent by default.
    logging.basicConfig(level=logging.DEBUG if is_verbose(ctx) else logging.CRITICAL)
    files = [file for path in paths for file in _list_files(path)]
    objects, given, answers = (
        read_input_objects(object_files),
        read_input_objects(given_files),
        read_answers(answers_file),
    )
    failed = left_out = 0
    for file in files:
        click.secho(str(file), bold=True)
        # In a shared cluster, each simulation has its own namespace.
        is_shared = cluster == "kubeconfig"
        namespace = f"simulation-{SystemEntropy().name_suffix(8)}" if is_shared else _DEFAULT_NAMESPACE
        if find_document_kind(read_box(file)) == KIND:
            loaded = load_simulation(file, namespace=namespace)
            spec = loaded.simulation.spec
            missing = asyncio.run(find_missing_servers(spec.requires))
            if missing:
                left_out += 1
                for server in missing:
                    click.secho(f"  left out: no server at {server.address}; to start it: {server.start}", fg="yellow")
                continue
            starts_at = None if spec.requires else datetime.fromisoformat(spec.starts_at)
            job = partial(_simulate, loaded)
            is_well = run_in_cluster(cluster, namespace, starts_at, job, without_controllers=spec.without_controllers)
        else:
            box = load_valid_box(read_box(file), file=str(file))
            run = partial(
                reconcile_until_steady, box, objects or build_samples(box), cycles=cycles, given=given, answers=answers
            )
            is_well = run_in_cluster(cluster, namespace, DEFAULT_TIME, partial(run, on_report=_print_report))
            click.echo("  steady" if is_well else f"  not steady after {cycles} cycles")
        failed += not is_well
    if len(files) > 1 or failed:
        rest = f", {left_out} left out" if left_out else ""
        click.echo(f"{len(files) - left_out} simulated, {failed} failed{rest}", err=True)
    if failed:
        ctx.exit(ExitCode.FAILED)


def run_in_cluster(
    kind: ClusterKind,
    namespace: str,
    starts_at: datetime | None,
    job: Callable[[SimulatedCluster], Awaitable[bool]],
    *,
    without_controllers: Collection[str] = (),
) -> bool:
    """Run a job in a cluster of this kind.

    Args:
        kind: The cluster.
        namespace: The namespace for objects without one.
        starts_at: The initial time of the embedded cluster; None runs it in real time.
        job: The job.
        without_controllers: The kinds that never become ready by themselves in the embedded cluster, although they
            could.
    """
    if kind == "kubeconfig":
        return asyncio.run(_run_job(_connect_kubeconfig(namespace), job))
    if starts_at is None:
        return asyncio.run(_run_job(_start_embedded(namespace, None, without_controllers), job))
    # Simulated time advances at once, and there is no network to wait for.
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(_run_job(_start_embedded(namespace, starts_at, without_controllers), job))


async def _run_job(
    opening: AbstractAsyncContextManager[SimulatedCluster], job: Callable[[SimulatedCluster], Awaitable[bool]]
) -> bool:
    with cancel_on_signal():
        async with opening as cluster:
            return await job(cluster)


@asynccontextmanager
async def _start_embedded(
    namespace: str, starts_at: datetime | None, without_controllers: Collection[str]
) -> AsyncIterator[SimulatedCluster]:
    try:
        from konverge_cluster._internal.embedded import INTEGRATIONS, LocalCluster
    except ImportError as error:
        raise missing_package("the embedded cluster of a simulation", error) from None

    clock = SystemClock() if starts_at is None else SimulatedClock(starts_at)
    async with (
        LocalCluster(
            clock=clock, entropy=SeededEntropy(), integrations=INTEGRATIONS - set(without_controllers)
        ) as cluster,
        Client(cluster.transport(), user_agent=_USER_AGENT, clock=clock) as client,
    ):
        transport = cluster.transport()
        yield SimulatedCluster(client, transport, clock, SeededEntropy(1), namespace, is_embedded=True)


@asynccontextmanager
async def _connect_kubeconfig(namespace: str) -> AsyncIterator[SimulatedCluster]:
    clock = SystemClock()
    config = load_cluster_config(clock=clock)
    transport = HttpTransport(config, clock=clock)
    async with Client(HttpTransport(config, clock=clock), user_agent=_USER_AGENT, clock=clock) as client:
        try:
            yield SimulatedCluster(client, transport, clock, SystemEntropy(), namespace, is_embedded=False)
        finally:
            await await_shielded(_clean_up(client, transport, namespace))


async def _clean_up(client: Client, transport: HttpTransport, namespace: str) -> None:
    await transport.close()
    with suppress(KonvergeError):  # the namespace does not exist, or an earlier error is already reported
        await client.delete(_NAMESPACE, ObjectKey("", namespace))


async def _simulate(loaded: LoadedSimulation, cluster: SimulatedCluster) -> bool:
    return not any(report.failures for report in await simulate(loaded, cluster, on_report=_print_report))


def _print_report(report: StepReport) -> None:
    if report.skipped:
        click.echo(f"  {report.name}: skipped: {report.skipped}")
        return
    click.echo(f"  {report.name}")
    counts: dict[tuple[str, str, bool], int] = {}
    for each in report.operations:
        counts[each.verb, each.object_name, each.is_status] = (
            counts.get((each.verb, each.object_name, each.is_status), 0) + 1
        )
    for (verb, name, is_status), count in counts.items():
        line = f"{_SIGNS[verb]} {name}{' status' if is_status else ''}{f' ({count} times)' if count > 1 else ''}"
        click.secho(f"    {line}", fg=_STYLES[verb])
    for text in report.conditions:
        click.echo(f"    {text}")
    for text in report.errors:
        click.echo(f"    error: {text}")
    for text in report.failures:
        click.secho(f"    FAILED {text}", fg="red")


def build_samples(box: OperatorBox) -> list[Object]:
    """Build custom resources that the schemas allow; one with an empty spec for a kind without a schema."""
    samples: list[Object] = []
    for declared in box.spec.crds.values():
        if declared.resource.schema is None:
            gvk, name = declared.resource.gvk, f"{declared.resource.kind.lower()}-1"
            samples.append({"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": name}, "spec": {}})
            continue
        for number, sample in enumerate(
            build_sample_objects(find_definition(build_resource_class(declared)), _SAMPLES).objects, 1
        ):
            name = f"{declared.resource.kind.lower()}-{number}"
            # Without the sample's namespace, which may belong to another user, and without its UID.
            samples.append({**sample, "metadata": {"name": name}})
    return samples


def _list_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    if (path / _FILE).is_file():
        return [path / _FILE]
    files = sorted(path.glob(f"*/{_FILE}"))
    if not files:
        raise ConfigurationError(f"{path}: expected a {_FILE} in this folder or in its subfolders, found none")
    return files

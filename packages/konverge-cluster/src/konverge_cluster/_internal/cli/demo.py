"""``konverge demo``: a real operator runs ``examples/webapp`` on the embedded cluster.

This process serves the cluster over HTTP. The operator is ``konverge run`` in a separate process, as a user starts it.
However the demo ends, it ends every process that it started, by process id.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections.abc import Iterable
from contextlib import AsyncExitStack
from pathlib import Path

import click

from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.signals import abort_on_event, stop_event_on_signal
from konverge._internal.client.connect import connect
from konverge._internal.kube import Object
from konverge.clock import SystemClock, SystemEntropy
from konverge.errors import ConfigurationError, KonvergeError
from konverge_cluster._internal.cli.demo_output import DemoOutput, choose_output
from konverge_cluster._internal.cli.demo_runner import DemoError, DemoRequest, DemoRunner
from konverge_cluster._internal.cli.demo_script import WATCHED_KINDS, WEBAPP, build_creation_step, build_webapp_steps
from konverge_cluster._internal.cli.kubeconfig_file import build_kubeconfig, write_kubeconfig
from konverge_cluster._internal.cli.operator_process import operator_process

__all__ = ["demo", "find_example_folder"]

_USER_AGENT = "konverge-demo"
_OPERATOR_USER_AGENT = "konverge/"  # the start of the user agent of `konverge run`
_DEMO_TIMEOUT_SECONDS = 90.0

# The embedded cluster pulls no images; without these delays each step would end before a reader sees it.
_START_SECONDS = {"nginx:*": 1.0, "redis:*": 1.0}


@click.command()
@click.option("--stay", is_flag=True, help="Keep the cluster and the operator running until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Print lines instead of the live view.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Directory with your changed copy of examples/webapp; the steps of the demo stay the same.",
)
@verbose_option
def demo(stay: bool, plain: bool, example: Path | None) -> None:
    """Run a demo: an operator creates, repairs, suspends and deletes an application.

    The demo starts an embedded cluster and stops it at the end; it uses no other cluster. The exit code is 0 only if
    all steps succeed.
    """
    asyncio.run(_run_demo(example or find_example_folder(), choose_output(plain=plain), stay=stay))


def find_example_folder() -> Path:
    """Return the folder of ``examples/webapp``: from the checkout that contains this package, else from the package.

    Raises:
        konverge.errors.ConfigurationError: Neither folder exists.
    """
    package = Path(__file__).parent
    for folder in (*(root / "examples" / "webapp" for root in package.parents[5:6]), package / "webapp"):
        if (folder / "operator.py").is_file():
            return folder
    raise ConfigurationError(
        "demo example: expected examples/webapp in this installation, found none; clone the repository and run "
        "make demo"
    )


async def _run_demo(example: Path, screen: DemoOutput, *, stay: bool) -> None:
    """Start the cluster and the operator, play the steps, and stop both."""
    from konverge._internal.kube.yaml_loader import load_yaml
    from konverge_cluster._internal.embedded import LocalCluster

    webapp = load_yaml((example / "webapp.yaml").read_bytes())
    file, clock = example / "operator.py", SystemClock()
    async with AsyncExitStack() as stack:
        stop_event = stack.enter_context(stop_event_on_signal())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="konverge-demo-")))
        cluster = await stack.enter_async_context(LocalCluster(clock=clock, entropy=SystemEntropy()))
        for image, seconds in _START_SECONDS.items():
            cluster.images.ready_after(image, seconds)
        url = await cluster.serve()
        config = folder / "kubeconfig"
        write_kubeconfig(build_kubeconfig(url, "demo"), config)
        client = await stack.enter_async_context(connect(config, user_agent=_USER_AGENT, clock=clock))
        operator = await stack.enter_async_context(
            operator_process(file, config, webapp["metadata"]["namespace"], folder / "operator.log")
        )
        screen.print_line(f"cluster   embedded, {url}")
        screen.print_line(f"operator  konverge run {file} (process {operator.pid})")

        def list_operator_requests() -> Iterable[DemoRequest]:
            return (request for request in cluster.requests if request.user_agent.startswith(_OPERATOR_USER_AGENT))

        runner = DemoRunner(client, screen, clock, webapp, list_operator_requests)
        try:
            async with asyncio.TaskGroup() as tasks:
                life = tasks.create_task(operator.wait_for_exit())
                interruption = tasks.create_task(abort_on_event(stop_event))
                await _play_steps(runner, webapp, screen, stay=stay)
                interruption.cancel()
                if stay:
                    _print_next_steps(webapp, config, screen)
                    await stop_event.wait()
                life.cancel()
        except* KonvergeError:
            for line in operator.read_log_tail():
                click.echo(f"operator: {line}", err=True)
            raise
    if not stay:
        screen.print_line("To keep the cluster running and inspect it with kubectl: konverge demo --stay")


async def _play_steps(runner: DemoRunner, webapp: Object, screen: DemoOutput, *, stay: bool) -> None:
    """Run all steps; with `stay`, create the application once more at the end."""
    clock, steps = SystemClock(), build_webapp_steps(webapp)
    await runner.wait_until_served(WEBAPP)
    async with asyncio.TaskGroup() as tasks:
        followers = [tasks.create_task(runner.watch_kind(gvk)) for gvk in (WEBAPP, *WATCHED_KINDS)]
        started = clock.monotonic()
        with screen.display():
            try:
                async with asyncio.timeout(_DEMO_TIMEOUT_SECONDS):
                    for number, step in enumerate(steps, start=1):
                        await runner.run_step(number, step)
            except TimeoutError:
                raise DemoError(f"the demo did not finish within {_DEMO_TIMEOUT_SECONDS:g} s") from None
            ended = clock.monotonic()
            if stay:
                await runner.run_step(len(steps) + 1, build_creation_step(webapp, "The WebApp is created again"))
        for follower in followers:
            follower.cancel()
    screen.print_line(f"\nAll steps succeeded in {ended - started:.0f} s.")


def _print_next_steps(webapp: Object, config: Path, screen: DemoOutput) -> None:
    name, namespace = webapp["metadata"]["name"], webapp["metadata"]["namespace"]
    screen.print_line("The cluster and the operator keep running until Ctrl-C. In another terminal:\n")
    screen.print_line(f"    export KUBECONFIG={shlex.quote(str(config))}")
    screen.print_line(f"    kubectl get webapps,deployments,statefulsets,services,pods -n {namespace}")
    screen.print_line(f"    kubectl describe webapp {name} -n {namespace}")

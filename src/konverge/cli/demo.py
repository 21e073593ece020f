"""``konverge demo``: the story of ``examples/webapp``, told by a real operator on the embedded cluster.

The cluster serves HTTP from this process; the operator is ``konverge run`` in a process of its own, as a user would
start it. Whatever is started here is ended here, by its id, in whatever way the demo ends.
"""

from __future__ import annotations

import asyncio
import shlex
import tempfile
from collections.abc import Iterable
from pathlib import Path

import click
import yaml

from konverge.cli.kubeconfig_file import kubeconfig, write_kubeconfig
from konverge.cli.operator_process import operator_process
from konverge.cli.program import verbose_option
from konverge.cli.screen import Screen, choose_screen
from konverge.cli.signals import until_told_to_stop
from konverge.cli.stage import Request, Stage, StoryError
from konverge.cli.story import FOLLOWED, WEBAPP, webapp_story
from konverge.client.connect import connect
from konverge.clock import SystemClock, SystemEntropy
from konverge.errors import ConfigurationError, KonvergeError
from konverge.kube import Object

__all__ = ["demo", "example_folder"]

_USER_AGENT = "konverge-demo"
_OPERATOR_USER_AGENT = "konverge/"  # so begins that of `konverge run`
_WHOLE_SECONDS = 90.0


@click.command()
@click.option("--stay", is_flag=True, help="Afterwards leave the cluster and the operator running until Ctrl-C.")
@click.option("--plain", is_flag=True, help="Lines instead of the live view.")
@click.option(
    "--example",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A copy of examples/webapp that you have changed; the story stays the same.",
)
@verbose_option
def demo(stay: bool, plain: bool, example: Path | None) -> None:
    """Watch an operator bring up, heal, suspend and clean up an application.

    It needs no cluster and touches none: it starts an embedded one, and ends it. The exit code is 0 only if every step
    of the story really happened.
    """
    asyncio.run(_demo(example or example_folder(), choose_screen(plain=plain), stay=stay))


def example_folder() -> Path:
    """The folder of ``examples/webapp``: that of the checkout which this package is in, else the package's copy.

    Raises:
        konverge.errors.ConfigurationError: Neither is there.
    """
    package = Path(__file__).parent
    for folder in (package.parents[2] / "examples" / "webapp", package / "webapp"):
        if (folder / "operator.py").is_file():
            return folder
    raise ConfigurationError("the example of the demo is not installed: clone the repository and run make demo")


async def _demo(example: Path, screen: Screen, *, stay: bool) -> None:
    from konverge.localcluster import LocalCluster

    webapp = yaml.load((example / "webapp.yaml").read_bytes(), Loader=yaml.CSafeLoader)
    clock = SystemClock()
    with until_told_to_stop() as told, tempfile.TemporaryDirectory(prefix="konverge-demo-") as name:
        config, log = Path(name) / "kubeconfig", Path(name) / "operator.log"
        async with LocalCluster(clock=clock, entropy=SystemEntropy()) as cluster:
            url = await cluster.serve()
            write_kubeconfig(kubeconfig(url, "demo"), config)

            def operator_requests() -> Iterable[Request]:
                return (found for found in cluster.requests if found.user_agent.startswith(_OPERATOR_USER_AGENT))

            file = example / "operator.py"
            async with (
                connect(config, user_agent=_USER_AGENT, clock=clock) as client,
                operator_process(file, config, log) as operator,
            ):
                screen.say(f"cluster   embedded, {url}")
                screen.say(f"operator  konverge run {file} (process {operator.pid})")
                stage = Stage(client, screen, clock, webapp, operator_requests)
                try:
                    async with asyncio.TaskGroup() as tasks:
                        interruption = tasks.create_task(_abort_when(told))
                        background = [tasks.create_task(operator.must_live())]
                        await stage.wait_until_served(WEBAPP)
                        background += [tasks.create_task(stage.follow(gvk)) for gvk in (WEBAPP, *FOLLOWED)]
                        with screen.shown():
                            await _tell(stage, webapp, screen)
                        if stay:
                            interruption.cancel()
                            await _stay(stage, webapp, config, screen, told)
                        for task in (interruption, *background):
                            task.cancel()
                except* KonvergeError:
                    for line in operator.log_tail():
                        click.echo(f"operator: {line}", err=True)
                    raise
    if not stay:
        screen.say("To keep it running and look with kubectl: konverge demo --stay")


async def _tell(stage: Stage, webapp: Object, screen: Screen) -> None:
    started = SystemClock().monotonic()
    try:
        async with asyncio.timeout(_WHOLE_SECONDS):
            for number, step in enumerate(webapp_story(webapp), start=1):
                await stage.play(number, step)
    except TimeoutError:
        raise StoryError(f"the story took more than {_WHOLE_SECONDS:g} s") from None
    screen.say(f"\nEvery step happened, in {SystemClock().monotonic() - started:.0f} s.")


async def _stay(stage: Stage, webapp: Object, config: Path, screen: Screen, told: asyncio.Event) -> None:
    """Bring the application up once more and leave everything to the reader."""
    await stage.apply(webapp)
    name, namespace = webapp["metadata"]["name"], webapp["metadata"]["namespace"]
    screen.say("The cluster and the operator stay up until Ctrl-C. In another terminal:\n")
    screen.say(f"    export KUBECONFIG={shlex.quote(str(config))}")
    screen.say(f"    kubectl get webapps,deployments,statefulsets,services,pods -n {namespace}")
    screen.say(f"    kubectl describe webapp {name} -n {namespace}")
    await told.wait()


async def _abort_when(told: asyncio.Event) -> None:
    await told.wait()
    raise click.Abort

"""``konverge preview``: what the components of an owner want to be in the cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import click

from konverge.apply import HIDDEN
from konverge.cli.authors_code import ends_within, printing_to_stderr
from konverge.cli.crd import output_option, render
from konverge.cli.failures import ExitCode
from konverge.cli.operator_file import load_operator, parse_reference
from konverge.cli.owners import ClusterFlags, NamedOwner, cluster_flags, find_owner, read_owner, within
from konverge.cli.program import verbose_option
from konverge.component import Component
from konverge.component.data_flow import fill
from konverge.component.options import Mode
from konverge.crd import decode, definition_of
from konverge.errors import ConfigurationError, describe
from konverge.feature import is_enabled
from konverge.kube import Object
from konverge.kube.secrets import without_secrets
from konverge.operator.reconciling import built, check_condition_type
from konverge.operator.registered import Registration

__all__ = ["preview"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]")
@click.argument("owner", metavar="OWNER.yaml|KIND/NAME")
@cluster_flags
@click.option(
    "--data",
    metavar="NAME=VALUE",
    multiple=True,
    help="What the data cell of this name holds, as text; repeatable. Nothing fills it without a cluster.",
)
@output_option
@verbose_option
@click.pass_context
def preview(
    ctx: click.Context,
    /,
    file: str,
    owner: str,
    kubeconfig_file: Path | None,
    context: str | None,
    namespace: str | None,
    timeout_seconds: float,
    data: tuple[str, ...],
    output: Literal["yaml", "json"],
) -> None:
    """Print the objects that the components of an owner want, in the order in which they are applied.

    The owner in a file needs no cluster. Guards are not asked and nothing is suspended; the values of Secrets are
    hidden. What cannot be rendered without a cluster, because it needs data of a live object, stands on stderr;
    --data gives such data.
    """
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    cells = _cells(data)
    objects: list[Object] = []
    failures: list[str] = []
    reference = parse_reference(file)
    if reference.is_box:
        raise ConfigurationError(
            f"{reference.file}: the objects of a box come out of its steps: konverge box render "
            f"{reference.file} --object OWNER.yaml shows all of them"
        )
    with printing_to_stderr():
        found = find_owner(load_operator(reference), owner)
        if isinstance(found, NamedOwner):
            obj = within(timeout_seconds, lambda: _read(found, flags), f"reading {owner}")
        else:
            obj = found.obj
            if definition_of(found.registration.cls).namespaced:
                obj["metadata"].setdefault("namespace", namespace or "default")
        if not found.registration.factories:
            raise ConfigurationError(
                f"{obj['kind']} is reconciled by a function of the operator's own, which has to run to tell what it "
                "applies: konverge diff runs it and writes nothing"
            )
        ends_within(
            timeout_seconds,
            lambda: _rendered(found.registration, obj, cells, objects, failures),
            "building the components",
        )
    click.echo(render(objects, output), nl=False)
    for failure in failures:
        click.echo(f"konverge: {' '.join(failure.split())}", err=True)
    if failures:
        ctx.exit(ExitCode.FAILED)


def _cells(told: tuple[str, ...]) -> dict[str, str]:
    """What the cells hold, by their names."""
    cells: dict[str, str] = {}
    for each in told:
        name, equals, value = each.partition("=")
        if not equals:
            raise click.UsageError(f"--data: expected NAME=VALUE, found {each!r}")
        cells[name] = value
    return cells


async def _read(found: NamedOwner, flags: ClusterFlags) -> Object:
    async with flags.connect("preview") as client:
        return await read_owner(client, found, flags)


def _rendered(
    registration: Registration, owner: Object, data: Mapping[str, str], objects: list[Object], failures: list[str]
) -> None:
    components = _built(registration, decode(registration.cls, owner), failures)
    try:
        fill((cell for component in components for cell in component.cells), data)
    except ConfigurationError as error:
        failures.append(f"--data: {error}")
    for component in components:
        objects += _objects(component, failures)


def _built(registration: Registration, owner: object, failures: list[str]) -> list[Component]:
    """The components that a pass would reconcile."""
    components: list[Component] = []
    for factory in registration.factories:
        try:
            component = built(factory(owner))
            check_condition_type(component, components, registration.condition_type)
        except Exception as error:  # noqa: BLE001  # an author's code: the other components are not to suffer
            failures.append(f"{getattr(factory, '__name__', factory)}: {describe(error)}")
            continue
        components.append(component)
    return components


def _objects(component: Component, failures: list[str]) -> Iterator[Object]:
    """What `Component.preview` renders, as far as it can be rendered."""
    try:
        if not is_enabled(component.gate):
            click.echo(f"konverge: component {component.name}: its gate is off, it applies nothing", err=True)
            return
    except Exception as error:  # noqa: BLE001  # an author's code: the other components are not to suffer
        failures.append(f"component {component.name}: {describe(error)}")
        return
    if not component.entries:
        click.echo(f"konverge: component {component.name}: it has no resource, it applies nothing", err=True)
    for entry in component.entries:
        if entry.treatment.mode is not Mode.MANAGED:
            continue
        try:
            yield without_secrets(entry.resource.desired(), HIDDEN)
        except Exception as error:  # noqa: BLE001  # an author's code: the other objects are not to suffer
            failures.append(f"component {component.name}: {entry.identity}: {describe(error)}")

"""``konverge preview``: the desired objects of an owner's components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import click

from konverge._internal.apply import HIDDEN
from konverge._internal.cli.crd import output_option
from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.owner_arguments import (
    ClusterFlags,
    NamedOwner,
    cluster_flags,
    find_owner,
    read_owner,
    run_with_timeout,
)
from konverge._internal.cli.user_code import call_with_timeout, redirect_stdout_to_stderr
from konverge._internal.component import Component
from konverge._internal.component.data_flow import fill_cells
from konverge._internal.component.resource_options import ResourceMode
from konverge._internal.crd import decode, find_definition
from konverge._internal.feature import is_enabled
from konverge._internal.kube import Object
from konverge._internal.kube.secret_redaction import redact_secret_values
from konverge._internal.operator.component_factories import build_component, check_condition_type
from konverge._internal.operator.function_calls import name_function
from konverge._internal.operator.registrations import OwnerRegistration
from konverge.errors import ConfigurationError, format_error

__all__ = ["preview"]


@click.command()
@click.argument("file", metavar="FILE.py[:OPERATOR]")
@click.argument("owner", metavar="OWNER.yaml|KIND/NAME")
@cluster_flags()
@click.option(
    "--data",
    metavar="NAME=VALUE",
    multiple=True,
    help="Text for the data cell of this name. Without a cluster, no other source fills it. Can be repeated.",
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
    """Print the objects that the components of an owner produce, in apply order.

    An owner in a file needs no cluster. The command calls no guards, suspends nothing and hides the values of Secrets.
    On stderr, it reports objects that cannot be rendered without data from a live object; --data provides such data.
    """
    flags = ClusterFlags(kubeconfig_file, context, namespace, timeout_seconds)
    cells = _parse_cells(data)
    objects: list[Object] = []
    failures: list[str] = []
    reference = parse_operator_reference(file)
    if reference.is_box:
        raise ConfigurationError(
            f"{reference.file}: expected a Python file, found a box file; print its objects with konverge box render "
            f"{reference.file} --object OWNER.yaml"
        )
    with redirect_stdout_to_stderr():
        found = find_owner(load_operator(reference), owner)
        if isinstance(found, NamedOwner):
            obj = run_with_timeout(timeout_seconds, lambda: _read_owner(found, flags), f"reading {owner}")
        else:
            obj = found.obj
            if find_definition(found.registration.cls).namespaced:
                obj["metadata"].setdefault("namespace", namespace or "default")
        if not found.registration.factories:
            raise ConfigurationError(
                f"{obj['kind']}: expected components, found a reconcile function, whose objects are known only after "
                "it runs; use konverge diff, which runs it and writes nothing"
            )
        call_with_timeout(
            timeout_seconds,
            lambda: _render_components(found.registration, obj, cells, objects, failures),
            "building the components",
        )
    click.echo(format_manifests(objects, output), nl=False)
    _report_skipped_functions(found.registration)
    for failure in failures:
        click.echo(f"konverge: {' '.join(failure.split())}", err=True)
    if failures:
        ctx.exit(ExitCode.FAILED)


def _parse_cells(assignments: tuple[str, ...]) -> dict[str, str]:
    """Return the values of the cells by their names."""
    cells: dict[str, str] = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise click.UsageError(f"--data: expected NAME=VALUE, found {assignment!r}")
        cells[name] = value
    return cells


def _report_skipped_functions(registration: OwnerRegistration) -> None:
    """Report the functions whose results are known only with live objects."""
    for function in (*registration.functions, *([] if registration.status is None else [registration.status])):
        click.echo(
            f"konverge: {name_function(function)}: not called, because it gets live objects; konverge diff calls it "
            "and writes nothing",
            err=True,
        )


async def _read_owner(found: NamedOwner, flags: ClusterFlags) -> Object:
    async with flags.connect("preview") as client:
        return await read_owner(client, found, flags)


def _render_components(
    registration: OwnerRegistration, owner: Object, data: Mapping[str, str], objects: list[Object], failures: list[str]
) -> None:
    components = _build_components(registration, decode(registration.cls, owner), failures)
    try:
        fill_cells((cell for component in components for cell in component.cells), data)
    except ConfigurationError as error:
        failures.append(f"--data: {error}")
    for component in components:
        objects += _render_objects(component, failures)


def _build_components(registration: OwnerRegistration, owner: object, failures: list[str]) -> list[Component]:
    """Return the components that a reconcile would apply."""
    components: list[Component] = []
    for factory in registration.factories:
        try:
            component = build_component(factory(owner))
            check_condition_type(component, components, registration.condition_type)
        except Exception as error:  # noqa: BLE001  # code of the author: must not affect the other components
            failures.append(f"{getattr(factory, '__name__', factory)}: {format_error(error)}")
            continue
        components.append(component)
    return components


def _render_objects(component: Component, failures: list[str]) -> Iterator[Object]:
    """Yield the objects of `Component.preview` that can be rendered."""
    try:
        if not is_enabled(component.gate):
            click.echo(f"konverge: component {component.name}: applies nothing: its gate is disabled", err=True)
            return
    except Exception as error:  # noqa: BLE001  # code of the author: must not affect the other components
        failures.append(f"component {component.name}: {format_error(error)}")
        return
    if not component.entries:
        click.echo(f"konverge: component {component.name}: applies nothing: it has no resources", err=True)
    for entry in component.entries:
        if entry.treatment.mode is not ResourceMode.MANAGED:
            continue
        try:
            yield redact_secret_values(entry.resource.render(), HIDDEN)
        except Exception as error:  # noqa: BLE001  # code of the author: must not affect the other objects
            failures.append(f"component {component.name}: {entry.identity}: {format_error(error)}")

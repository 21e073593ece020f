"""``konverge types``: TypedDicts for the custom resources of any operator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

import click

from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.yaml_documents import STDIN, read_objects
from konverge._internal.client.connect import connect
from konverge._internal.kube import GroupVersionKind, Object
from konverge._internal.typegen import generate_custom_resource_module
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError

__all__ = ["types"]

_DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")

_DefinitionFilter: TypeAlias = Callable[[Object], bool]


@click.command()
@click.option(
    "--crd",
    "files",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with CustomResourceDefinitions; - is stdin. Other objects are ignored. Can be repeated.",
)
@click.option("--cluster", "from_cluster", is_flag=True, help="Read the definitions from a cluster.")
@click.option(
    "--kubeconfig",
    "kubeconfig_file",
    type=click.Path(path_type=Path),
    help="Kubeconfig file (default: KUBECONFIG, then ~/.kube/config, then the Pod's service account).",
)
@click.option("--context", help="Context in the kubeconfig (default: its current context).")
@click.option("--group", "groups", multiple=True, help="Include only kinds of this API group. Can be repeated.")
@click.option("--kind", "kinds", multiple=True, help="Include only this kind. Can be repeated.")
@click.option("--out", type=click.Path(path_type=Path), default=STDIN, help="Output file; - is stdout (default: -).")
@verbose_option
def types(
    files: tuple[Path, ...],
    from_cluster: bool,
    kubeconfig_file: Path | None,
    context: str | None,
    groups: tuple[str, ...],
    kinds: tuple[str, ...],
    out: Path,
) -> None:
    """Print a Python module with TypedDicts for the custom resources of CustomResourceDefinitions.

    The module contains each served version. The version that a cluster prefers has the name of the kind; the names of
    other versions end with the version. The TypedDicts for the kinds of Kubernetes are in konverge.types.
    """
    if from_cluster == bool(files):
        raise click.UsageError("--crd, --cluster: expected exactly one of them")
    if not from_cluster and (kubeconfig_file or context):
        raise click.UsageError("--kubeconfig, --context: requires --cluster")

    def is_wanted(definition: Object) -> bool:
        group, kind = _get_group_and_kind(definition)
        return (not groups or group in groups) and (not kinds or kind in kinds)

    if from_cluster:
        source = "the cluster"
        definitions = asyncio.run(_list_from_cluster(kubeconfig_file, context, is_wanted))
    else:
        source = ", ".join(map(str, files))
        definitions = [definition for file in files for definition in _read_file(file, is_wanted)]
    if not definitions:
        chosen = " of the chosen groups and kinds" if groups or kinds else ""
        raise ConfigurationError(f"{source}: expected CustomResourceDefinitions{chosen}, found none")
    _write(generate_custom_resource_module(definitions), out)


def _read_file(file: Path, is_wanted: _DefinitionFilter) -> list[Object]:
    """Return the definitions of a file, after a validation whose errors name the file."""
    definitions = [obj for obj in read_objects(file) if obj.get("kind") == _DEFINITION.kind and is_wanted(obj)]
    try:
        generate_custom_resource_module(definitions)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from error
    return definitions


async def _list_from_cluster(
    kubeconfig_file: Path | None, context: str | None, is_wanted: _DefinitionFilter
) -> list[Object]:
    user_agent = f"konverge/{version('konverge')} (types)"
    async with connect(kubeconfig_file, context, user_agent=user_agent, clock=SystemClock()) as client:
        return [obj async for obj in client.items(_DEFINITION) if is_wanted(obj)]


def _get_group_and_kind(definition: Object) -> tuple[object, object]:
    """Return the group and kind of a definition, which may be invalid."""
    spec = definition.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    names = spec.get("names")
    return spec.get("group"), names.get("kind") if isinstance(names, dict) else None


def _write(module: str, out: Path) -> None:
    if out == STDIN:
        click.echo(module, nl=False)
        return
    try:
        out.write_text(module, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{out}: {error.strerror}") from error

"""``konverge box package``: the manifests that run a box in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge.box.packaging import Packaging, package
from konverge.box.running import box_operator
from konverge.box.running.checking import load_checked_box
from konverge.cli.box import read_box
from konverge.cli.crd import output_option
from konverge.cli.manifest_text import manifest_text
from konverge.cli.package_options import package_options
from konverge.cli.program import verbose_option
from konverge.crd import crd_manifest
from konverge.operator.deployment import FACILITIES
from konverge.operator.permissions import permissions_of

__all__ = ["box_package"]


@click.command("package")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@package_options(
    namespace="Where the operator lives.",
    watched="Look after this namespace alone; repeatable.",
)
@output_option
@verbose_option
def box_package(
    file: Path,
    image: str,
    namespace: str,
    make_namespace: bool,
    replicas: int,
    watched: tuple[str, ...],
    output: Literal["yaml", "json"],
) -> None:
    """Print the manifests that run a box in a cluster; - is stdin.

    Namespace, definitions, account and roles, the box in a ConfigMap, Service, PodDisruptionBudget and Deployment. The
    roles come from the file alone; what could not be found out stands on stderr. Apply the rest with:
    konverge box package FILE.yaml | kubectl apply --server-side -f -
    """
    content = read_box(file)
    box = load_checked_box(content, file=str(file))
    operator = box_operator(box)
    permissions = permissions_of(operator.registered.declaration, FACILITIES)
    for gap in permissions.gaps:
        click.echo(f"konverge: not derived: {' '.join(gap.split())}", err=True)
    chosen = Packaging(
        image=image,
        namespace=namespace,
        replicas=replicas,
        watched=watched,
        is_namespace_made=make_namespace,
    )
    definitions = [crd_manifest(resource) for resource in operator.defined_resources]
    found = package(box, content.decode(), permissions, definitions, chosen)
    click.echo(manifest_text(found, output), nl=False)

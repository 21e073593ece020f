"""``konverge box package``: the manifests that run a box in a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.crd import output_option
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.package_options import package_options
from konverge._internal.crd import crd_manifest
from konverge._internal.operator.deployment_manifests import DEPLOYED_FEATURES
from konverge._internal.operator.permission_derivation import derive_permissions
from konverge_box._internal.cli.box import read_box
from konverge_box._internal.packaging import PackagingOptions, build_manifests
from konverge_box._internal.runtime import build_box_operator
from konverge_box._internal.runtime.box_validation import load_valid_box

__all__ = ["box_package"]


@click.command("package")
@click.argument("file", metavar="FILE.yaml", type=click.Path(path_type=Path))
@package_options(
    namespace="Namespace of the operator.",
    watched="Watch only this namespace. Can be repeated.",
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
    """Print the manifests that run a box in a cluster. Use - for stdin.

    The output contains the Namespace, definitions, account and roles, a ConfigMap with the box, Service,
    PodDisruptionBudget and Deployment. The command derives the roles only from the file, and reports gaps on stderr.
    Apply the output with:
    konverge box package FILE.yaml | kubectl apply --server-side -f -
    """
    content = read_box(file)
    box = load_valid_box(content, file=str(file))
    operator = build_box_operator(box)
    permissions = derive_permissions(operator.registered.declaration, DEPLOYED_FEATURES)
    for gap in permissions.gaps:
        click.echo(f"konverge: permission not derived: {' '.join(gap.split())}", err=True)
    chosen = PackagingOptions(
        image=image,
        namespace=namespace,
        replicas=replicas,
        watched=watched,
        is_namespace_made=make_namespace,
    )
    definitions = [crd_manifest(resource) for resource in operator.defined_resources]
    manifests = build_manifests(box, content.decode(), permissions, definitions, chosen)
    click.echo(format_manifests(manifests, output), nl=False)

"""Command ``konverge resolvers``: the operator that fulfils requests for definitions, and its manifests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from konverge._internal.cli.crd import output_option
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.package_options import package_options
from konverge._internal.cli.run import process_flags, run_operator
from konverge._internal.cli.run_options import get_pod_namespace
from konverge._internal.kube import GroupVersionKind

if TYPE_CHECKING:
    from konverge_resolution._internal.resolver import Resolver

__all__ = ["resolvers"]

F = TypeVar("F", bound=Callable[..., Any])

_HOME = "konverge-system"
_NAME = "konverge-resolution"
_TEKTON_INSTALL_HINT = "this CRD belongs to Tekton: install Tekton, or remove --tekton"


def _parse_kinds(
    ctx: click.Context, parameter: click.Parameter, texts: tuple[str, ...]
) -> tuple[GroupVersionKind, ...]:
    found = []
    for text in texts:
        api_version, _, kind = text.rpartition("/")
        if not api_version or not kind[:1].isupper():
            raise click.BadParameter(f"expected a kind such as tekton.dev/v1/Task, found {text!r}", ctx, parameter)
        found.append(GroupVersionKind.parse(api_version, kind))
    return tuple(found)


_FLAGS = (
    click.option("--only", metavar="NAME[,NAME...]", help="Run only these resolvers (default: all installed)."),
    click.option("--name", default=_NAME, show_default=True,
                 help="Name of the operator; it announces its resolvers under this name."),
    click.option("--lifecycle/--no-lifecycle", "keeps_lifecycle", default=True, show_default=True,
                 help="Start, end and delete the requests of every resolver; enable it for only one operator."),
    click.option("--tekton", "serves_tekton", is_flag=True, help="Also serve Tekton's requests."),
    click.option("--reads", "reads_kinds", multiple=True, metavar="VERSION/KIND", callback=_parse_kinds,
                 help="Kind that the resolver cluster can read, for example tekton.dev/v1/Task. Can be repeated."),
    click.option("--credentials", "credentials_in", multiple=True, metavar="NAMESPACE",
                 help="Allow requests of this namespace to name Secrets; '*' is every namespace (default: none). "
                 "Can be repeated."),
)  # fmt: skip


def _resolver_flags(command: F) -> F:
    for option in reversed(_FLAGS):
        command = option(command)
    return command


@click.group()
def resolvers() -> None:
    """Run resolvers of remote definitions in a cluster."""


@resolvers.command()
@click.option(
    "--home",
    metavar="NAMESPACE",
    help=f"Namespace of its ConfigMaps (default: the Pod's namespace, outside a Pod {_HOME}).",
)
@click.option(
    "--trusted-root",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Trusted root for keyless signatures: trusted_root.json of sigstore.",
)
@_resolver_flags
@process_flags
@verbose_option
@click.pass_context
def run(
    ctx: click.Context,
    /,
    home: str | None,
    trusted_root: Path | None,
    only: str | None,
    name: str,
    keeps_lifecycle: bool,
    serves_tekton: bool,
    reads_kinds: tuple[GroupVersionKind, ...],
    credentials_in: tuple[str, ...],
    **flags: Any,
) -> None:
    """Serve requests for remote definitions until SIGTERM or Ctrl-C.

    The configuration is in ConfigMaps in the --home namespace: konverge-resolution for all resolvers,
    konverge-resolver-NAME for each resolver. The command reloads them when they change.
    """
    # Imported here because all dependencies of resolvers are slow to import for a list of commands.
    from konverge_resolution._internal.requests import TEKTON_REQUEST, build_resolution_operator
    from konverge_resolution._internal.signatures import SignatureVerifier

    home_namespace = get_pod_namespace(default=_HOME) if home is None else home
    operator = build_resolution_operator(
        _select_resolvers(ctx, only),
        name=name,
        home=home_namespace,
        keeps_lifecycle=keeps_lifecycle,
        serves_tekton=serves_tekton,
        reads_kinds=reads_kinds,
        credentials_in=credentials_in,
        verifier=SignatureVerifier(trusted_root),
    )
    run_operator(ctx, operator, home=home_namespace, install_hints={TEKTON_REQUEST: _TEKTON_INSTALL_HINT}, **flags)


@resolvers.command()
@package_options(
    namespace="Namespace of the operator and its ConfigMaps.",
    watched="Serve only requests of this namespace. Can be repeated.",
)
@_resolver_flags
@click.option(
    "--admission",
    "has_admission",
    is_flag=True,
    help="Also print policies with which the server rejects requests that cannot be served.",
)
@output_option
@verbose_option
@click.pass_context
def package(
    ctx: click.Context,
    /,
    image: str,
    namespace: str,
    make_namespace: bool,
    replicas: int,
    watched: tuple[str, ...],
    only: str | None,
    name: str,
    keeps_lifecycle: bool,
    serves_tekton: bool,
    reads_kinds: tuple[GroupVersionKind, ...],
    credentials_in: tuple[str, ...],
    has_admission: bool,
    output: Literal["yaml", "json"],
) -> None:
    """Print the manifests that run resolvers in a cluster.

    The output contains the Namespace, definitions, account and roles, ConfigMaps with their documentation, Service,
    PodDisruptionBudget and Deployment. The roles contain no rules for resolvers that --only excludes. Apply the output
    with: konverge resolvers package | kubectl apply --server-side -f -
    """
    from konverge_resolution._internal.requests.resolver_packaging import ResolverPackaging, package_resolvers

    if has_admission and not keeps_lifecycle:
        raise click.UsageError(
            "--admission cannot be combined with --no-lifecycle: it applies to the requests of every resolver", ctx
        )
    if watched and (others := sorted({*credentials_in} - {*watched, "*"})):
        message = f"expected namespaces of --watch, found {others[0][:80]!r}: its requests are not served"
        raise click.BadParameter(message, ctx, param_hint="--credentials")
    chosen = ResolverPackaging(
        image=image,
        name=name,
        home=namespace,
        replicas=replicas,
        watched=watched,
        is_namespace_made=make_namespace,
        keeps_lifecycle=keeps_lifecycle,
        serves_tekton=serves_tekton,
        reads_kinds=reads_kinds,
        credentials_in=credentials_in,
        has_admission=has_admission,
    )
    click.echo(format_manifests(package_resolvers(_select_resolvers(ctx, only), chosen), output), nl=False)


def _select_resolvers(ctx: click.Context, only: str | None) -> list[Resolver]:
    from konverge_resolution._internal.resolvers import load_resolvers

    if only is None:
        return load_resolvers()
    names = [name.strip() for name in only.split(",") if name.strip()]
    selected = load_resolvers(names)
    installed = {resolver.name for resolver in selected}
    if not names or not installed.issuperset(names):
        known = ", ".join(sorted(resolver.name for resolver in load_resolvers()))
        raise click.BadParameter(f"expected names from {known}; found {only!r}", ctx, param_hint="--only")
    return selected

"""``konverge rbac``: the permissions of an operator, derived from its declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge._internal.cli.crd import output_option
from konverge._internal.cli.exit_codes import ExitCode
from konverge._internal.cli.main import verbose_option
from konverge._internal.cli.manifest_text import format_manifests
from konverge._internal.cli.namespaced_name import parse_namespaced_name
from konverge._internal.cli.observation_process import observe_functions
from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge._internal.cli.rbac_check import GrantedRoles, find_differences
from konverge._internal.cli.user_code import call_with_timeout, redirect_stdout_to_stderr
from konverge._internal.cli.yaml_documents import read_objects
from konverge._internal.kube import ObjectKey
from konverge._internal.operator.permission_derivation import MAX_FACTORY_SECONDS, RuntimeFeatures, derive_permissions
from konverge._internal.operator.role_manifests import build_role_manifests
from konverge.errors import ConfigurationError

__all__ = ["rbac"]

# The limit for a function that never returns; slow functions have a lower limit.
_LONGEST_SECONDS = MAX_FACTORY_SECONDS + 5.0


class _RbacCommand(click.Command):
    """Accepts ``--shards`` with a number, as ``konverge run`` requires it, or without one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        words = [
            f"{word}=1" if word == "--shards" and not "".join(args[place + 1 : place + 2]).isdecimal() else word
            for place, word in enumerate(args[:end])
        ]
        return super().parse_args(ctx, [*words, *args[end:]])


@click.command(cls=_RbacCommand)
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.option(
    "--namespace", "namespaces", multiple=True, help="Grant permissions only in this namespace. Can be repeated."
)
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    default="",
    help="ServiceAccount of the operator's Pods (default: default/<operator>).",
)
@click.option(
    "--sample",
    "samples",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File with more owners to build components and run functions for, and with objects that they need. Can be "
    "repeated.",
)
@click.option(
    "--run-functions/--no-run-functions",
    default=True,
    show_default=True,
    help="Run the author's functions on an embedded cluster, to observe what they use; requires konverge-cluster.",
)
@click.option("--events/--no-events", default=True, show_default=True, help="Grant permissions to record events.")
@click.option(
    "--diagnosis/--no-diagnosis",
    default=True,
    show_default=True,
    help="Grant permissions to examine the pods of late workloads.",
)
@click.option("--leader-elect", is_flag=True, help="Grant permissions for leader election.")
@click.option(
    "--shards",
    type=click.IntRange(1, 256),
    metavar="[N]",
    help="Grant permissions for shards; the number does not change the output.",
)
@click.option("--lease-name", default="", help="Name of the Lease (default: the operator's name).")
@click.option("--metrics-auth", is_flag=True, help="Grant permissions to authorize metrics clients.")
@click.option("--register-webhooks", is_flag=True, help="Grant permissions to register the webhooks.")
@click.option(
    "--webhook-secret", metavar="NAMESPACE/NAME", help="Secret with the webhook certificate that the replicas share."
)
@click.option(
    "--install-crds", is_flag=True, help="Grant permissions to apply the operator's CustomResourceDefinitions."
)
@click.option(
    "--check",
    is_flag=True,
    help="Print no manifests; exit with code 1 if permissions cannot be derived, or --roles or --cluster lacks some.",
)
@click.option(
    "--roles",
    "roles",
    multiple=True,
    type=click.Path(path_type=Path),
    help="With --check: file with the roles of the operator. Can be repeated.",
)
@click.option("--cluster", "in_cluster", is_flag=True, help="With --check: ask a cluster what the account may do.")
@click.option(
    "--kubeconfig",
    "kubeconfig_file",
    type=click.Path(path_type=Path),
    help="Kubeconfig file (default: KUBECONFIG, then ~/.kube/config, then the Pod's service account).",
)
@click.option("--context", help="Context in the kubeconfig (default: its current context).")
@output_option
@verbose_option
@click.pass_context
def rbac(
    ctx: click.Context,
    /,
    file: str,
    namespaces: tuple[str, ...],
    account: str,
    samples: tuple[Path, ...],
    run_functions: bool,
    events: bool,
    diagnosis: bool,
    leader_elect: bool,
    shards: int | None,
    lease_name: str,
    metrics_auth: bool,
    register_webhooks: bool,
    webhook_secret: str | None,
    install_crds: bool,
    check: bool,
    roles: tuple[Path, ...],
    in_cluster: bool,
    kubeconfig_file: Path | None,
    context: str | None,
    output: Literal["yaml", "json"],
) -> None:
    """Print the ServiceAccount, the roles that the operator in FILE.py needs, and their bindings.

    The command builds the components for sample owners from the schemas of the classes, and for the owners of --sample.
    It runs the author's functions for the same owners on an embedded cluster, without connections, processes and files.
    It reports gaps and observed access on stderr. Check them before you apply the output with:
    konverge rbac FILE.py | kubectl apply --server-side -f -
    """
    if leader_elect and shards is not None:
        raise click.UsageError("--leader-elect, --shards: expected at most one of them, as in konverge run")
    if lease_name and not (leader_elect or shards is not None):
        raise click.UsageError("--lease-name: requires --leader-elect or --shards")
    granted = GrantedRoles(roles, in_cluster, kubeconfig_file, context)
    if granted.are_given and not check:
        raise click.UsageError("--roles, --cluster: require --check")
    secret = None if webhook_secret is None else parse_namespaced_name("--webhook-secret", webhook_secret)
    facilities = RuntimeFeatures(
        records_events=events,
        diagnoses=diagnosis,
        elects_leader=leader_elect,
        shards=shards is not None,
        lease=lease_name,
        authenticates_metrics=metrics_auth,
        registers_webhooks=register_webhooks,
        installs_definitions=install_crds,
        certificate_secret="" if secret is None else secret.name,
    )
    given = [obj for sample in samples for obj in read_objects(sample)]
    with redirect_stdout_to_stderr():
        reference = parse_operator_reference(file)
        operator = load_operator(reference)
        pods_account = parse_namespaced_name("--account", account or f"default/{operator.name}")
        _check_secret(secret, pods_account)
        observation = None
        if run_functions:
            observation = observe_functions(
                operator, reference, given, in_namespaces=bool(namespaces), records_events=events
            )
        found = call_with_timeout(
            _LONGEST_SECONDS,
            lambda: derive_permissions(
                operator.registered.declaration, facilities, samples=given, observation=observation
            ),
            "building components for sample owners",
        )
    for access in found.observed:
        click.echo(f"konverge: observed: {access.format_declaration()}", err=True)
    for gap in found.gaps:
        click.echo(f"konverge: not derived: {' '.join(gap.split())}", err=True)
    if check:
        missing, unneeded = find_differences(granted, found, pods_account, namespaces)
        for line in missing:
            click.echo(f"konverge: {line}", err=True)
        for line in unneeded:
            click.echo(f"konverge: not required: {line}", err=True)
        ctx.exit(ExitCode.FAILED if found.gaps or missing else 0)
    click.echo(format_manifests(build_role_manifests(found, pods_account, namespaces), output), nl=False)


def _check_secret(secret: ObjectKey | None, account: ObjectKey) -> None:
    """Raise an error if the role in the account's namespace would not cover the Secret."""
    if secret is not None and secret.namespace != account.namespace:
        raise ConfigurationError(
            f"--webhook-secret: expected the namespace of --account ({account.namespace!r}), where the operator stores "
            f"its certificate, found {secret.namespace!r}"
        )

"""``konverge rbac``: what an operator has to be allowed, derived from what it declares."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from konverge.cli.crd import format_objects, output_option
from konverge.cli.main import verbose_option
from konverge.cli.namespaced_name import parse_namespaced_name
from konverge.cli.operator_file import load_operator, parse_operator_reference
from konverge.cli.user_code import call_with_timeout, redirect_stdout_to_stderr
from konverge.cli.yaml_documents import read_objects
from konverge.errors import ConfigurationError
from konverge.kube import ObjectKey
from konverge.operator.permission_derivation import MAX_FACTORY_SECONDS, RuntimeFeatures, derive_permissions
from konverge.operator.role_manifests import build_role_manifests

__all__ = ["rbac"]

# For a function that never returns: those that are only slow are given up before.
_LONGEST_SECONDS = MAX_FACTORY_SECONDS + 5.0


class _RbacCommand(click.Command):
    """Takes ``--shards`` with the number that ``konverge run`` wants, or without."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        told = [
            f"{word}=1" if word == "--shards" and not "".join(args[place + 1 : place + 2]).isdecimal() else word
            for place, word in enumerate(args[:end])
        ]
        return super().parse_args(ctx, [*told, *args[end:]])


@click.command(cls=_RbacCommand)
@click.argument("file", metavar="FILE.py[:OPERATOR]|FILE.yaml")
@click.option("--namespace", "namespaces", multiple=True, help="Grant rights in this namespace alone; repeatable.")
@click.option(
    "--account",
    metavar="NAMESPACE/NAME",
    default="",
    help="The ServiceAccount of the operator's Pods; default/<operator> when not given.",
)
@click.option("--sample", "samples", multiple=True, type=click.Path(path_type=Path), help="More owners to build for.")
@click.option("--events/--no-events", default=True, show_default=True, help="The operator records events.")
@click.option("--leader-elect", is_flag=True, help="One of several replicas works.")
@click.option(
    "--shards",
    type=click.IntRange(1, 256),
    metavar="[N]",
    help="Several replicas divide the owners; into how many parts makes no difference here.",
)
@click.option("--lease-name", default="", help="The Lease's name; the operator's when not given.")
@click.option("--metrics-auth", is_flag=True, help="Who reads metrics is asked for a token.")
@click.option("--register-webhooks", is_flag=True, help="The operator registers its webhooks itself.")
@click.option("--webhook-secret", metavar="NAMESPACE/NAME", help="Replicas share the webhooks' certificate there.")
@click.option("--install-crds", is_flag=True, help="The operator applies its own definitions.")
@output_option
@verbose_option
def rbac(
    file: str,
    namespaces: tuple[str, ...],
    account: str,
    samples: tuple[Path, ...],
    events: bool,
    leader_elect: bool,
    shards: int | None,
    lease_name: str,
    metrics_auth: bool,
    register_webhooks: bool,
    webhook_secret: str | None,
    install_crds: bool,
    output: Literal["yaml", "json"],
) -> None:
    """Print a ServiceAccount, the roles that the operator in FILE.py needs, and their bindings.

    They are derived: its components are built for sample owners made from the schemas of its classes, and for those of
    --sample. What could not be found out stands on stderr; look at it before you apply the rest with:
    konverge rbac FILE.py | kubectl apply --server-side -f -
    """
    if leader_elect and shards is not None:
        raise click.UsageError("--leader-elect and --shards exclude each other, as they do in konverge run")
    if lease_name and not (leader_elect or shards is not None):
        raise click.UsageError("--lease-name: does nothing without --leader-elect or --shards")
    secret = None if webhook_secret is None else parse_namespaced_name("--webhook-secret", webhook_secret)
    facilities = RuntimeFeatures(
        records_events=events,
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
        operator = load_operator(parse_operator_reference(file))
        pods_account = _parse_account(account, operator.name)
        _check_secret(secret, pods_account)
        found = call_with_timeout(
            _LONGEST_SECONDS,
            lambda: derive_permissions(operator.registered.declaration, facilities, samples=given),
            "building components for sample owners",
        )
    granted = build_role_manifests(found, pods_account, namespaces)
    for gap in found.gaps:
        click.echo(f"konverge: not derived: {' '.join(gap.split())}", err=True)
    click.echo(format_objects(granted, output), nl=False)


def _parse_account(text: str, operator: str) -> ObjectKey:
    if not text:
        return ObjectKey("default", operator)
    namespace, slash, name = text.partition("/")
    if not slash:
        raise click.UsageError(f"--account: expected NAMESPACE/NAME, found {text!r}")
    return ObjectKey(namespace, name)


def _check_secret(secret: ObjectKey | None, account: ObjectKey) -> None:
    """Fail where the role in the account's namespace would not be for the Secret."""
    if secret is not None and secret.namespace != account.namespace:
        raise ConfigurationError(
            f"--webhook-secret: the operator keeps its certificate in its own namespace, which is "
            f"{account.namespace!r} by --account (found {secret.namespace!r})"
        )

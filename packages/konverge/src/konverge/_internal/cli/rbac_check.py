"""``konverge rbac --check``: the derived permissions compared with those in files or of an account in a cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import click

from konverge._internal.cli.yaml_documents import read_objects
from konverge._internal.client.connect import connect
from konverge._internal.kube import ObjectKey
from konverge._internal.operator.granted_permissions import AccountReviewer, RolesReviewer, find_unneeded_rules
from konverge._internal.operator.permission_check import MissingPermission, find_missing_permissions
from konverge._internal.operator.permission_derivation import RequiredPermissions
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, KonvergeError

__all__ = ["GrantedRoles", "find_differences"]

_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class GrantedRoles:
    """The place of the roles that an operator has.

    Args:
        files: Files with the roles.
        in_cluster: True to ask a cluster about the account.
        kubeconfig_file: The kubeconfig file; None for the default files.
        context: The context in the kubeconfig; None for the current one.

    Raises:
        click.UsageError: The options contradict each other.
    """

    files: tuple[Path, ...] = ()
    in_cluster: bool = False
    kubeconfig_file: Path | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        if self.files and self.in_cluster:
            raise click.UsageError("--roles, --cluster: expected at most one of them")
        if (self.kubeconfig_file or self.context) and not self.in_cluster:
            raise click.UsageError("--kubeconfig, --context: require --cluster")

    @property
    def are_given(self) -> bool:
        """True if there is something to compare with."""
        return bool(self.files) or self.in_cluster


def find_differences(
    roles: GrantedRoles, required: RequiredPermissions, account: ObjectKey, namespaces: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the missing permissions, and the unnecessary ones of files, one line each.

    Args:
        roles: The place of the roles.
        required: The derived permissions.
        account: The ServiceAccount of the operator.
        namespaces: The namespaces of the owners; all if empty.

    Raises:
        konverge.errors.ConfigurationError: A file has no roles.
        konverge.errors.ApiError: The cluster refuses the question.
        konverge.errors.KonvergeError: The cluster does not answer in time.
    """
    if roles.in_cluster:
        return list(map(str, asyncio.run(_ask_cluster(roles, required, account, namespaces)))), []
    if not roles.files:
        return [], []
    try:
        reviewer = RolesReviewer([obj for file in roles.files for obj in read_objects(file)])
    except ConfigurationError as error:
        raise ConfigurationError(f"{', '.join(map(str, roles.files))}: {error}") from error
    missing = asyncio.run(
        find_missing_permissions(reviewer, required, role=account.name, home=account.namespace, namespaces=namespaces)
    )
    return list(map(str, missing)), list(find_unneeded_rules(reviewer, required))


async def _ask_cluster(
    roles: GrantedRoles, required: RequiredPermissions, account: ObjectKey, namespaces: Sequence[str]
) -> list[MissingPermission]:
    agent = f"konverge/{version('konverge')} (rbac)"
    connection = connect(roles.kubeconfig_file, roles.context, user_agent=agent, clock=SystemClock())
    try:
        async with connection as client, asyncio.timeout(_SECONDS):
            return await find_missing_permissions(
                AccountReviewer(client, account),
                required,
                role=account.name,
                home=account.namespace,
                namespaces=namespaces,
            )
    except TimeoutError:
        raise KonvergeError(f"--cluster: no answer to the questions about {account} within {_SECONDS:g} s") from None

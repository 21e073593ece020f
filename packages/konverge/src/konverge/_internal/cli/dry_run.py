"""The dry run of one owner and its output for programs, shared by ``konverge diff`` and ``konverge explain``."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import yaml

from konverge._internal.cli.owner_arguments import ClusterFlags, NamedOwner, OwnerInFile, read_owner
from konverge._internal.client import Client
from konverge._internal.crd import find_definition
from konverge._internal.operator import Operator
from konverge._internal.operator.dry_run import OwnerDryRun, dry_run_owner
from konverge.errors import KindNotServedError

__all__ = ["dry_run_argument", "encode_output"]

_FIELD_MANAGER = "konverge-diff"


async def dry_run_argument(
    client: Client,
    operator: Operator,
    found: NamedOwner | OwnerInFile,
    flags: ClusterFlags,
    failures: list[BaseException],
    *,
    examines: bool = False,
) -> OwnerDryRun:
    """Return the dry run of the next reconcile of one owner; an owner in a file as the server would store it.

    Args:
        client: The cluster.
        operator: The operator that reconciles the owner.
        found: The owner.
        flags: The options for the cluster.
        failures: Receives each error of the reconcile.
        examines: True to examine objects that are not ready, with more reads.
    """
    if isinstance(found, NamedOwner):
        obj = await read_owner(client, found, flags)
    else:
        if find_definition(found.registration.cls).namespaced and not found.obj["metadata"].get("namespace"):
            found.obj["metadata"]["namespace"] = flags.get_namespace()
        try:
            obj = (await client.apply(found.obj, field_manager=_FIELD_MANAGER, dry_run=True)).object
        except KindNotServedError as error:
            raise KindNotServedError(f"{error} (konverge crd prints its definition)") from error
    registered = operator.registered
    return await dry_run_owner(
        found.registration,
        obj,
        client,
        indexes=registered.indexes,
        adopt=registered.adopt,
        operator_name=registered.name,
        on_failure=failures.append,
        examines=examines,
    )


def encode_output(value: Any, output: Literal["yaml", "json"]) -> str:
    """Return a value as YAML or JSON for programs."""
    plain = msgspec.to_builtins(value)
    if output == "json":
        return json.dumps(plain, indent=2) + "\n"
    return yaml.safe_dump(plain, sort_keys=False, width=120)

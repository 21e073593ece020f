"""What ``konverge diff`` and ``konverge explain`` share: the rehearsal of one owner, and how a program gets it."""

from __future__ import annotations

import json
from typing import Any, Literal

import msgspec
import yaml

from konverge.cli.owners import ClusterFlags, NamedOwner, OwnerInFile, read_owner
from konverge.client import Client
from konverge.crd import definition_of
from konverge.errors import KindNotServedError
from konverge.operator import Operator
from konverge.operator.rehearsing import OwnerRehearsal, rehearse_owner

__all__ = ["encoded", "rehearsed"]

_FIELD_MANAGER = "konverge-diff"


async def rehearsed(
    client: Client,
    operator: Operator,
    found: NamedOwner | OwnerInFile,
    flags: ClusterFlags,
    failures: list[BaseException],
) -> OwnerRehearsal:
    """The next pass over one owner; one of a file as the server would store it.

    Args:
        client: The cluster.
        operator: Whose pass it is.
        found: The owner.
        flags: What the options say.
        failures: Gets each error that the pass ends with.
    """
    if isinstance(found, NamedOwner):
        obj = await read_owner(client, found, flags)
    else:
        if definition_of(found.registration.cls).namespaced and not found.obj["metadata"].get("namespace"):
            found.obj["metadata"]["namespace"] = flags.own_namespace()
        try:
            obj = (await client.apply(found.obj, field_manager=_FIELD_MANAGER, dry_run=True)).object
        except KindNotServedError as error:
            raise KindNotServedError(f"{error} (konverge crd prints its definition)") from error
    registered = operator.registered
    return await rehearse_owner(
        found.registration,
        obj,
        client,
        indexes=registered.indexes,
        adopt=registered.adopt,
        on_failure=failures.append,
    )


def encoded(value: Any, output: Literal["yaml", "json"]) -> str:
    """A value for programs."""
    found = msgspec.to_builtins(value)
    if output == "json":
        return json.dumps(found, indent=2) + "\n"
    return yaml.safe_dump(found, sort_keys=False, width=120)

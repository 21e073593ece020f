"""An operator that puts values of Secrets everywhere an operator can, with everything that it shows on its output."""

from __future__ import annotations

import base64
import logging
import sys
from dataclasses import dataclass
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from konverge import Component, ComponentBuilder, Object, Operator, OwnerContext, Result
from konverge.crd import Metadata, custom_resource
from konverge.errors import ReconcileError
from konverge.kube import Condition, GroupVersionKind, ObjectKey
from konverge.mutation import Mutation
from konverge.options import read_only
from konverge.primitives import ConfigMap, Data, Deployment, Secret, Service

MADE = "made-4f1d0c9be27a"
GIVEN = 'given-"9a\\7e/3c+b1 d5\n64'
TYPED = "Typed5c0ffee8b3d1"
VALUES = (MADE, GIVEN, TYPED)
SECRET = GroupVersionKind("", "v1", "Secret")
REFUSERS = ("hooked", "policed")

if "run" in sys.argv[:3]:
    logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, force=True)
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
    trace.set_tracer_provider(provider)


@dataclass
class VaultSpec:
    refuser: str = "hooked"


@custom_resource(group="vaults.konverge.test", version="v1")
@dataclass
class Vault:
    """Its components hold values of Secrets."""

    metadata: Metadata
    spec: VaultSpec


@custom_resource(group="vaults.konverge.test", version="v1")
@dataclass
class Clerk:
    """Has a reconcile function of the author's own."""

    metadata: Metadata
    spec: VaultSpec


def build_metadata(vault: Vault | Clerk, part: str) -> Object:
    return {"name": f"{vault.metadata.name}-{part}", "namespace": vault.metadata.namespace}


def source(vault: Vault, cell: Data[str]) -> Secret:
    """The Secret of somebody else, whose value goes into a cell."""

    def decode(live: Object) -> str:
        return base64.b64decode(live["data"]["token"]).decode()

    metadata = {"name": "source", "namespace": vault.metadata.namespace}
    return Secret({"metadata": metadata}, extract=cell.fill_with(decode))


def build_made(vault: Vault) -> Component:
    """A Secret that is refused, and one that the server warns of."""
    warned = {"metadata": build_metadata(vault, "warned"), "stringData": {"token": MADE}}
    refused = {"metadata": build_metadata(vault, "refused"), "stringData": {"token": MADE}}
    return (
        ComponentBuilder("made", condition_type="MadeReady")
        .with_resource(Secret(warned))
        .with_resource(Secret(refused))
        .build()
    )


def build_copied(vault: Vault) -> Component:
    """Objects of other kinds that a cell's value is copied to."""
    cell: Data[str] = Data("token")

    def set_entry(edit: Any) -> None:
        edit.set_entry("token", cell.require())

    def copy(part: str) -> ConfigMap:
        obj = {"metadata": build_metadata(vault, part)}
        return ConfigMap(obj, requires=cell, mutations=Mutation("copy", set_entry))

    return (
        ComponentBuilder("copied", condition_type="CopiedReady")
        .with_resource(source(vault, cell), read_only())
        .with_resource(copy("warned"))
        .with_resource(copy("refused"))
        .build()
    )


def invalid(vault: Vault) -> Component:
    """A value where the server expects one of its own words, so that it quotes what it found."""
    cell: Data[str] = Data("type")

    def decode(live: Object) -> str:
        return base64.b64decode(live["data"]["type"]).decode()

    metadata = {"name": "source", "namespace": vault.metadata.namespace}
    service = {"metadata": build_metadata(vault, "invalid"), "spec": {"ports": [{"port": 80}]}}

    def set_type(edit: Any) -> None:
        edit.edit_service_spec(lambda spec: spec.set(type=cell.require()))

    return (
        ComponentBuilder("invalid", condition_type="InvalidReady")
        .with_resource(Secret({"metadata": metadata}, extract=cell.fill_with(decode)), read_only())
        .with_resource(
            Service(
                service,
                requires=cell,
                mutations=Mutation("type", set_type),
            )
        )
        .build()
    )


def pods(vault: Vault) -> Component:
    """Pods that are refused: their controller repeats the words in the Deployment's status."""
    cell: Data[str] = Data("env")
    labels = {"vault": vault.metadata.name}
    pod = {"containers": [{"name": "main", "image": "konverge.test/app:1"}]}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}

    def set_variable(workload: Any) -> None:
        workload.ensure_container_env_var({"name": "TOKEN", "value": cell.require()})

    return (
        ComponentBuilder("pods", condition_type="PodsReady")
        .with_resource(source(vault, cell), read_only())
        .with_resource(
            Deployment(
                {"metadata": build_metadata(vault, "refused"), "spec": spec},
                requires=cell,
                mutations=Mutation("env", set_variable),
            )
        )
        .build()
    )


async def work(clerk: Clerk, ctx: OwnerContext) -> Result | None:
    """Try all that the server refuses, and say what it said in as many ways as there are."""
    found = await ctx.cluster.get(SECRET, ObjectKey(clerk.metadata.namespace or "", "source"))
    token = base64.b64decode(found["data"]["token"]).decode()
    kind = base64.b64decode(found["data"]["type"]).decode()
    config_map: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": build_metadata(clerk, "refused")}
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": build_metadata(clerk, "refused")}
    service: Object = {"apiVersion": "v1", "kind": "Service", "metadata": build_metadata(clerk, "invalid")}
    tries = (
        ctx.cluster.create({**config_map, "data": {"token": token}}),
        ctx.cluster.create({**secret, "stringData": {"token": MADE}}),
        ctx.cluster.create({**secret, "type": MADE, "data": {"token": base64.b64encode(MADE.encode()).decode()}}),
        ctx.cluster.apply({**secret, "data": [MADE]}, field_manager="clerk"),
        ctx.cluster.create({**secret, "data": {"token": MADE}}),
        ctx.cluster.create({**service, "spec": {"type": kind, "ports": [{"port": 80}]}}),
        ctx.cluster.apply({**service, "spec": {"ports": kind}}, field_manager="clerk"),
        ctx.cluster.apply(
            {**config_map, "metadata": build_metadata(clerk, "warned"), "data": {"t": token}}, field_manager="c"
        ),
        ctx.cluster.live.update({**found, "type": MADE}, dry_run=True, field_validation="Strict"),
        ctx.cluster.live.update({**found, "unknown": MADE}, dry_run=True, field_validation="Strict"),
    )
    errors = []
    for each in tries:
        try:
            await each
        except Exception as error:
            logging.getLogger("vaults").exception("the server refuses")
            errors.append(error)
    told = "; ".join(f"{error!r} {error.causes} {error.to_status()}" for error in errors)  # type: ignore[attr-defined]
    ctx.stage(Condition("Ready", "False", "Refused", told))
    await ctx.flush_status()
    raise ReconcileError(told) from errors[0]


operator = Operator("vaults")
operator.manages(Vault, build_made, build_copied, invalid, pods)
operator.reconciles(Clerk)(work)

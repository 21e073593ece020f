"""An operator whose owners read definitions, and the desk at which these are asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from konverge import Metadata, Operator, OwnerContext, custom_resource
from konverge.clock import SeededEntropy
from konverge.component import ComponentBuilder
from konverge.crd import crd_manifest
from konverge.kube import Condition, GroupVersionKind, Object, ObjectKey, find_condition
from konverge.mutation import Mutation
from konverge.options import read_only
from konverge.primitives import ConfigMap, ConfigMapMutator, Data
from konverge_resolution._internal.engine import Engine
from konverge_resolution._internal.reference_parsing import ParsedReference, parse_reference
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution.consumer import DefinitionClient, DefinitionRecord, RemoteDefinition
from tests.resolution.requests.request_namespace import RequestNamespace

READER = GroupVersionKind("consuming.konverge.test", "v1", "Reader")


@dataclass(frozen=True)
class ReaderSpec:
    """The versions of what is read, by name, and the resolvers where they differ; ``seconds`` is how long it takes."""

    reads: dict[str, str] = field(default_factory=dict)
    seconds: str = "0"
    resolver: str = "shelf"
    otherwise: str = ""
    resolvers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ReaderStatus:
    definitions: dict[str, DefinitionRecord] = field(default_factory=dict)


@custom_resource(group=READER.group, version=READER.version, kind=READER.kind)
@dataclass(frozen=True)
class Reader:
    metadata: Metadata
    spec: ReaderSpec
    status: ReaderStatus = field(default_factory=ReaderStatus)


def build_reference(spec: ReaderSpec, name: str, version: str) -> ParsedReference:
    """What an owner asks for under a name."""
    params = {"url": f"https://a.example/{name}", "version": version, "seconds": spec.seconds}
    reference: dict[str, Any] = {"resolver": spec.resolvers.get(name, spec.resolver), "params": params}
    if spec.otherwise:
        reference["orElse"] = [{"resolver": spec.otherwise, "params": params}]
    return parse_reference(reference)


@dataclass
class ConsumerHarness:
    """The operator of the tests.

    Args:
        desk: Where.
        in_process: Whether it fetches by itself; else by request.
        passes: How many there were.
    """

    desk: RequestNamespace
    in_process: bool = False
    passes: int = 0
    resolvers: tuple[Any, ...] = ()

    @asynccontextmanager
    async def running(self, *resolvers: Any, serves: bool = True) -> AsyncIterator[None]:
        """Run it, and what fulfils its requests."""
        self.resolvers = resolvers
        async with AsyncExitStack() as stack:
            if serves and not self.in_process:
                await stack.enter_async_context(self.desk.running_resolvers(*resolvers))
            await stack.enter_async_context(self.desk.cluster.run_operator(self.operator()))
            yield

    def operator(self) -> Operator:
        operator = Operator("readers")
        engine = self._engine if self.in_process else None
        definitions = DefinitionClient(operator, engine=engine, records_field="definitions")

        @operator.reconciles(Reader, workers=1)
        async def reconcile(reader: Reader, ctx: OwnerContext) -> None:
            self.passes += 1
            async with ctx.flushing_status():
                asked = {
                    name: build_reference(reader.spec, name, version) for name, version in reader.spec.reads.items()
                }
                found = await definitions.request_all(asked, ctx)
                builder = ComponentBuilder("pages", condition_type="PagesReady")
                for name, each in found.items():
                    cell: Data[RemoteDefinition] = Data(name)
                    builder.with_resource(each.as_resource(cell), read_only())
                    builder.with_resource(page(reader, name, cell))
                await builder.build().reconcile(ctx)

        return operator

    @asynccontextmanager
    async def _engine(self) -> AsyncIterator[Engine]:
        clock = self.desk.cluster.clock
        yield Engine(ResolverRegistry.of(self.resolvers), self.desk.services, clock=clock, entropy=SeededEntropy())

    async def create(self, name: str, **spec: Any) -> Object:
        return await self.desk.cluster.client.create(
            {
                "apiVersion": READER.api_version,
                "kind": READER.kind,
                "metadata": {"name": name, "namespace": self.desk.namespace},
                "spec": spec,
            }
        )

    async def get(self, name: str = "a") -> Object:
        return await self.desk.cluster.client.get(READER, self.desk.key(name))

    async def edit(self, name: str = "a", **spec: Any) -> None:
        await self.desk.cluster.client.patch(READER, self.desk.key(name), {"spec": spec}, patch_type="merge")

    async def wait_for_condition(
        self, name: str = "a", condition_type: str = "DefinitionsResolved", *, reason: str, within: float = 20
    ) -> Condition:
        """The condition, as soon as it has that reason."""

        async def found() -> Condition | None:
            condition = find_condition(await self.get(name), condition_type)
            return condition if condition is not None and condition.reason == reason else None

        return await self.desk.cluster.eventually(
            found, timeout_seconds=within, describe=f"{condition_type} of {name}: {reason}"
        )


def page(reader: Reader, name: str, cell: Data[RemoteDefinition]) -> ConfigMap:
    """A resource that needs a definition."""

    def fill(config_map: ConfigMapMutator) -> None:
        config_map.set_entry("text", cell.require().data.decode())

    return ConfigMap(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"page-{reader.metadata.name}-{name}", "namespace": reader.metadata.namespace},
        },
        requires=cell,
        mutations=Mutation("text", fill),
    )


async def build_consumer_harness(desk: RequestNamespace, *, in_process: bool = False) -> ConsumerHarness:
    await desk.cluster.install(crd_manifest(Reader))
    return ConsumerHarness(desk, in_process)


def build_page_key(desk: RequestNamespace, owner: str, name: str) -> ObjectKey:
    return desk.key(f"page-{owner}-{name}")


def read_recorded(reader: Object) -> Mapping[str, Any]:
    found: Mapping[str, Any] = reader["status"]["definitions"]
    return found


__all__ = ["READER", "ConsumerHarness", "build_consumer_harness", "build_page_key", "read_recorded"]

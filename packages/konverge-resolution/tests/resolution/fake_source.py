"""A source with versions whose definitions refer to each other, kept in memory; and an engine that asks it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from konverge.clock import SeededEntropy, SimulatedClock
from konverge_resolution import (
    Digest,
    FetchRequest,
    Parameter,
    ParameterRole,
    Parameters,
    Provenance,
    Reason,
    Reference,
    ResolutionError,
    ResolvedContent,
    Services,
    Setting,
)
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution.relative_references import join_path

CLOCK = SimulatedClock()
WEB = Requester("web")
ROOT = "https://library.example"


def build_document(name: str, **spec: Any) -> bytes:
    """A definition of the tests."""
    return yaml.safe_dump(
        {"apiVersion": "v1", "kind": "Pipeline", "metadata": {"name": name}, "spec": spec}, sort_keys=True
    ).encode()


def build_reference(path: str, version: str = "main", resolver: str = "library", **params: str) -> Reference:
    return Reference(resolver, {"path": path, "version": version, **params})


@dataclass
class FakeSource:
    """Files by version; what is no number is a branch, and `heads` says where it is.

    Args:
        versions: By number, the files.
        heads: By branch, the number.
        failure: Raised by every fetch.
    """

    versions: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"1": {}})
    heads: dict[str, str] = field(default_factory=lambda: {"main": "1"})
    failure: ResolutionError | None = None
    name: str = "library"
    seconds: float = 0.0
    fetched: list[str] = field(default_factory=list)
    lookups: int = 0
    parameters: Mapping[str, Parameter] = field(
        default_factory=lambda: {
            "path": Parameter("where", required=True),
            "version": Parameter("which", default="main", role=ParameterRole.VERSION),
        }
    )
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def validate(self, params: Parameters, settings: Mapping[str, str]) -> Parameters:
        if not isinstance(params.get("path"), str):
            raise ResolutionError(Reason.INVALID_PARAMETERS, "parameter 'path': expected a path, found none")
        return {"version": "main", **params}

    def source_uri(self, params: Parameters, settings: Mapping[str, str]) -> str:
        return ROOT

    def is_pinned(self, params: Parameters) -> bool:
        return str(params["version"]).isdecimal()

    def resolve_relative(self, params: Parameters, path: str) -> Parameters:
        return {**params, "path": join_path(str(params["path"]), path)}

    async def pin(self, fetch: FetchRequest) -> Parameters | None:
        self.lookups += 1
        self._fail()
        try:
            return {**fetch.params, "version": self.heads[str(fetch.params["version"])]}
        except KeyError:
            raise ResolutionError(Reason.NOT_FOUND, "there is no such branch") from None

    async def resolve(self, fetch: FetchRequest) -> ResolvedContent:
        self._fail()
        await fetch.services.clock.sleep(self.seconds)
        version, path = str(fetch.params["version"]), str(fetch.params["path"])
        self.fetched.append(f"{path}@{version}")
        try:
            data = self.versions[version][path]
        except KeyError:
            raise ResolutionError(Reason.NOT_FOUND, f"there is no {path} in version {version}") from None
        return ResolvedContent(data, Provenance(ROOT, {"sha256": Digest.of(data).hex}, path), pinned=fetch.params)

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


def build_services(requester: Requester, admission: PolicyDecision) -> Services:
    nothing: Any = None
    return Services(http=nothing, secrets=nothing, workspaces=nothing, clock=CLOCK)


def build_engine(*resolvers: Any, **more: Any) -> Engine:
    return Engine(ResolverRegistry.of(resolvers), build_services, clock=CLOCK, entropy=SeededEntropy(), **more)

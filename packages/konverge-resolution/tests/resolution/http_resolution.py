"""Resolvers that ask over HTTP, with what they need: Secrets of a test, the guarded client, an engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from konverge.clock import SeededEntropy, SystemClock
from konverge_resolution import FetchRequest, Reason, ResolutionError, ResolvedContent, Resolver, Services
from konverge_resolution._internal.engine import Engine, Requester
from konverge_resolution._internal.policy import PolicyDecision
from konverge_resolution._internal.resolver_registry import ResolverRegistry
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution.network import GuardedHttp
from tests.resolution.network.http_servers import build_guarded_http

TASK = b"apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: build}\n"


class QuickClock(SystemClock):
    """The machine's clock, for which every pause is over at once; it notes how long they were to be."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Secrets:
    """Secrets of the requester's namespace; it notes which were read."""

    def __init__(self, secrets: Mapping[str, Mapping[str, str]]) -> None:
        self._secrets = secrets
        self.read: list[str] = []

    async def read_value(self, name: str, key: str) -> str:
        found = await self.read_all(name)
        if key not in found:
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, "a Secret or a value in it is not there")
        return found[key].decode()

    async def read_all(self, name: str) -> Mapping[str, bytes]:
        self.read.append(name)
        if name not in self._secrets:
            raise ResolutionError(Reason.AUTHENTICATION_REQUIRED, "a Secret or a value in it is not there")
        return {key: value.encode() for key, value in self._secrets[name].items()}

    async def list_pull_secrets(self, service_account: str) -> tuple[str, ...]:
        return ()


def build_fetch(
    resolver: Resolver,
    params: Mapping[str, Any],
    settings: Mapping[str, str] | None = None,
    *,
    secrets: Mapping[str, Mapping[str, str]] | None = None,
    http: GuardedHttp | None = None,
    seconds: float = 10.0,
) -> FetchRequest:
    """A resolution as the engine makes it: settings and parameters are checked, and have their defaults."""
    parsed, mistakes = parse_settings(settings or {}, resolver.settings)
    assert not mistakes
    chosen = parsed.select()
    nothing: Any = None
    return FetchRequest(
        params=resolver.validate(params, chosen),
        settings=chosen,
        namespace="web",
        user="",
        seconds=seconds,
        services=Services(
            http=http or build_guarded_http(), secrets=Secrets(secrets or {}), workspaces=nothing, clock=SystemClock()
        ),
    )


async def resolve(resolver: Resolver, params: Mapping[str, Any], *more: Any, **others: Any) -> ResolvedContent:
    """Resolve without the engine."""
    return await resolver.resolve(build_fetch(resolver, params, *more, **others))


async def expect_resolution_error(
    resolver: Resolver, params: Mapping[str, Any], *more: Any, **others: Any
) -> ResolutionError:
    """The error that a resolution ends with, be it at once."""
    with pytest.raises(ResolutionError) as caught:
        await resolve(resolver, params, *more, **others)
    return caught.value


def build_engine(resolver: Resolver, clock: QuickClock, settings: Mapping[str, str] | None = None) -> Engine:
    """An engine around one resolver."""

    def services_for(requester: Requester, admission: PolicyDecision) -> Services:
        nothing: Any = None
        return Services(http=build_guarded_http(), secrets=Secrets({}), workspaces=nothing, clock=clock)

    registry = ResolverRegistry.of([resolver], {resolver.name: settings or {}})
    return Engine(registry, services_for, clock=clock, entropy=SeededEntropy())

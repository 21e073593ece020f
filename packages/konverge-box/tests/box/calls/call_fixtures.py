"""Fixtures for calls: a scope, Secrets, a caller that does not sleep, an HTTP server."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml
from aiohttp import web

from konverge._internal.kube.selectors import LabelSelector
from konverge.clock import SeededEntropy, SystemClock
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_box._internal.calls import Caller, ExternalCalls
from konverge_box._internal.file import ExternalCall
from konverge_box._internal.steps import Scope
from konverge_box.expressions import EvaluationEnvironment
from tests.resolution.network.http_servers import FakeDns, RequestHandlerFunction, route_paths
from tests.resolution.network.http_servers import serve_site as served_site

WHERE = "spec.crds.website.external"
LOOPBACK = ("127.0.0.0/8",)
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)


def compile_calls(text: str, *, allowed: Sequence[str] = LOOPBACK) -> ExternalCalls:
    """Compile the calls of a YAML list, as in ``external``."""
    return ExternalCalls(msgspec.convert(yaml.safe_load(text), tuple[ExternalCall, ...]), WHERE, allowed)


def build_scope(**names: Any) -> Scope:
    metadata = {"name": "web", "namespace": "shop"}
    return Scope({"metadata": metadata, "spec": {}, "status": {}, "cross": {}, **names}, EvaluationEnvironment(now=NOW))


class Secrets:
    """A reader of Secrets by ``namespace/name``, which records its reads."""

    def __init__(self, secrets: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.secrets = secrets or {}
        self.read: list[str] = []

    async def get(self, gvk: GroupVersionKind, key: ObjectKey, *, live: bool = False) -> Object:
        assert gvk == GroupVersionKind("", "v1", "Secret")
        named = f"{key.namespace}/{key.name}"
        self.read.append(named)
        if named not in self.secrets:
            raise NotFoundError(f"no Secret {named}")
        data = {name: base64.b64encode(value.encode()).decode() for name, value in self.secrets[named].items()}
        return {"apiVersion": "v1", "kind": "Secret", "data": data}

    async def list(
        self, gvk: GroupVersionKind, *, namespace: str = "", labels: Mapping[str, str] | LabelSelector | str = ""
    ) -> list[Object]:
        raise AssertionError("calls list nothing")


class QuickClock(SystemClock):
    """The system clock whose sleeps return immediately. It records their durations."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def build_caller(**options: Any) -> Caller:
    return Caller(**{"clock": QuickClock(), "entropy": SeededEntropy(1), "lookup": FakeDns(), **options})


async def run_calls(
    text: str,
    *,
    by: Caller | None = None,
    secrets: Secrets | None = None,
    allowed: Sequence[str] = LOOPBACK,
    namespace: str = "shop",
    **names: Any,
) -> dict[str, Any]:
    """Compile calls and run them."""
    compiled = compile_calls(text, allowed=allowed)
    return await compiled.run_calls(
        build_scope(**names), by or build_caller(), reader=secrets or Secrets(), namespace=namespace
    )


def serve_site(**served: RequestHandlerFunction) -> AbstractAsyncContextManager[str]:
    """Start an HTTP server and return its URL without a path; ``prices=handler`` serves ``/prices``."""
    return served_site(route_paths(**served))


def respond_with(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> RequestHandlerFunction:
    async def serve(request: web.Request) -> web.StreamResponse:
        return web.json_response(value, status=status, headers=headers)

    return serve

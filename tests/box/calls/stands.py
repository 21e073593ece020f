"""What stands around calls in tests: a scope, Secrets, names, and servers that behave well or badly."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import yaml
from aiohttp import web

from konverge.box.calls import Caller, Calls
from konverge.box.expressions import Environment
from konverge.box.file import ExternalCall
from konverge.box.steps import Scope
from konverge.clock import SeededEntropy, SystemClock
from konverge.errors import NotFoundError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge.kube.selectors import LabelSelector

WHERE = "spec.crds.website.external"
LOOPBACK = ("127.0.0.0/8",)
NOW = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)

Served = Callable[[web.Request], Awaitable[web.StreamResponse]]
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def calls(text: str, *, allowed: Sequence[str] = LOOPBACK) -> Calls:
    """The calls of a YAML list, as ``external`` has it."""
    return Calls(msgspec.convert(yaml.safe_load(text), tuple[ExternalCall, ...]), WHERE, allowed)


def scope(**names: Any) -> Scope:
    metadata = {"name": "web", "namespace": "shop"}
    return Scope({"metadata": metadata, "spec": {}, "status": {}, "cross": {}, **names}, Environment(now=NOW))


class Secrets:
    """A reader of Secrets, by ``namespace/name``; it notes what was read."""

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
    """The machine's clock, for which every pause is over at once; it notes how long they were to be."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Names:
    """Names of a test: each has a list of answers, of which the last one stays."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(each) for name, each in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers.get(host)
        if not answers:
            raise OSError("no such name")
        return answers.pop(0) if len(answers) > 1 else answers[0]


def caller(**options: Any) -> Caller:
    return Caller(**{"clock": QuickClock(), "entropy": SeededEntropy(1), "lookup": Names(), **options})


async def results(
    text: str,
    *,
    by: Caller | None = None,
    secrets: Secrets | None = None,
    allowed: Sequence[str] = LOOPBACK,
    namespace: str = "shop",
    **names: Any,
) -> dict[str, Any]:
    """Compile calls and make them."""
    compiled = calls(text, allowed=allowed)
    return await compiled.answer(scope(**names), by or caller(), reader=secrets or Secrets(), namespace=namespace)


@asynccontextmanager
async def site(**served: Served) -> AsyncIterator[str]:
    """An HTTP server; ``prices=handler`` serves ``/prices``. Its URL without a path."""
    app = web.Application(client_max_size=8 << 20)
    for name, handler in served.items():

        async def serve(request: web.Request, handler: Served = handler) -> web.StreamResponse:
            return await handler(request)

        app.router.add_route("*", f"/{name}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.0, access_log=None, handler_cancellation=True)
    await runner.setup()
    tcp = web.TCPSite(runner, "127.0.0.1", 0)
    await tcp.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def server(talk: Talk) -> AsyncIterator[int]:
    """A server that talks as it likes; its port. When the block ends, all of its connections must be gone."""
    tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    made = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield made.sockets[0].getsockname()[1]
    finally:
        made.close()
        if tasks:
            # Everybody who hangs waits for the client to go: it has gone, or this fails.
            _, left = await asyncio.wait(tasks, timeout=5)
            assert not left, "a connection was left open"


def saying(text: bytes) -> Talk:
    """One answer to every request, whatever it is, and then the end."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(text)
        await writer.drain()

    return talk


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Takes what comes, and never answers; until the other side hangs up."""
    while await reader.read(65536):
        pass


def answering(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Served:
    async def serve(request: web.Request) -> web.StreamResponse:
        return web.json_response(value, status=status, headers=headers)

    return serve

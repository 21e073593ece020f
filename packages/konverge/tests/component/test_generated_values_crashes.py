"""Generated values after a crash at every request, and after a request that arrives late; on both clusters.

Each chapter runs once to count its requests. Then it runs again for each request: the process dies before the request,
or after the server acted. Or the request is delayed, and arrives after the next process has finished. A recorder notes
every value that the server ever stored.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from konverge.client import Client, Response, StreamingResponse, Transport
from konverge.clock import SystemEntropy
from konverge.component import Component, ComponentBuilder, ReconcileContext
from konverge.kube import ObjectKey
from konverge.options import Option, unowned
from konverge.primitives import ConfigMap, Data, Generated, GeneratedCertificate, GeneratedSecret, Primitive
from tests.component.app import APP, SECRET, ComponentHarness
from tests.simulation.crashing_transport import CrashingTransport

pytestmark = pytest.mark.anyio

NAME = "access"
Death = Literal["before the request", "after the server acted", "late"]


@dataclass
class Recorder:
    """A transport that notes the values of the Secret in every response of the server.

    Args:
        inner: Sends the requests.
    """

    inner: Transport
    values: dict[str, set[str]] = field(default_factory=dict)

    async def request(self, method: str, path: str, **more: Any) -> Response:
        answer: Response = await self.inner.request(method, path, **more)
        if f"/secrets/{NAME}" in path and answer.status < 300:
            self.note(json.loads(answer.body))
        return answer

    def note(self, secret: Mapping[str, Any]) -> None:
        for key, text in (secret.get("data") or {}).items():
            self.values.setdefault(key, set()).add(b64decode(text).decode())

    def stream(self, method: str, path: str, **more: Any) -> AbstractAsyncContextManager[StreamingResponse]:
        return self.inner.stream(method, path, **more)

    async def close(self) -> None:
        await self.inner.close()


@dataclass(frozen=True)
class Chapter:
    """A change of the declaration, after an earlier one has been reconciled.

    Args:
        change: Builds the Secret of the chapter.
        expected: The number of values that each key ever has.
        before: Builds the Secret before the chapter; None for none.
        options: The options of the Secret.
        is_deleted: A user deletes the Secret at the start of the chapter.
    """

    change: Any
    expected: dict[str, int]
    before: Any = None
    options: tuple[Option, ...] = ()
    is_deleted: bool = False


def build_password(namespace: str, **more: Any) -> GeneratedSecret:
    obj = {"metadata": {"name": NAME, "namespace": namespace, "labels": {"app": "shop"}}}
    return GeneratedSecret(obj, **({"values": {"password": Generated.password()}} | more))


def rotate(namespace: str, **more: Any) -> GeneratedSecret:
    return build_password(namespace, rotation="2", **more)


def add_token(namespace: str, **more: Any) -> GeneratedSecret:
    return build_password(namespace, values={"password": Generated.password(), "token": Generated.hex()}, **more)


def issue(namespace: str, **more: Any) -> GeneratedCertificate:
    return GeneratedCertificate({"metadata": {"name": NAME, "namespace": namespace}}, dns_names=["db"], **more)


CHAPTERS = {
    "made": Chapter(build_password, {"password": 1}),
    "made unowned": Chapter(build_password, {"password": 1}, options=(unowned(),)),
    "rotated": Chapter(rotate, {"password": 2}, before=build_password),
    "added": Chapter(add_token, {"password": 1, "token": 1}, before=build_password),
    "deleted": Chapter(build_password, {"password": 2}, before=build_password, is_deleted=True),
    "issued": Chapter(issue, {"tls.crt": 1, "tls.key": 1, "ca.crt": 1}),
}


class Processes:
    """Consecutive processes of an operator with one owner.

    Args:
        app: The owner.
        chapter: The chapter.
    """

    def __init__(self, app: ComponentHarness, chapter: Chapter) -> None:
        self._app = app
        self._chapter = chapter
        self._recorder = Recorder(app.cluster.new_transport())

    @property
    def values(self) -> dict[str, set[str]]:
        """Every value that the server ever stored, by key."""
        return self._recorder.values

    async def run(self, fatal: int, death: Death) -> int:
        """Run the chapter with one death; return the number of requests of the first process."""
        app, chapter = self._app, self._chapter
        if chapter.before is not None:
            await self._converge(CrashingTransport(self._recorder), chapter.before)
        if chapter.is_deleted:
            await app.cluster.client.delete(SECRET, ObjectKey(app.key.namespace, NAME))
        first = CrashingTransport(self._recorder, fatal=fatal, answered=death == "after the server acted")
        process = asyncio.ensure_future(self._converge(first, chapter.change))
        died = asyncio.ensure_future(first.died.wait())
        await asyncio.wait((process, died), return_when=asyncio.FIRST_COMPLETED)
        if fatal:
            assert not process.done(), f"the process ended without request {fatal}"
        for task in (process, died):
            task.cancel()
        await asyncio.gather(process, died, return_exceptions=True)
        if fatal:
            await self._converge(CrashingTransport(self._recorder), chapter.change)
        if fatal and death == "late":
            await first.deliver_late()
            await self._converge(CrashingTransport(self._recorder), chapter.change)
        self._recorder.note(await app.cluster.client.get(SECRET, ObjectKey(app.key.namespace, NAME)))
        return first.sent

    async def _converge(self, transport: CrashingTransport, build: Any) -> None:
        """Reconcile until the component is ready, as the queue would after each request for a requeue."""
        component = self._build_component(build)
        client = Client(transport, user_agent="operator", clock=self._app.cluster.clock)
        message = ""
        for _ in range(5):
            owner = await client.get(APP, self._app.key)
            ctx = ReconcileContext(
                client=client, owner=owner, clock=self._app.cluster.clock, entropy=SystemEntropy(), adopt=False
            )
            async with ctx.flushing_status():
                condition = await component.reconcile(ctx)
            if condition.status == "True":
                return
            message = condition.message
        raise AssertionError(f"the component is not ready: {message}")

    def _build_component(self, build: Any) -> Component:
        content: Data[str] = Data("content")
        secret: Primitive[Any] = build(self._app.key.namespace, extract=content.fill_with(GeneratedSecret.hash_data))
        name = f"{self._app.key.name}-reader"
        reader = ConfigMap(self._app.build_config_map(name), requires=content)
        builder = ComponentBuilder("access", condition_type="AccessReady")
        return builder.with_resource(secret, *self._chapter.options).with_resource(reader).build()


@pytest.fixture
async def apps(new_app: Any) -> Any:
    """Return a function that makes a new owner for each run, and removes the objects of the one before."""
    made: list[ComponentHarness] = []

    async def create() -> ComponentHarness:
        if made:
            await made[-1].cluster.client.delete(SECRET, ObjectKey(made[-1].key.namespace, NAME))
        made.append(await new_app(f"shop-{len(made)}"))
        return made[-1]

    return create


@pytest.mark.parametrize("death", ["before the request", "after the server acted", "late"])
@pytest.mark.parametrize("name", CHAPTERS)
async def test_a_death_at_any_request_makes_no_value_twice(apps: Any, name: str, death: Death) -> None:
    chapter = CHAPTERS[name]
    calm = Processes(await apps(), chapter)
    requests = await calm.run(0, death)
    assert {key: len(values) for key, values in calm.values.items()} == chapter.expected
    assert requests > 3

    for fatal in range(1, requests + 1):
        stormy = Processes(await apps(), chapter)
        await stormy.run(fatal, death)
        counts = {key: len(values) for key, values in stormy.values.items()}
        assert counts == chapter.expected, f"after a death {death} {fatal}"

"""Servers that are cancelled while they start, serve and stop: they leave no tasks or sockets behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from konverge._internal.runtime.observability import ObservabilityOptions, ObservabilityServers, RuntimeSources
from konverge._internal.runtime.webhooks import OperatorHooks, WebhookOptions, WebhookServer
from tests.cancellation_leaks import cancel_again, find_leaks, run_loop_turns

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

Server = Callable[[], AbstractAsyncContextManager[Any]]


def probes() -> ObservabilityServers:
    return ObservabilityServers(
        ObservabilityOptions(metrics_address="0", probe_address="127.0.0.1:0"), RuntimeSources()
    )


def metrics() -> ObservabilityServers:
    return ObservabilityServers(
        ObservabilityOptions(metrics_address="127.0.0.1:0", probe_address="0"), RuntimeSources()
    )


def webhooks() -> WebhookServer:
    return WebhookServer(WebhookOptions(port=0), OperatorHooks())


async def cancel_repeatedly(working: Coroutine[Any, Any, None], *, when: int | asyncio.Event, again: int) -> None:
    """Cancel the coroutine after some loop iterations or after the event, and repeatedly; it must end cancelled."""
    task = asyncio.create_task(working)
    if isinstance(when, int):
        await run_loop_turns(when)
    else:
        async with asyncio.timeout(5):
            await when.wait()
    await cancel_again(task, 1 + again)
    await asyncio.wait([task], timeout=5)
    assert task.cancelled()


async def serve(server: Server) -> None:
    async with server():
        await asyncio.Event().wait()


@pytest.mark.parametrize("turns", range(10))
@pytest.mark.parametrize("server", [probes, metrics, webhooks])
def test_a_server_that_is_cancelled_while_it_starts_leaves_nothing(server: Server, turns: int) -> None:
    assert find_leaks(cancel_repeatedly(serve(server), when=turns, again=2)) == []


@pytest.mark.parametrize("again", range(1, 4))
def test_no_client_stays_connected_to_a_server_that_is_cancelled_again_while_it_stops(again: int) -> None:
    answered = asyncio.Event()
    kept: list[socket.socket] = []

    async def serve_one() -> None:
        loop = asyncio.get_running_loop()
        async with probes() as server:
            client = socket.create_connection(("127.0.0.1", server.probe_port))
            kept.append(client)
            client.setblocking(False)
            await loop.sock_sendall(client, b"GET /livez HTTP/1.1\r\nHost: here\r\n\r\n")
            await loop.sock_recv(client, 100)
            answered.set()
            await asyncio.Event().wait()

    found = find_leaks(cancel_repeatedly(serve_one(), when=answered, again=again))
    kept[0].close()
    assert found == []


@pytest.mark.parametrize("turns", range(4))
def test_a_client_that_connects_while_a_server_stops_is_disconnected(turns: int) -> None:
    late: list[socket.socket] = []

    async def serve_one() -> None:
        async with probes() as server:
            await run_loop_turns(5)  # it waits for the next connection
            late.append(socket.create_connection(("127.0.0.1", server.probe_port)))
            await run_loop_turns(turns)

    found = find_leaks(serve_one())
    late[0].close()
    assert found == []

"""Calls to Redis: to a real server, and to servers of other protocols."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from konverge_box._internal.calls import CallError
from konverge_box._internal.calls.resp import encode_command
from konverge_box.expressions import to_sensitive
from tests.box.calls.call_fixtures import Secrets, run_calls
from tests.database_servers import RedisServer
from tests.resolution.network.http_servers import never_respond, serve_connections

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def write_commands(redis: RedisServer, *commands: str) -> None:
    reader, writer = await asyncio.open_connection(redis.host, redis.port)
    for each in (f"AUTH {redis.password}", *commands):
        writer.write(encode_command(tuple(each.split(" "))))
        assert not (await reader.readline()).startswith(b"-")
    writer.close()
    await writer.wait_closed()


async def run_command(
    redis: RedisServer, query: str, *, path: str = "", password: str = "", **more: Any
) -> Mapping[str, Any]:
    text = (
        f"[{{name: a, protocol: redis, url: 'redis://{redis.host}:{redis.port}{path}', query: '{query}', "
        "auth: {secretRef: {name: redis, key: password}}, continueOnError: true}]"
    )
    secrets = Secrets({"shop/redis": {"password": password or redis.password}})
    found: Mapping[str, Any] = (await run_calls(text, secrets=secrets, **more))["a"]
    return found


async def test_values_have_their_types(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SET greeting hello", "RPUSH list a b", "HSET hash size 3 name web")
    cases = {
        "GET greeting": "hello",
        "get greeting": "hello",
        "GET nothing": None,
        "EXISTS greeting": 1,
        "LRANGE list 0 -1": ["a", "b"],
        "MGET greeting nothing": ["hello", None],
        "HGET hash size": "3",
    }
    for query, value in cases.items():
        found = await run_command(redis_server, query)
        assert (found["error"], found["ok"], found["result"], found["raw"]) == ("", True, value, value)


async def test_a_hash_is_a_mapping(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "HSET whole size 3 name web")
    assert (await run_command(redis_server, "HGETALL whole"))["raw"] == {"size": "3", "name": "web"}


async def test_a_value_with_blanks_is_one_word(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SET b x")
    found = await run_command(redis_server, "EXISTS {{ spec.key }} b", spec={"key": "a b b"})
    assert found["result"] == 1


async def test_the_path_is_the_number_of_the_database(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SELECT 3", "SET third yes")
    assert (await run_command(redis_server, "GET third", path="/3"))["result"] == "yes"
    assert (await run_command(redis_server, "GET third"))["result"] is None
    assert "expected a database number" in (await run_command(redis_server, "GET third", path="/three"))["error"]


async def test_a_user_is_named_in_the_query_of_the_url(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SET seen yes", "ACL SETUSER reader on >hunter2 ~* +@read")
    assert (await run_command(redis_server, "GET seen", path="?user=reader", password="hunter2"))["result"] == "yes"


async def test_a_refusal_is_an_error_that_does_not_show_the_password(redis_server: RedisServer) -> None:
    wrong = await run_command(redis_server, "GET a", password="hunter2")
    assert "WRONGPASS" in wrong["error"]
    assert "hunter2" not in wrong["error"]
    await write_commands(redis_server, "RPUSH mistyped a")
    assert "WRONGTYPE" in (await run_command(redis_server, "GET mistyped"))["error"]


async def test_what_is_asked_by_a_secret_is_hidden(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SET key-of-secret value")
    cross = {"a": {"data": to_sensitive({"key": "key-of-secret"})}}
    found = await run_command(redis_server, "GET {{ cross.a.data.key }}", cross=cross)
    assert (str(found["result"]), found["ok"]) == ("***", True)


async def test_a_value_of_more_than_a_mebibyte_is_refused(redis_server: RedisServer) -> None:
    await write_commands(redis_server, "SETRANGE huge 2000000 x")
    assert "at most 1 MiB" in (await run_command(redis_server, "GET huge"))["error"]


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"$536870912\r\n", "at most 1 MiB"),
        (b"HTTP/1.1 400 Bad Request\r\n", "expected a Redis reply"),
        (b"x" * 200_000, "sent a reply that is not valid in the Redis protocol"),
        (b"$10\r\nabc", "closed the connection before the end of its reply"),
        (b"", "closed the connection before the end of its reply"),
    ],
)
async def test_a_server_that_is_no_redis_is_an_error(said: bytes, problem: str) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n")
        writer.write(said)
        await writer.drain()
        writer.write_eof()
        await never_respond(reader, writer)

    async with serve_connections(talk) as port:
        with pytest.raises(CallError, match=problem):
            await run_calls(f"[{{name: a, protocol: redis, url: 'redis://127.0.0.1:{port}', query: GET a}}]")


async def test_a_server_that_hangs_is_given_up_and_its_connection_closed() -> None:
    async with serve_connections(never_respond) as port:
        with pytest.raises(CallError, match=r"did not respond within 0.1 s"):
            await run_calls(
                f"[{{name: a, protocol: redis, url: 'redis://127.0.0.1:{port}', query: GET a, timeout: 100ms}}]"
            )


async def test_nobody_listening_is_an_error() -> None:
    with pytest.raises(CallError, match="is unreachable"):
        await run_calls("[{name: a, protocol: redis, url: 'redis://127.0.0.1:1', query: GET a}]")

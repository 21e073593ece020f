"""Calls to PostgreSQL: to a real server, and to servers of other protocols."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from konverge_box._internal.calls import CallError
from konverge_box._internal.calls.postgres_calls import split_query
from konverge_box.expressions import to_sensitive
from tests.box.calls.call_fixtures import Secrets, run_calls
from tests.database_servers import PostgresServer
from tests.resolution.network.http_servers import never_respond, serve_connections

pytestmark = [pytest.mark.anyio, pytest.mark.real_time]


async def run_query(
    postgres: PostgresServer, query: str, *, password: str = "", timeout: str = "10s", more: str = "", **scope: Any
) -> Mapping[str, Any]:
    text = (
        f"[{{name: a, protocol: postgres, url: 'postgres://{postgres.host}:{postgres.port}/postgres?user=admin{more}', "
        f'query: "{query}", timeout: {timeout}, continueOnError: true, '
        "auth: {secretRef: {name: db, key: password}}}]"
    )
    secrets = Secrets({"shop/db": {"password": password or postgres.password}})
    found: Mapping[str, Any] = (await run_calls(text, secrets=secrets, **scope))["a"]
    return found


@pytest.mark.slow
async def test_the_first_value_is_the_result_and_the_first_row_is_raw(postgres_server: PostgresServer) -> None:
    found = await run_query(
        postgres_server, "SELECT 3 AS size, 'web' AS name, true AS on, null AS nothing, ARRAY[1,2] AS list"
    )
    assert (found["error"], found["ok"], found["result"]) == ("", True, 3)
    assert found["raw"] == {"size": 3, "name": "web", "on": True, "nothing": None, "list": [1, 2]}


@pytest.mark.parametrize(
    ("query", "result"),
    [
        ("SELECT n FROM generate_series(5, 7) AS n ORDER BY n DESC", 7),
        ("SELECT 1 WHERE false", None),
        ("SELECT 1;", 1),
        ("SELECT 1 -- a comment", 1),
        ("WITH a AS (SELECT 4 AS x) SELECT x FROM a", 4),
        ("VALUES (9)", 9),
        ("SELECT '{{ spec.name }}'", "web"),
    ],
)
async def test_any_one_query_may_be_asked(postgres_server: PostgresServer, query: str, result: Any) -> None:
    found = await run_query(postgres_server, query, spec={"name": "web"})
    assert (found["error"], found["result"]) == ("", result)


INJECTIONS = ["x' OR true --", "'; DROP TABLE people; --", "\\\\' OR true --", "$1", "x') OR (true", "1 OR true"]


@pytest.mark.parametrize("value", INJECTIONS)
@pytest.mark.parametrize("written", ["'{{ spec.name }}'", "{{ spec.name }}"])
async def test_a_value_never_becomes_a_part_of_the_query(
    postgres_server: PostgresServer, written: str, value: str
) -> None:
    query = f"SELECT count(*), min({written}) AS said FROM (VALUES ('web')) AS people(name) WHERE name = {written}"
    found = await run_query(postgres_server, query, spec={"name": value})
    assert (found["error"], found["result"]) == ("", 0)


async def test_values_have_the_types_that_the_query_asks_for(postgres_server: PostgresServer) -> None:
    query = "SELECT n + {{ spec.two }} FROM generate_series(1, 9) AS n WHERE n > {{ spec.five }} LIMIT {{ spec.one }}"
    found = await run_query(postgres_server, query, spec={"two": 2, "five": 5, "one": "1"})
    assert (found["error"], found["result"]) == ("", 8)
    found = await run_query(postgres_server, "SELECT {{ spec.none }}::int IS NULL", spec={"none": None})
    assert found["result"] is True


def test_expressions_are_taken_out_of_a_query() -> None:
    assert split_query("SELECT '{{ a }}', x FROM t WHERE b={{ default('', b) }};") == (
        "SELECT  $1 , x FROM t WHERE b= $2",
        ["{{ a }}", "{{ default('', b) }}"],
    )


@pytest.mark.parametrize(
    "query",
    ["SELECT '%{{ a }}%'", 'SELECT * FROM "{{ a }}"', "SELECT 'it''s {{ a }}'", "{% if a %}SELECT 1{% endif %}"],
)
def test_an_expression_that_is_no_whole_value_is_refused(query: str) -> None:
    with pytest.raises(ValueError, match="in place of"):
        split_query(query)


WRITES = {
    "a table": "CREATE TABLE written (a int)",
    "a second statement": "SELECT 1; CREATE TABLE written (a int)",
    "a second statement that closes ours": "SELECT 1) AS a) AS b; CREATE TABLE written (a int); --",
    "out of the transaction": "SELECT 1) AS a) AS b; COMMIT; CREATE TABLE written (a int); --",
    "a query that writes": "WITH a AS (INSERT INTO kept VALUES (2) RETURNING x) SELECT x FROM a",
    "a function that writes": "SELECT nextval('kept_sequence')",
    "leave to write": "SELECT set_config('transaction_read_only', 'off', true)",
    "into": "SELECT 1 AS a INTO written",
}


@pytest.mark.parametrize("query", WRITES.values(), ids=WRITES)
async def test_nothing_is_written(postgres_server: PostgresServer, query: str) -> None:
    with psycopg.connect(postgres_server.conninfo(), autocommit=True) as admin:
        admin.execute("CREATE TABLE IF NOT EXISTS kept (x int)")
        admin.execute("CREATE SEQUENCE IF NOT EXISTS kept_sequence")
        found = await run_query(postgres_server, query)
        assert "rejects the query" in found["error"]
        assert admin.execute("SELECT to_regclass('written'), count(*) FROM kept").fetchone() == (None, 0)


async def test_a_query_that_is_wrong_is_an_error_with_the_servers_words(postgres_server: PostgresServer) -> None:
    error = (await run_query(postgres_server, "SELECT nothing"))["error"]
    assert 'column "nothing" does not exist (SQLSTATE 42703)' in error


async def test_a_wrong_password_is_an_error_that_does_not_show_it(postgres_server: PostgresServer) -> None:
    error = (await run_query(postgres_server, "SELECT 1", password="hunter2"))["error"]
    assert "password authentication failed" in error
    assert "hunter2" not in error


async def test_what_a_password_has_in_it_stays_a_part_of_it(postgres_server: PostgresServer) -> None:
    error = (await run_query(postgres_server, "SELECT 1", password="a' host='evil.example' hostaddr='10.0.0.1"))[
        "error"
    ]
    assert "password authentication failed" in error


@pytest.mark.slow
async def test_a_row_of_more_than_a_mebibyte_stays_on_the_server(postgres_server: PostgresServer) -> None:
    assert "at most 1 MiB" in (await run_query(postgres_server, "SELECT repeat('x', 50000000)"))["error"]
    assert len((await run_query(postgres_server, "SELECT repeat('x', 1000000)"))["result"]) == 1_000_000


async def test_a_query_that_takes_too_long_is_given_up_on_both_sides(postgres_server: PostgresServer) -> None:
    found = await run_query(postgres_server, "SELECT pg_sleep(600), 'of-the-slow-query'", timeout="300ms")
    assert found["ok"] is False
    with psycopg.connect(postgres_server.conninfo(), autocommit=True) as admin:
        running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%of-the-slow%' AND pid <> pg_backend_pid()"
        waited = 0
        while admin.execute(f"{running} AND state = 'active'").fetchone() != (0,):
            admin.execute("SELECT pg_sleep(0.05)")
            waited += 1
            assert waited < 100


async def test_what_is_asked_by_a_secret_is_hidden(postgres_server: PostgresServer) -> None:
    cross = {"a": {"data": to_sensitive({"id": "7"})}}
    found = await run_query(postgres_server, "SELECT '{{ cross.a.data.id }}'", cross=cross)
    assert str(found["result"]) == "***"
    wrong = await run_query(postgres_server, "SELECT {{ cross.a.data.id }} FROM x{{ cross.a.data.id }}", cross=cross)
    assert "x7" not in wrong["error"]


@pytest.mark.parametrize("more", ["&passfile=/etc/passwd", "&hostaddr=10.0.0.1", "&service=a", "&sslmode=allow"])
async def test_only_user_and_sslmode_are_settings(postgres_server: PostgresServer, more: str) -> None:
    assert "expected" in (await run_query(postgres_server, "SELECT 1", more=more))["error"]


async def test_a_server_without_tls_is_refused_where_tls_is_required(postgres_server: PostgresServer) -> None:
    assert "SSL" in (await run_query(postgres_server, "SELECT 1", more="&sslmode=require"))["error"]


TEXT = "[{name: a, protocol: postgres, url: 'postgres://127.0.0.1:%s', query: SELECT 1, timeout: %s}]"


async def test_nobody_listening_is_an_error() -> None:
    with pytest.raises(CallError, match="is unreachable"):
        await run_calls(TEXT % (1, "5s"))


async def test_a_server_that_hangs_is_given_up_and_its_connection_closed() -> None:
    async with serve_connections(never_respond) as port:
        with pytest.raises(CallError, match=r"did not respond within 0.2 s"):
            await run_calls(TEXT % (port, "200ms"))


async def test_a_server_that_is_no_postgresql_is_an_error() -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(8)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.write_eof()
        await never_respond(reader, writer)

    async with serve_connections(talk) as port:
        with pytest.raises(CallError, match="127.0.0.1"):
            await run_calls(TEXT % (port, "2s"))


async def test_a_server_that_floods_is_cut_off() -> None:
    sent = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.read(8)
        writer.write(b"N")  # no TLS
        await reader.read(4096)
        writer.write(b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!Ic", 5, b"I"))
        await reader.read(4096)
        # One row of 1 GiB.
        writer.write(b"D" + struct.pack("!I", 1 << 30))
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    async with serve_connections(talk) as port:
        with pytest.raises(CallError, match="at most 1 MiB"):
            await run_calls(TEXT % (port, "10s"))
    assert sent < 32 << 20


async def test_a_server_that_wants_the_password_in_the_clear_does_not_get_it() -> None:
    seen = b""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        await reader.read(8)
        writer.write(b"N")
        await reader.read(4096)
        writer.write(b"R" + struct.pack("!II", 8, 3))
        while piece := await reader.read(4096):
            seen += piece

    async with serve_connections(talk) as port:
        text = TEXT[:-2] % (port, "2s") + ", auth: {secretRef: {name: db, key: password}}}]"
        with pytest.raises(CallError, match="rejects the connection"):
            await run_calls(text, secrets=Secrets({"shop/db": {"password": "hunter2"}}))
    assert b"hunter2" not in seen

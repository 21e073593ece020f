"""The provider ``postgres`` on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from konverge.clock import SystemEntropy
from konverge_box._internal.providers.postgres import DatabaseSpec, GrantSpec, Postgres, PostgresSettings, RoleSpec
from konverge_box.expressions import Sensitive
from konverge_box.providers import ForeignError, ProviderError
from konverge_box.testing import PROVIDER_CASES, ProviderCase, ProviderSubject
from tests.database_servers import PostgresServer

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Server:
    """The server as its administrator sees it, with unique names for each case."""

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.settings = PostgresSettings(
            host=server.host, port=server.port, user=server.user, password=Sensitive(server.password), tls="disable"
        )

    def name(self, what: str) -> str:
        return f'{what} "{SystemEntropy().name_suffix(8)}"; DROP'  # a concatenated statement would fail

    async def ask(self, query: str, *values: Any, database: str = "postgres") -> list[Any]:
        async with await AsyncConnection.connect(
            self.server.conninfo(), dbname=database, autocommit=True
        ) as connection:
            return await (await connection.execute(query.encode(), values)).fetchall()

    async def do(self, statement: str, *names: str, database: str = "postgres") -> None:
        async with await AsyncConnection.connect(
            self.server.conninfo(), dbname=database, autocommit=True
        ) as connection:
            composed = sql.SQL(statement).format(*map(sql.Identifier, names))
            await connection.execute(composed)

    async def can_log_in(self, user: str, password: str) -> bool:
        try:
            await (await AsyncConnection.connect(
                host=self.server.host, port=self.server.port, user=user, password=password, dbname="postgres",
                connect_timeout=5,
            )).close()  # fmt: skip
        except psycopg.OperationalError:
            return False
        return True

    async def database(self, name: str) -> Any:
        found = await self.ask(
            "SELECT pg_get_userbyid(datdba), pg_encoding_to_char(encoding), shobj_description(oid, 'pg_database') "
            "FROM pg_database WHERE datname = %s", name
        )  # fmt: skip
        if not found:
            return None
        rows = await self.ask("SELECT extname FROM pg_extension ORDER BY 1", database=name)
        return [*found[0], [row[0] for row in rows]]

    async def role(self, name: str) -> Any:
        found = await self.ask(
            "SELECT rolcanlogin, rolconnlimit, shobj_description(oid, 'pg_authid'), ARRAY(SELECT roleid::regrole::text "
            "FROM pg_auth_members WHERE member = r.oid) FROM pg_authid r WHERE rolname = %s", name
        )  # fmt: skip
        return list(found[0]) if found else None

    async def grants(self, role: str, database: str) -> Any:
        found = await self.ask(
            "SELECT privilege_type FROM pg_database, aclexplode(datacl) WHERE datname = %s AND "
            "grantee = (SELECT oid FROM pg_roles WHERE rolname = %s) ORDER BY 1", database, role
        )  # fmt: skip
        return [row[0] for row in found] or None


@pytest.fixture
def server(postgres_server: PostgresServer) -> Server:
    return Server(postgres_server)


@pytest.fixture
async def silent() -> AsyncIterator[PostgresSettings]:
    """Start a server that accepts connections and never responds."""
    held: list[asyncio.StreamWriter] = []
    listening = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    yield PostgresSettings(host="127.0.0.1", port=port, user="silent", password=Sensitive("silent-password"))
    for writer in held:
        writer.close()
    listening.close()


@asynccontextmanager
async def _role_of_uid_1(server: Server) -> AsyncIterator[tuple[str, str]]:
    role, database = server.name("grantee"), server.name("granted")
    await _subject(server, "Role", role, RoleSpec(), RoleSpec()).reconcile()
    await server.do("CREATE DATABASE {}", database)
    await server.do("REVOKE ALL ON DATABASE {} FROM PUBLIC", database)
    yield role, database


def _subject(server: Server, kind: str, name: str, spec: Any, changed: Any, **more: Any) -> ProviderSubject:
    async def look() -> Any:
        return await {"Database": server.database, "Role": server.role}[kind](name)

    return ProviderSubject(
        **{"provider": Postgres(), "kind": kind, "name": name, "settings": server.settings, "spec": spec,
           "changed": changed, "look": look, **more}
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
async def test_databases_keep_the_rules_of_providers(
    case: ProviderCase, server: Server, silent: PostgresSettings
) -> None:
    name, owner = server.name("database"), server.name("owner")
    await server.do("CREATE ROLE {}", owner)

    async def make_foreign() -> None:
        await server.do("CREATE DATABASE {}", name)

    await case(
        _subject(server, "Database", name, DatabaseSpec(owner="admin"), DatabaseSpec(owner=owner),
                 make_foreign=make_foreign, unreachable=silent)
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
async def test_roles_keep_the_rules_of_providers(case: ProviderCase, server: Server, silent: PostgresSettings) -> None:
    name, group = server.name("role"), server.name("group")
    await server.do("CREATE ROLE {}", group)

    async def make_foreign() -> None:
        await server.do("CREATE ROLE {}", name)

    await case(
        _subject(server, "Role", name, RoleSpec(password=Sensitive("a-pass-word")),
                 RoleSpec(login=False, member_of=(group,), connection_limit=3), make_foreign=make_foreign,
                 unreachable=silent)
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PROVIDER_CASES, ids=lambda case: case.__name__)
async def test_grants_keep_the_rules_of_providers(case: ProviderCase, server: Server, silent: PostgresSettings) -> None:
    async with _role_of_uid_1(server) as (role, database):
        wanted = GrantSpec(role=role, database=database, privileges=("CONNECT", "TEMPORARY"))
        other = GrantSpec(role=role, database=database, privileges=("CREATE", "CONNECT"))
        await case(
            _subject(server, "Grant", "", wanted, other, look=lambda: server.grants(role, database), unreachable=silent)
        )


@pytest.mark.slow
async def test_a_grant_on_what_is_others_alone_is_neither_given_nor_taken(server: Server) -> None:
    async with _role_of_uid_1(server) as (role, database):
        await server.do("GRANT CONNECT ON DATABASE {} TO {}", database, role)
        spec = GrantSpec(role=role, database=database, privileges=("CREATE",))
        subject = _subject(server, "Grant", "", spec, spec)

        with pytest.raises(ForeignError):
            await subject.reconcile(uid="uid-2")
        await subject.delete(uid="uid-2")

        assert await server.grants(role, database) == ["CONNECT"]


@pytest.mark.slow
async def test_privileges_of_a_schema_are_given_and_taken(server: Server) -> None:
    async with _role_of_uid_1(server) as (role, database):
        spec = GrantSpec(role=role, database=database, schema="public", privileges=("USAGE", "CREATE"))
        subject = _subject(server, "Grant", "", spec, spec)
        may = "SELECT has_schema_privilege(%s, 'public', 'CREATE')"

        await subject.reconcile()
        given = await server.ask(may, role, database=database)
        await subject.delete()

        assert (given, await server.ask(may, role, database=database)) == ([(True,)], [(False,)])


async def test_a_password_follows_its_secret_and_a_change_by_hand_is_undone(server: Server) -> None:
    name = server.name("role")
    first, second = RoleSpec(password=Sensitive("first-password")), RoleSpec(password=Sensitive("sécond-password"))
    subject = _subject(server, "Role", name, first, second)
    await subject.reconcile()
    assert await server.can_log_in(name, "first-password")

    await subject.reconcile(second)
    assert not await server.can_log_in(name, "first-password")
    assert await server.can_log_in(name, "sécond-password")

    await server.do("ALTER ROLE {} PASSWORD 'by-hand'", name)
    await subject.reconcile(second)
    assert await server.can_log_in(name, "sécond-password")


async def test_a_password_that_fits_is_not_set_again(server: Server) -> None:
    name = server.name("role")
    spec = RoleSpec(password=Sensitive("a-pass-word"))
    await _subject(server, "Role", name, spec, spec).reconcile()
    query = "SELECT rolpassword FROM pg_authid WHERE rolname = %s"
    before = await server.ask(query, name)

    await _subject(server, "Role", name, spec, spec).reconcile()  # by another process

    assert await server.ask(query, name) == before
    assert "a-pass-word" not in before[0][0]


async def test_a_user_that_is_no_superuser_is_enough(server: Server) -> None:
    creator, role, database = server.name("creator"), server.name("role"), server.name("database")
    await server.do("CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD 'creator-password'", creator)
    limited = Server(server.server)
    limited.settings = PostgresSettings(
        host=server.server.host, port=server.server.port, user=creator, password=Sensitive("creator-password")
    )
    as_role = _subject(limited, "Role", role, RoleSpec(password=Sensitive("one-password")), RoleSpec())
    as_database = _subject(limited, "Database", database, DatabaseSpec(owner=role), DatabaseSpec())

    for _ in range(2):
        await as_role.reconcile()
        await as_database.reconcile()
    await as_role.reconcile(RoleSpec(password=Sensitive("two-password")))

    assert (await server.database(database))[0] == role
    assert await server.can_log_in(role, "two-password")
    await as_database.delete()
    await as_role.delete()
    assert await server.database(database) is None
    assert await server.role(role) is None


async def test_a_role_goes_although_it_owns_things_which_stay(server: Server) -> None:
    role, database = server.name("role"), server.name("database")
    await _subject(server, "Role", role, RoleSpec(), RoleSpec()).reconcile()
    await _subject(server, "Database", database, DatabaseSpec(owner=role), DatabaseSpec()).reconcile()
    await server.do("CREATE TABLE kept AS SELECT 1 AS one", database=database)
    await server.do("ALTER TABLE kept OWNER TO {}", role, database=database)

    await _subject(server, "Role", role, RoleSpec(), RoleSpec()).delete()

    assert await server.role(role) is None
    assert (await server.database(database))[0] == "admin"
    assert await server.ask("SELECT one FROM kept", database=database) == [(1,)]


async def test_extensions_are_installed(server: Server) -> None:
    name = server.name("database")
    subject = _subject(server, "Database", name, DatabaseSpec(extensions=("citext",)), DatabaseSpec())

    await subject.reconcile()

    assert "citext" in (await server.database(name))[3]


async def test_an_encoding_that_cannot_be_changed_is_said_and_nothing_is_lost(server: Server) -> None:
    name = server.name("database")
    subject = _subject(server, "Database", name, DatabaseSpec(encoding="utf-8"), DatabaseSpec())
    await subject.reconcile()
    seen = await server.database(name)

    with pytest.raises(ProviderError, match="has the encoding UTF8, which cannot be changed to LATIN1"):
        await subject.reconcile(DatabaseSpec(encoding="LATIN1"))
    assert await server.database(name) == seen


async def test_a_database_with_connections_is_dropped_when_it_is_to_be_deleted(server: Server) -> None:
    name = server.name("database")
    subject = _subject(server, "Database", name, DatabaseSpec(), DatabaseSpec())
    await subject.reconcile()
    async with await AsyncConnection.connect(server.server.conninfo(), dbname=name):
        await subject.delete()

    assert await server.database(name) is None


@pytest.mark.parametrize("at", range(1, 4))
async def test_a_crash_between_any_two_statements_leaves_nothing_unmarked_or_twice(
    at: int, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(BaseException):
        pass

    name = server.name("database")
    subject = _subject(server, "Database", name, DatabaseSpec(), DatabaseSpec())
    execute: Callable[..., Awaitable[Any]] = AsyncConnection.execute
    writes = 0

    async def crashing(connection: Any, query: Any, *values: Any) -> Any:
        nonlocal writes
        result = await execute(connection, query, *values)
        writes += isinstance(query, sql.Composed)
        if writes == at:
            raise Crash
        return result

    with monkeypatch.context() as patched:
        patched.setattr(AsyncConnection, "execute", crashing)
        with pytest.raises(Crash):
            await subject.reconcile()

    await subject.reconcile()
    assert (await server.database(name))[2].startswith("konverge.dev/owner: uid-1 ")
    await subject.delete()
    assert await server.ask("SELECT datname FROM pg_database WHERE datname LIKE 'konverge%%'") == []


async def test_names_that_the_server_would_cut_off_are_refused(server: Server) -> None:
    subject = _subject(server, "Role", "x" * 64, RoleSpec(), RoleSpec())

    with pytest.raises(ProviderError, match="at most 63 bytes"):
        await subject.reconcile()

"""Exec plug-ins: real programs, and a server that accepts the users that they return."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from konverge._internal.client.exec_credentials import ExecCredentials
from konverge._internal.client.exec_plugin import ExecPlugin, parse_exec_plugin
from konverge.client import Client, ClusterConfig, HttpTransport, load_kubeconfig
from konverge.clock import SystemClock
from konverge.errors import ConfigurationError, KonvergeError, NotConnectedError, UnauthorizedError
from tests.cancellation_leaks import cancel_again, find_leaks_of_each, run_loop_turns
from tests.client.certificates import NOW, CertificateAuthority
from tests.client.servers import Servers

pytestmark = pytest.mark.anyio

AUTHORITY = CertificateAuthority()
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
SECONDS = 10.0


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: there are processes and sockets."""
    return "asyncio"


class Programs:
    """Python programs that record each of their runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._runs = folder / "runs"

    @property
    def runs(self) -> int:
        return len(self._runs.read_text().splitlines()) if self._runs.exists() else 0

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self._runs.read_text().splitlines()]

    def write(self, body: str, name: str = "plugin") -> Path:
        """Write a program with that body; ``run`` is the number of its run, and ``answer`` prints the credential."""
        path = self.folder / name
        path.write_text(
            f"#!{sys.executable} -IS\n"
            "import json, os, sys, time\n"
            f"with open({str(self._runs)!r}, 'a') as runs: print(os.getpid(), file=runs)\n"
            f"run = len(open({str(self._runs)!r}).readlines())\n"
            "info = json.loads(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "def answer(**status): print(json.dumps({**info, 'status': status}))\n" + body
        )
        path.chmod(0o755)
        return path


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def plugin_of(command: Path | str, **fields: Any) -> ExecPlugin:
    exec_fields = {"apiVersion": V1, "command": str(command), "interactiveMode": "Never"} | fields
    env = {"PATH": os.environ["PATH"], "INHERITED": "yes"}
    return parse_exec_plugin(
        exec_fields, whose='user "ann"', folder=Path("/"), env=env, cluster={"server": "https://api.example"}
    )


def credentials_of(command: Path | str, timeout_seconds: float = SECONDS, **fields: Any) -> ExecCredentials:
    return ExecCredentials(plugin_of(command, **fields), SystemClock(), timeout_seconds=timeout_seconds)


async def token_of(credentials: ExecCredentials) -> str:
    return (await credentials.get_identity()).headers["authorization"].removeprefix("Bearer ")


async def failing(credentials: ExecCredentials) -> KonvergeError:
    with pytest.raises(KonvergeError) as raised:
        await credentials.get_identity()
    assert "\n" not in str(raised.value)
    return raised.value


# The input of the program.


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_the_program_learns_the_version_and_of_the_cluster_if_it_wants(programs: Programs, version: str) -> None:
    program = programs.write("answer(token=json.dumps(info))")
    without = credentials_of(program, apiVersion=version)
    with_cluster = credentials_of(program, apiVersion=version, provideClusterInfo=True)

    assert json.loads(await token_of(without)) == {
        "apiVersion": version,
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    assert json.loads(await token_of(with_cluster))["spec"]["cluster"] == {"server": "https://api.example"}


async def test_the_program_gets_its_arguments_and_its_environment(programs: Programs) -> None:
    program = programs.write("answer(token=' '.join([*sys.argv[1:], os.environ['INHERITED'], os.environ['ADDED']]))")
    found = credentials_of(program, args=["get", 7], env=[{"name": "ADDED", "value": "too"}])

    assert await token_of(found) == "get 7 yes too"


async def test_a_command_with_a_slash_is_relative_to_its_kubeconfig_which_tells_it_of_the_cluster(
    programs: Programs,
) -> None:
    programs.write("answer(token=json.dumps(info))", "login")
    kubeconfig = programs.folder / "config"
    extension = {"name": "client.authentication.k8s.io/exec", "extension": {"audience": "me"}}
    cluster = {"server": "https://api.example", "tls-server-name": "api", "extensions": [extension]}
    plugin = {"apiVersion": V1BETA1, "command": "./login", "provideClusterInfo": True}
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "here",
                "clusters": [{"name": "one", "cluster": cluster}],
                "users": [{"name": "ann", "user": {"exec": plugin}}],
                "contexts": [{"name": "here", "context": {"cluster": "one", "user": "ann"}}],
            }
        )
    )
    found = load_kubeconfig(kubeconfig, env={"PATH": os.environ["PATH"]}).credentials

    assert isinstance(found, ExecCredentials)
    assert json.loads(await token_of(found))["spec"]["cluster"] == {
        "server": "https://api.example",
        "tls-server-name": "api",
        "config": {"audience": "me"},
    }


# The time of its runs.


async def test_all_requests_at_the_start_share_one_run(programs: Programs) -> None:
    found = credentials_of(programs.write("time.sleep(0.2); answer(token=f't{run}')"))
    tokens = await asyncio.gather(*(token_of(found) for _ in range(20)))

    assert set(tokens) == {"t1"}
    assert programs.runs == 1


@pytest.mark.slow
async def test_the_loop_goes_on_while_the_program_runs(programs: Programs) -> None:
    found = credentials_of(programs.write("time.sleep(0.5); answer(token='t')"))
    running = asyncio.create_task(found.get_identity())
    turns = 0
    while not running.done():
        await SystemClock().sleep(0.01)
        turns += 1

    assert turns >= 5


async def test_what_expires_soon_is_fetched_again(programs: Programs) -> None:
    class LaterClock(SystemClock):
        later = timedelta()

        def now(self) -> Any:
            return super().now() + self.later

    clock = LaterClock()
    expires = (NOW + timedelta(hours=1)).isoformat()
    program = programs.write(f"answer(token=f't{{run}}', expirationTimestamp={expires!r})")
    found = ExecCredentials(plugin_of(program), clock)
    tokens = [await token_of(found), await token_of(found)]
    clock.later = timedelta(minutes=59, seconds=30)
    tokens.append(await token_of(found))

    assert tokens == ["t1", "t1", "t2"]


async def test_another_event_loop_runs_the_program_by_itself(programs: Programs) -> None:
    found = credentials_of(programs.write("answer(token=f't{run}')"))
    first = await token_of(found)
    other = found.clone()

    assert isinstance(other, ExecCredentials)
    assert (first, await asyncio.to_thread(asyncio.run, token_of(other))) == ("t1", "t2")


# The end of the program.


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not check():
            await SystemClock().sleep(0.01)


SPAWN_AND_WAIT = (
    "import subprocess\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "open(sys.argv[1], 'w').write(str(child.pid))\n"
    "time.sleep(60)"
)


async def test_cancelling_the_request_ends_the_program_and_all_that_it_started(programs: Programs) -> None:
    noted = programs.folder / "child"
    found = credentials_of(programs.write(SPAWN_AND_WAIT), args=[str(noted)])
    waiting = asyncio.create_task(found.get_identity())
    await until(lambda: noted.exists() and noted.read_text() != "")
    waiting.cancel()
    await asyncio.wait([waiting])

    assert waiting.cancelled()
    assert not is_running(programs.pids[0])
    await until(lambda: not is_running(int(noted.read_text())) or _is_zombie(int(noted.read_text())))


@pytest.mark.slow
def test_a_program_that_is_cancelled_at_any_moment_and_again_leaves_nothing(programs: Programs) -> None:
    noted = programs.folder / "child"
    plugin = programs.write(SPAWN_AND_WAIT)

    async def cancel_twice(turns: int) -> None:
        waiting = asyncio.create_task(credentials_of(plugin, args=[str(noted)]).get_identity())
        await run_loop_turns(turns)
        await cancel_again(waiting)
        await asyncio.wait([waiting])

    assert find_leaks_of_each(cancel_twice(turns) for turns in range(10)) == []


def _is_zombie(pid: int) -> bool:
    """Return True for a process that ended after its parent and was not reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


async def test_a_child_that_keeps_the_pipe_delays_nothing_and_does_not_stay(programs: Programs) -> None:
    noted = programs.folder / "child"
    found = credentials_of(
        programs.write(SPAWN_AND_WAIT.removesuffix("time.sleep(60)") + "answer(token='t')", "leaving"),
        args=[str(noted)],
    )
    await token_of(credentials_of(programs.write("answer(token='t')", "quiet")))  # what the loop opens only once
    before = len(os.listdir("/proc/self/fd"))

    async with asyncio.timeout(SECONDS / 2):
        assert await token_of(found) == "t"
    await until(lambda: not is_running(int(noted.read_text())) or _is_zombie(int(noted.read_text())))
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.slow
async def test_a_program_that_takes_too_long_is_ended(programs: Programs) -> None:
    error = await failing(credentials_of(programs.write("time.sleep(60)"), timeout_seconds=0.5))

    assert isinstance(error, NotConnectedError)
    assert "did not end within 0.5 s" in str(error)
    assert not is_running(programs.pids[0])


async def test_a_program_that_prints_without_end_is_cut_off(programs: Programs) -> None:
    error = await failing(credentials_of(programs.write("print('x' * 3_000_000)")))

    assert isinstance(error, ConfigurationError)
    assert "printed more than 1048576 bytes" in str(error)


async def test_what_a_program_complains_of_is_told_without_its_secrets(programs: Programs) -> None:
    complaint = (
        "import base64\n"
        "sys.exit('first line\\nlogin failed for hunter2 with --client-secret=topsecret, "
        "Bearer abcdef, eyJhbGciOi.eyJzdWIi.c2ln and token=zzz')"
    )
    found = credentials_of(
        programs.write(complaint),
        args=["--client-secret=topsecret", "--region", "eu"],
        env=[{"name": "PASSWORD", "value": "hunter2"}],
    )
    error = await failing(found)

    assert isinstance(error, NotConnectedError)
    assert str(error) == (
        f'the credential plug-in {programs.folder}/plugin of user "ann" failed (exit code 1): first line login failed '
        "for *** with --client-secret=*** Bearer *** *** and token=***"
    )


async def test_a_long_complaint_is_told_from_its_end(programs: Programs) -> None:
    error = await failing(credentials_of(programs.write("sys.exit('x' * 100_000 + 'the cause')")))

    assert str(error).endswith("xthe cause")
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("print('s3cret')", "printed invalid output: expected JSON"),
        ("print('[]')", "printed invalid output: expected JSON"),
        ("print(json.dumps({'kind': 'Pod', 's': 's3cret'}))", 'found kind "Pod", apiVersion none'),
        ("info['apiVersion'] = 'v0'; answer(token='s3cret')", 'expected an ExecCredential of .*/v1, .*"v0"'),
        ("answer()", "neither a token nor a client certificate"),
        ("answer(clientKeyData='s3cret')", "printed clientKeyData without a certificate"),
        ("answer(clientCertificateData='x')", "printed clientCertificateData without clientKeyData"),
        ("answer(token='s3cret\\nx')", "an invalid token: expected printable ASCII"),
        ("answer(token='s3cret', expirationTimestamp='soon')", 'expected a time of RFC 3339, found "soon"'),
    ],
)
async def test_what_is_no_credential_is_told(programs: Programs, body: str, words: str) -> None:
    found = credentials_of(programs.write(body))

    with pytest.raises(ConfigurationError, match=words) as raised:
        await found.get_identity()
    assert "s3cret" not in str(raised.value)


async def test_a_program_that_is_not_there_is_told_with_the_hint(programs: Programs) -> None:
    hinted = await failing(credentials_of("no-such-plugin", installHint="Install it\nwith  love"))
    plain = await failing(credentials_of("/no/such/plugin"))

    assert isinstance(hinted, ConfigurationError)
    assert str(hinted) == 'the credential plug-in no-such-plugin of user "ann" does not exist. Install it with love'
    assert str(plain).endswith("does not exist: install it, or correct the command")


async def test_a_program_that_cannot_run_is_told(programs: Programs) -> None:
    program = programs.folder / "plugin"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)

    assert "cannot run the credential plug-in" in str(await failing(credentials_of(program)))


# The terminal.


async def test_a_program_that_needs_a_terminal_is_not_run_without_one(
    programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = credentials_of(programs.write("answer(token='t')"), interactiveMode="Always")
    with (programs.folder / "runs").open("w") as no_terminal:
        monkeypatch.setattr(sys, "stdin", no_terminal)
        error = await failing(found)

    assert isinstance(error, ConfigurationError)
    assert "requires a terminal" in str(error)
    assert programs.runs == 0


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A terminal as this process' standard input."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours), os.fdopen(theirs) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(("mode", "interactive"), [("Never", False), ("IfAvailable", True), ("Always", True)])
async def test_a_program_is_told_whether_it_has_the_terminal(programs: Programs, mode: str, interactive: bool) -> None:
    found = credentials_of(programs.write("answer(token=str(info['spec']['interactive']))"), interactiveMode=mode)

    assert await token_of(found) == str(interactive)


# With a server.


def config(server: str, credentials: ExecCredentials) -> ClusterConfig:
    from konverge.client import TlsConfig

    return ClusterConfig(server, "the test", tls=TlsConfig(AUTHORITY.certificate), credentials=credentials)


async def test_a_refused_token_is_fetched_again_and_the_request_sent_again(
    servers: Servers, programs: Programs
) -> None:
    async def second(request: web.Request) -> web.Response:
        is_second = request.headers.get("authorization") == "Bearer t2"
        return web.Response(text="fine", status=200 if is_second else 401)

    found = credentials_of(programs.write("answer(token=f't{run}')"))
    transport = HttpTransport(config(await servers.start(second), found))
    answers = await asyncio.gather(*(transport.request("POST", "/", body=b"{}", timeout_seconds=9) for _ in range(10)))
    await transport.close()

    assert {answer.status for answer in answers} == {200}
    assert programs.runs == 2


async def test_tokens_that_are_never_accepted_are_not_fetched_for_each_request(
    servers: Servers, programs: Programs
) -> None:
    async def reject(request: web.Request) -> web.Response:
        return web.Response(status=401)

    found = credentials_of(programs.write("answer(token=f't{run}')"))
    transport = HttpTransport(config(await servers.start(reject), found))
    for _ in range(5):
        with pytest.raises(UnauthorizedError, match='does not accept the credentials that .*plugin gives user "ann"'):
            await transport.request("GET", "/", timeout_seconds=SECONDS)
    await transport.close()

    assert programs.runs == 2


async def test_a_client_certificate_that_a_program_prints_is_shown(servers: Servers, programs: Programs) -> None:
    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        subject = dict(entry for (entry,) in request.transport.get_extra_info("peercert")["subject"])
        return web.Response(text=subject["commonName"])

    for number in (1, 2):
        pair = AUTHORITY.issue(f"ann {number}")
        (programs.folder / f"{number}.crt").write_bytes(pair.certificate)
        (programs.folder / f"{number}.key").write_bytes(pair.key)
    program = programs.write(
        f"at = {str(programs.folder)!r}\n"
        "answer(clientCertificateData=open(f'{at}/{run}.crt').read(), clientKeyData=open(f'{at}/{run}.key').read())"
    )
    url = await servers.start(who, tls=AUTHORITY.issue("server"), client_authority=AUTHORITY)
    found = credentials_of(program)
    transport = HttpTransport(config(url, found))
    first = await transport.request("GET", "/", timeout_seconds=SECONDS)
    found.invalidate(await found.get_identity())
    second = await transport.request("GET", "/", timeout_seconds=SECONDS)
    await transport.close()

    assert (first.body, second.body) == (b"ann 1", b"ann 2")


@pytest.mark.slow
async def test_credentials_that_do_not_come_before_the_deadline_are_told(servers: Servers, programs: Programs) -> None:
    async def fine(request: web.Request) -> web.Response:
        return web.Response(text="fine")

    found = credentials_of(programs.write("time.sleep(60)"))
    transport = HttpTransport(config(await servers.start(fine), found))
    with pytest.raises(NotConnectedError, match=r"no credentials within 0.5 s \(the test\); no request was sent"):
        await transport.request("POST", "/", timeout_seconds=0.5)
    await transport.close()

    assert not is_running(programs.pids[0])


@pytest.mark.slow
async def test_a_client_gives_up_on_a_program_that_fails_with_its_words(programs: Programs) -> None:
    found = credentials_of(programs.write("sys.exit('log in first')"))
    async with Client(HttpTransport(config("http://127.0.0.1:1", found))) as client:
        with pytest.raises(NotConnectedError, match="log in first"):
            await client.mappings()

    assert programs.runs == 1

"""`konverge resolve` with the credentials that its user already has: who gets them, and what is said of them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.cli.conftest import Konverge
from tests.resolution.bundles.sample_images import BUNDLE
from tests.resolution.servers.fake_registry import FakeRegistry, fake_registry
from tests.resolution.servers.git import GitServer, git, git_server
from tests.resolution.servers.http_server import Handler, http_server
from tests.resolution.servers.ssh import SshServer, ssh_server
from tests.resolution.servers.tinyproxy import tinyproxy

TASK = "apiVersion: v1\nkind: Task\nmetadata: {name: t}\n"
PASSWORD = "hunter2-hunter2"
LOOPBACK = ("--allow-network", "127.0.0.0/8")
PLAIN = ("--setting", "allow-plain-http-credentials=true")

Helper = Callable[[str, str], None]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    work = tmp_path / "work"
    work.mkdir()
    (work / "t.yaml").write_text(TASK)
    git("init", "--quiet", folder=work)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(tmp_path / "boxes.git"), folder=tmp_path)
    with git_server(tmp_path) as server:
        server.credentials["boxes.git"] = ("ann", PASSWORD)
        yield server


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with fake_registry() as registry:
        registry.push("team/boxes", "v1", *BUNDLE)
        registry.logins["ann"] = PASSWORD
        yield registry


@pytest.fixture
def helper(home: Path, environment: dict[str, str]) -> Helper:
    """Writes a program into a folder of the search path."""
    programs = home / "bin"
    programs.mkdir()
    environment["PATH"] = f"{programs}:{environment['PATH']}"

    def write(name: str, script: str) -> None:
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)

    return write


def resolve_git(konverge: Konverge, server: GitServer, *more: str | Path, **environment: str) -> CompletedProcess[str]:
    url = server.url("boxes.git", host="127.0.0.1")
    return konverge("resolve", "git", "--url", url, "--path", "t.yaml", *LOOPBACK, *PLAIN, *more, **environment)


def resolve_bundle(
    konverge: Konverge, registry: FakeRegistry, *more: str | Path, **environment: str
) -> CompletedProcess[str]:
    name = registry.name("127.0.0.1")
    options = ("--bundle", f"{name}/team/boxes:v1", "--name", "build", "--setting", f"plain-http-registries={name}")
    return konverge("resolve", "bundles", *options, *LOOPBACK, *more, **environment)


def write_netrc(home: Path, host: str = "127.0.0.1", password: str = PASSWORD) -> None:
    (home / ".netrc").write_text(f"machine {host}\n  login ann\n  password {password}\n")
    (home / ".netrc").chmod(0o600)


DOCKER_AUTH = base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
REPLY = json.dumps({"ServerURL": "x", "Username": "ann", "Secret": PASSWORD})


def write_docker_config(home: Path, config: object, folder: str = ".docker/config.json") -> None:
    file = home / folder
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(config if isinstance(config, str) else json.dumps(config))


@pytest.mark.parametrize(
    ("gitconfig", "netrc", "source"),
    [
        ("[credential]\n helper = boxes\n", False, "git's credential helpers"),
        ("[credential]\n helper = \"!echo username=ann; echo password=hunter2-hunter2; :\"\n", False,
         "git's credential helpers"),
        ("", True, "~/.netrc"),
        ("[credential]\n helper = none\n", True, "~/.netrc"),
    ],
    ids=["a helper", "a shell helper", "netrc", "a helper without it, then netrc"],
)  # fmt: skip
def test_a_repository_gets_the_login_of_its_user_only_when_it_wants_one(
    konverge: Konverge, server: GitServer, home: Path, helper: Helper, gitconfig: str, netrc: bool, source: str
) -> None:
    helper("git-credential-boxes", f"echo $0 >&2; cat >{home}/asked; echo username=ann; echo password={PASSWORD}")
    helper("git-credential-none", "cat >/dev/null")
    (home / ".gitconfig").write_text(gitconfig)
    if netrc:
        write_netrc(home)
    done = resolve_git(konverge, server, "-v")
    assert (done.stdout, done.returncode) == (TASK, 0)
    authority = f"127.0.0.1:{server.port}"
    assert f"credentials for {authority}: found in {source}" in done.stderr
    assert PASSWORD not in done.stderr
    assert DOCKER_AUTH not in done.stderr
    assert server.seen[0].authorization == "", "a public repository never gets one"
    if gitconfig.endswith("boxes\n"):
        assert f"host={authority}\n" in (home / "asked").read_text()


@pytest.mark.parametrize(
    ("config", "folder", "variables", "source"),
    [
        ({"auths": {"REGISTRY": {"auth": DOCKER_AUTH}}}, ".docker/config.json", {}, "~/.docker/config.json"),
        ({"auths": {"REGISTRY/team": {"auth": DOCKER_AUTH}}}, ".config/containers/auth.json", {},
         "~/.config/containers/auth.json"),
        ({"auths": {"https://REGISTRY/v2/": {"username": "ann", "password": PASSWORD}}}, "mine/auth.json",
         {"REGISTRY_AUTH_FILE": "HOME/mine/auth.json"}, "~/mine/auth.json"),
        ({"auths": {"REGISTRY": {"auth": DOCKER_AUTH}}}, "other/config.json", {"DOCKER_CONFIG": "HOME/other"},
         "~/other/config.json"),
        ({"auths": {"REGISTRY": {"auth": DOCKER_AUTH}}}, "run/containers/auth.json", {"XDG_RUNTIME_DIR": "HOME/run"},
         "~/run/containers/auth.json"),
        ({"credsStore": "boxes"}, ".docker/config.json", {}, "docker-credential-boxes (of ~/.docker/config.json)"),
        ({"credHelpers": {"REGISTRY": "boxes"}, "credsStore": "none"}, ".docker/config.json", {},
         "docker-credential-boxes (of ~/.docker/config.json)"),
        ({"credsStore": "none", "auths": {"REGISTRY": {"auth": DOCKER_AUTH}}}, ".docker/config.json", {},
         "~/.docker/config.json"),
    ],
    ids=["docker", "podman, by path", "a named file", "a named folder", "podman's session", "a store", "a helper",
         "a store without it"],
)  # fmt: skip
def test_a_registry_gets_the_login_of_docker_and_podman(
    konverge: Konverge,
    registry: FakeRegistry,
    home: Path,
    helper: Helper,
    config: object,
    folder: str,
    variables: dict[str, str],
    source: str,
) -> None:
    helper("docker-credential-boxes", f"cat >>{home}/asked; echo '{REPLY}'")
    helper("docker-credential-none", "echo credentials not found in native keychain; exit 1")
    name = registry.name("127.0.0.1")
    write_docker_config(home, json.dumps(config).replace("REGISTRY", name), folder)
    found = {variable: value.replace("HOME", str(home)) for variable, value in variables.items()}
    done = resolve_bundle(konverge, registry, "-v", **found)
    assert (done.returncode, "kind: Task" in done.stdout) == (0, True), done.stderr
    assert f"credentials for {name}: found in {source}" in done.stderr
    assert PASSWORD not in done.stderr
    assert DOCKER_AUTH not in done.stderr
    if "boxes" in source:
        assert (home / "asked").read_text() == name, "once for all requests of the command"


def test_the_definitions_of_a_private_registry_are_listed(
    konverge: Konverge, registry: FakeRegistry, home: Path
) -> None:
    name = registry.name("127.0.0.1")
    write_docker_config(home, {"auths": {name: {"auth": DOCKER_AUTH}}})
    options = ("--bundle", f"{name}/team/boxes:v1", "--setting", f"plain-http-registries={name}", *LOOPBACK)
    done = konverge("resolve", "bundles", "--list", *options)
    assert (done.returncode, "build" in done.stdout) == (0, True), done.stderr


def test_the_files_of_a_private_repository_are_listed(konverge: Konverge, server: GitServer, home: Path) -> None:
    write_netrc(home)
    url = server.url("boxes.git", host="127.0.0.1")
    done = konverge("resolve", "git", "--list", "--url", url, *LOOPBACK, *PLAIN)
    assert (done.returncode, "t.yaml" in done.stdout) == (0, True), done.stderr


def test_a_file_over_http_gets_the_login_of_netrc(konverge: Konverge, home: Path) -> None:
    write_netrc(home)
    seen: list[str] = []

    class Private(Handler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization", ""))
            body = TASK.encode() if seen[-1] == f"Basic {DOCKER_AUTH}" else b""
            self.send_response(200 if body else 401)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http_server(Private) as port:
        url = f"http://127.0.0.1:{port}/t.yaml"
        done = konverge("resolve", "http", "--url", url, *LOOPBACK, *PLAIN, "-v")
    assert (done.stdout, seen) == (TASK, ["", f"Basic {DOCKER_AUTH}"])
    assert f"credentials for 127.0.0.1:{port}: found in ~/.netrc" in done.stderr


@pytest.mark.slow
def test_a_login_of_a_path_is_for_no_other_path(
    konverge: Konverge, server: GitServer, home: Path, helper: Helper, tmp_path: Path
) -> None:
    """With ``credential.useHttpPath`` each repository has its own, also those that a definition refers to."""
    git("clone", "--quiet", "--bare", str(tmp_path / "work"), str(tmp_path / "other.git"), folder=tmp_path)
    work = tmp_path / "work"
    ref = {"resolver": "git", "params": {"url": server.url("other.git", host="127.0.0.1"), "pathInRepo": "t.yaml"}}
    definition = {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}, "spec": {"taskRef": ref}}
    (work / "p.yaml").write_text(json.dumps(definition))
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "two", folder=work)
    git("push", "--quiet", str(tmp_path / "boxes.git"), "main", folder=work)
    server.credentials["other.git"] = ("eve", "other-password")
    helper("git-credential-paths", "grep -q path=boxes.git && echo username=ann && echo password=hunter2-hunter2")
    (home / ".gitconfig").write_text("[credential]\n helper = paths\n useHttpPath = true\n")
    url = server.url("boxes.git", host="127.0.0.1")
    options = ("--path", "p.yaml", "--lock", tmp_path / "lock.yaml", *LOOPBACK, *PLAIN)
    done = konverge("resolve", "git", "--url", url, *options)
    assert (done.returncode, "konverge: AuthRequired: spec.taskRef of git+" in done.stderr) == (1, True), done.stderr
    assert not any(request.authorization for request in server.seen if request.path.startswith("/other.git"))


def test_all_of_them_can_be_switched_off(
    konverge: Konverge, server: GitServer, registry: FakeRegistry, home: Path
) -> None:
    write_netrc(home)
    write_docker_config(home, {"auths": {registry.name("127.0.0.1"): {"auth": DOCKER_AUTH}}})
    for run in (resolve_git(konverge, server, "--no-user-credentials"),
                resolve_bundle(konverge, registry, "--no-user-credentials")):  # fmt: skip
        assert run.returncode == 1
        assert "konverge: AuthRequired: " in run.stderr
        assert "log in" not in run.stderr
    assert not any(request.authorization for request in server.seen)
    assert not any(request.authorization for request in registry.seen)


def test_without_tls_none_is_sent(konverge: Konverge, server: GitServer, home: Path) -> None:
    write_netrc(home)
    url = server.url("boxes.git", host="127.0.0.1")
    done = konverge("resolve", "git", "--url", url, "--path", "t.yaml", *LOOPBACK)
    assert done.returncode == 3
    assert "credentials are not sent without TLS" in done.stderr
    assert "(found in ~/.netrc)" in done.stderr
    assert not any(request.authorization for request in server.seen)


def test_a_definition_cannot_name_a_host_that_gets_one(
    konverge: Konverge, server: GitServer, home: Path, tmp_path: Path
) -> None:
    """Whoever writes a definition or a lock file could otherwise have any file of the user's servers fetched."""
    write_netrc(home)
    private = server.url("boxes.git", host="127.0.0.1")
    work = tmp_path / "public"
    work.mkdir()
    ref = {"resolver": "git", "params": {"url": private, "revision": "main", "pathInRepo": "t.yaml"}}
    definition = {"apiVersion": "v1", "kind": "P", "metadata": {"name": "p"}, "spec": {"taskRef": ref}}
    (work / "p.yaml").write_text(json.dumps(definition))
    git("init", "--quiet", folder=work)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    with git_server(work) as public:
        url = public.url(".git", host="127.0.0.1")
        options = ("--path", "p.yaml", "--lock", tmp_path / "lock.yaml", *LOOPBACK, *PLAIN, "-v")
        done = konverge("resolve", "git", "--url", url, *options)
    assert done.returncode == 1
    assert f"credentials for 127.0.0.1:{server.port}: none are sent" in done.stderr
    assert not any(request.authorization for request in server.seen)


@pytest.mark.slow
def test_a_lock_file_alone_sends_none(konverge: Konverge, server: GitServer, home: Path, tmp_path: Path) -> None:
    write_netrc(home)
    lock = tmp_path / "lock.yaml"
    assert resolve_git(konverge, server, "--lock", lock).returncode == 0
    for content in (tmp_path / "lock.yaml.d").iterdir():
        content.unlink()
    server.reset_counters()
    done = konverge("resolve", "--lock", lock, *LOOPBACK)
    assert done.returncode == 1
    assert not any(request.authorization for request in server.seen)


@pytest.mark.slow
def test_a_login_that_is_refused_is_named_by_its_place(konverge: Konverge, server: GitServer, home: Path) -> None:
    write_netrc(home, password="not-hunter2")
    done = resolve_git(konverge, server)
    assert done.returncode == 3
    assert "rejects the credential of the request (from ~/.netrc)" in done.stderr
    assert "not-hunter2" not in done.stderr


UNUSABLE = {
    "bad JSON": ("{", "~/.docker/config.json: expected JSON, found another format"),
    "a list": ("[]", "~/.docker/config.json: expected an object, found another type"),
    "a path as helper": ({"credsStore": "../../boxes"}, "expected the name of a credential helper"),
    "a missing helper": ({"credsStore": "missing"}, "docker-credential-missing (of ~/.docker/config.json): no such"),
    "a failing helper": ({"credsStore": "fails"}, "failed with status 3"),
    "a helper that prints secrets": ({"credsStore": "leaks"}, "expected JSON with Username and Secret"),
    "a helper without end": ({"credsStore": "endless"}, "expected at most 65536 bytes of output, found more"),
    "an identity token": ({"credsStore": "token"}, "found an identity token, which is not supported"),
    "nesting": ("[" * 100_000, "expected JSON"),
    "too much": ('"' + "x" * (1 << 20) + '"', "expected at most 1048576 bytes, found more"),
}


@pytest.mark.parametrize(("config", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_place_that_cannot_be_used_is_a_warning_without_its_content(
    konverge: Konverge, registry: FakeRegistry, home: Path, helper: Helper, config: object, message: str
) -> None:
    helper("docker-credential-fails", f"echo {PASSWORD}; echo {PASSWORD} >&2; exit 3")
    helper("docker-credential-leaks", f"echo {PASSWORD}; echo {PASSWORD} >&2")
    helper("docker-credential-endless", f"yes {PASSWORD}")
    helper("docker-credential-token", f"""echo '{{"Username": "<token>", "Secret": "{PASSWORD}"}}'""")
    write_docker_config(home, config)
    done = resolve_bundle(konverge, registry, "-v", "--timeout", "20")
    assert done.returncode == 1
    assert f"{message}" in done.stderr
    assert "AuthRequired: " in done.stderr.splitlines()[-1]
    assert "; log in with docker or podman; add the value of a Secret with --credential" in done.stderr
    assert PASSWORD not in done.stderr
    quiet = resolve_bundle(konverge, registry)
    assert quiet.stderr.count("konverge: warning: ") == 1


@pytest.mark.slow
def test_a_helper_that_hangs_ends_with_the_command_and_leaves_no_process(
    konverge: Konverge, registry: FakeRegistry, home: Path, helper: Helper
) -> None:
    helper("docker-credential-hangs", f"sleep 1000 & echo $! >{home}/child; wait")
    write_docker_config(home, {"credsStore": "hangs"})
    done = resolve_bundle(konverge, registry, "--timeout", "2")
    assert done.returncode == 6
    assert f"; it was looking up a credential for {registry.name('127.0.0.1')}\n" in done.stderr
    child = Path(f"/proc/{int((home / 'child').read_text())}")
    assert not child.exists() or not (child / "cmdline").read_bytes(), "it has ended, even if nobody has collected it"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "machine 127.0.0.1\n login ann\n passwrd hunter2-hunter2\n",
            "format of netrc, found another in line 3",
        ),
        ("default login ann password hunter2-hunter2\n", "none in git's credential helpers, ~/.netrc"),
        ("\udcff", "expected text in UTF-8"),
    ],
    ids=["another word", "default", "another encoding"],
)
def test_a_netrc_that_cannot_be_used_sends_nothing(
    konverge: Konverge, server: GitServer, home: Path, text: str, message: str
) -> None:
    (home / ".netrc").write_bytes(text.encode("utf-8", "surrogateescape"))
    done = resolve_git(konverge, server, "-v")
    assert done.returncode == 1
    assert message in done.stderr
    assert PASSWORD not in done.stderr
    assert not any(request.authorization for request in server.seen)


def test_a_file_that_never_ends_is_not_waited_for(konverge: Konverge, registry: FakeRegistry, home: Path) -> None:
    (home / ".docker").mkdir()
    os.mkfifo(home / ".docker/config.json")
    done = resolve_bundle(konverge, registry)
    assert "konverge: warning: ~/.docker/config.json: expected a regular file" in done.stderr
    assert done.returncode == 1


def write_ssh_config(home: Path, helper: Helper, ssh: SshServer, config: str) -> None:
    """The configuration of a user; ssh itself reads it in the folder of the account, whatever ``HOME`` is."""
    (home / ".ssh").mkdir()
    (home / ".ssh/key").write_bytes(ssh.private_key)
    (home / ".ssh/key").chmod(0o600)
    (home / ".ssh/known").write_bytes(ssh.format_known_hosts("127.0.0.1"))
    host = f"Host boxes\n HostName 127.0.0.1\n Port {ssh.port}\n User {ssh.user}\n"
    files = f" UserKnownHostsFile {home}/.ssh/known\n GlobalKnownHostsFile /dev/null\n"
    (home / ".ssh/config").write_text(host + files + config.replace("HOME", str(home)))
    program = shutil.which("ssh")
    helper("ssh", f'[ "$1" = -G ] && exec {program} -F {home}/.ssh/config "$@"\nexec {program} "$@"')


@pytest.mark.slow
@pytest.mark.parametrize("uses_agent", [False, True], ids=["a key file", "an agent"])
def test_ssh_has_the_keys_the_host_keys_and_the_names_of_its_user(
    konverge: Konverge, server: GitServer, home: Path, helper: Helper, uses_agent: bool
) -> None:
    with ssh_server() as ssh, ExitStack() as stack:
        write_ssh_config(home, helper, ssh, " IdentityFile none\n" if uses_agent else " IdentityFile HOME/.ssh/key\n")
        variables = {"SSH_AUTH_SOCK": stack.enter_context(ssh_agent(home / ".ssh/key"))} if uses_agent else {}
        command = ("resolve", "git", "--url", f"ssh://boxes{server.root}/boxes.git", "--path", "t.yaml", *LOOPBACK)
        done = konverge(*command, "-v", **variables)
        assert (done.stdout, done.returncode) == (TASK, 0), done.stderr
        source = f"{'agent and keys' if uses_agent else 'keys'} of the ssh configuration of this user"
        assert f"credentials for boxes: {source}" in done.stderr
        off = konverge(*command, "--no-user-credentials")
        assert (off.returncode, "expected http or https, found ssh" in off.stderr) == (1, True)


@pytest.mark.slow
def test_ssh_refuses_what_its_user_has_not_accepted(
    konverge: Konverge, server: GitServer, home: Path, helper: Helper
) -> None:
    with ssh_server() as ssh:
        write_ssh_config(home, helper, ssh, " IdentityFile HOME/.ssh/key\nHost detour\n ProxyJump boxes\n")
        url = f"{server.root}/boxes.git"
        detour = konverge("resolve", "git", "--url", f"ssh://detour{url}", "--path", "t.yaml", *LOOPBACK)
        assert detour.returncode == 3
        assert "for host detour has ProxyJump, which konverge does not follow" in detour.stderr
        refused = konverge("resolve", "git", "--url", f"ssh://boxes{url}", "--path", "t.yaml")
        assert (refused.returncode, "its network is loopback" in refused.stderr) == (3, True)
        (home / ".ssh/known").write_text("")
        unknown = konverge("resolve", "git", "--url", f"ssh://boxes{url}", "--path", "t.yaml", *LOOPBACK)
        assert unknown.returncode == 3
        assert "has a host key that is not in known_hosts of the credential" in unknown.stderr


@contextmanager
def ssh_agent(key: Path) -> Iterator[str]:
    """An agent with one key; the path of its socket."""
    # The path of a socket has at most 107 characters.
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "agent"
        agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
        try:
            while not socket.exists():
                with suppress(subprocess.TimeoutExpired):
                    agent.wait(0.01)
                assert agent.returncode is None
            variables = {"SSH_AUTH_SOCK": str(socket), "PATH": os.environ["PATH"]}
            subprocess.run(["ssh-add", "-q", str(key)], env=variables, check=True)
            yield str(socket)
        finally:
            agent.terminate()
            agent.wait()


@pytest.mark.slow
def test_the_proxy_of_the_environment_connects_for_a_command(konverge: Konverge) -> None:
    with tinyproxy() as proxy:
        for resolver, options in (("http", ()), ("git", ("--path", "t.yaml"))):
            command = ("resolve", resolver, "--url", "https://boxes.invalid/t.yaml", *options, "--timeout", "5")
            konverge(*command, HTTPS_PROXY=proxy.url)
            requests = len(proxy.list_requests())
            assert requests, resolver
            assert proxy.list_requests()[-1].startswith("CONNECT boxes.invalid:443")
            konverge(*command, HTTPS_PROXY=proxy.url, NO_PROXY="invalid")
            konverge(*command, "--no-user-credentials", HTTPS_PROXY=proxy.url)
            assert len(proxy.list_requests()) == requests, "neither of them may use it"
    done = konverge("resolve", "http", "--url", "https://a.example", HTTPS_PROXY="ftp://ann:hunter2@a.example")
    assert (done.returncode, "hunter2" in done.stderr) == (3, False)
    assert "konverge: InvalidConfiguration: variable HTTPS_PROXY: expected a proxy such as" in done.stderr

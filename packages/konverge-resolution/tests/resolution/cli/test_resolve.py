"""`konverge resolve`: a definition on the command line, from a real git server, with policies and lock files."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from konverge._internal.cli.main import run_command
from konverge_resolution import REASON_TRAITS, Digest, Reason
from konverge_resolution._internal.cli.failure_output import EXIT_CODES
from tests.cli.conftest import Konverge
from tests.resolution.servers.git import GitServer, git, git_server

TASK = "apiVersion: v1\nkind: Task\nmetadata: {name: t}\n"
PIPELINE = "apiVersion: v1\nkind: Pipeline\nmetadata: {name: p}\nspec:\n  taskRef: {path: ../tasks/t.yaml}\n"
WRONG = """apiVersion: v1
kind: Pipeline
metadata: {name: wrong}
spec:
  taskRef: {resolver: git, params: {url: "https://git.example.com/a", pathInRepo: ../x}}
"""
REPOSITORY = Path(__file__).parents[5]
TOKEN = "hunter2-hunter2"


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    root = tmp_path_factory.mktemp("git")
    work = root / "work"
    files = {"ci/p.yaml": PIPELINE, "ci/wrong.yaml": WRONG, "tasks/t.yaml": TASK, "text": "hello\n"}
    for name, text in files.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    git("init", "--quiet", folder=work)
    git("add", ".", folder=work)
    git("commit", "--quiet", "-m", "one", folder=work)
    git("clone", "--quiet", "--bare", str(work), str(root / "boxes.git"), folder=root)
    with git_server(root) as server:
        yield server


@pytest.fixture
def server(shared: GitServer) -> Iterator[GitServer]:
    yield shared
    shared.credentials.clear()
    shared.statuses.clear()
    shared.reset_counters()


class Asking:
    """Asks that server."""

    def __init__(self, konverge: Konverge, server: GitServer) -> None:
        self._konverge = konverge
        self.url = server.url("boxes.git", host="127.0.0.1")

    def __call__(
        self, *more: str | Path, path: str = "ci/p.yaml", network: str = "127.0.0.0/8", **environment: str
    ) -> CompletedProcess[str]:
        allowed = ["--allow-network", network] if network else []
        return self._konverge("resolve", "git", "--url", self.url, "--path", path, *allowed, *more, **environment)


@pytest.fixture
def asking(konverge: Konverge, server: GitServer) -> Asking:
    return Asking(konverge, server)


@pytest.mark.slow
def test_the_content_is_printed_byte_for_byte(started_konverge: Konverge, server: GitServer) -> None:
    done = Asking(started_konverge, server)()
    assert (done.stdout, done.stderr, done.returncode) == (PIPELINE, "", 0)


@pytest.mark.slow
def test_a_url_stands_for_the_resolver_and_its_options(asking: Asking, konverge: Konverge) -> None:
    place = f"git+{asking.url}"
    for url, more in (
        (f"{place}@HEAD#ci/p.yaml", []),
        (f"{place}#ci/p.yaml?revision=HEAD", []),
        (f"{place}#ci/p.yaml", ["--revision", "HEAD"]),
    ):
        done = konverge("resolve", url, "--allow-network", "127.0.0.0/8", *more)
        assert (done.stdout, done.stderr, done.returncode) == (PIPELINE, "", 0)
    missing = konverge("resolve", f"{place}#missing.yaml", "--allow-network", "127.0.0.0/8", "-o", "json")
    assert (missing.returncode, json.loads(missing.stdout)["error"]["reason"]) == (1, "NotFound")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["git+https://user:hunter2@a.example/b"], "expected the form git+https://HOST/PATH@REVISION#FILE"),
        (["gitt+https://a.example/b#c"], "did you mean 'git+https'?"),
        (["git+https://a.example/b@v1#c", "--revision", "v2"], "--param revision: the resolver's own option sets it"),
        (["file:///etc/passwd"], "expected one of the schemes"),
    ],
)
def test_a_url_that_stands_for_nothing_is_an_invalid_command_line(
    konverge: Konverge, arguments: list[str], told: str
) -> None:
    done = konverge("resolve", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in " ".join(done.stderr.split())
    assert "hunter2" not in done.stderr


@pytest.mark.slow
def test_options_may_be_written_like_the_parameters_of_a_reference(konverge: Konverge, asking: Asking) -> None:
    done = konverge(
        "resolve", "git", "--url", asking.url, "--pathInRepo", "ci/p.yaml", "--allow-network", "127.0.0.0/8"
    )
    assert (done.stdout, done.returncode) == (PIPELINE, 0)
    shown = konverge("resolve", "git", "--help").stdout
    for spelling in ("--path, --pathInRepo", "--scm-type, --scmType", "--git-ssh-secret, --gitSSHSecret"):
        assert spelling in shown


@pytest.mark.slow
def test_the_next_process_asks_only_where_the_branch_is(asking: Asking, server: GitServer, home: Path) -> None:
    def count_requests(*more: str) -> int:
        server.reset_counters()
        done = asking(*more)
        assert (done.stdout, done.stderr, done.returncode) == (PIPELINE, "", 0)
        return len(server.seen)

    first, second, uncached = count_requests(), count_requests(), count_requests("--no-cache")
    assert 0 < second < first == uncached
    commit = json.loads(asking("-o", "json").stdout)["pinned"]["revision"]
    assert count_requests("--revision", commit) == 0
    assert count_requests("--revision", commit, "--no-cache") > 0
    record = json.loads(asking("--revision", commit, "-o", "json").stdout)
    assert (record["fetchedFrom"], record["attempts"], record["content"]) == ("cache", 0, PIPELINE)

    (content,) = (home / ".cache/konverge/definitions/content").iterdir()
    content.write_text("kind: Secret")
    damaged = asking("--revision", commit)
    assert (damaged.stdout, damaged.returncode) == (PIPELINE, 0)
    assert "its content does not match its digest; it is fetched again" in damaged.stderr
    assert count_requests("--revision", commit) == 0


@pytest.mark.slow
def test_a_cache_that_cannot_be_used_costs_one_line(asking: Asking, home: Path) -> None:
    (home / ".cache").write_text("")
    done = asking()
    assert (done.stdout, done.returncode, done.stderr.count("\n")) == (PIPELINE, 0, 1)
    assert f"cache {home}/.cache/konverge/definitions: not used: " in done.stderr
    silent = asking("--no-cache")
    assert (silent.stdout, silent.stderr) == (PIPELINE, "")
    elsewhere = asking(XDG_CACHE_HOME=str(home / "caches"))
    assert (elsewhere.stdout, elsewhere.stderr) == (PIPELINE, "")
    assert (home / "caches/konverge/definitions/records").is_dir()


@pytest.mark.slow
def test_what_is_compared_with_its_source_does_not_come_from_the_cache(
    asking: Asking, konverge: Konverge, server: GitServer, tmp_path: Path
) -> None:
    lock = tmp_path / "ci.lock.yaml"
    assert asking("--lock", lock).returncode == 0
    server.reset_counters()
    verified = konverge("resolve", "--lock", lock, "--verify", "--allow-network", "127.0.0.0/8")
    assert verified.returncode == 0
    assert server.seen


@pytest.mark.slow
def test_the_files_of_a_repository_are_listed(asking: Asking, konverge: Konverge, tmp_path: Path) -> None:
    list_files = ["resolve", "git", "--url", asking.url, "--revision", "HEAD", "--list"]
    done = konverge(*list_files, "--allow-network", "127.0.0.0/8")
    assert (done.stdout, done.stderr, done.returncode) == ("ci/p.yaml\nci/wrong.yaml\ntasks/t.yaml\n", "", 0)
    record = json.loads(konverge(*list_files, "--allow-network", "127.0.0.0/8", "-o", "json").stdout)
    assert [each["params"]["pathInRepo"] for each in record] == ["ci/p.yaml", "ci/wrong.yaml", "tasks/t.yaml"]
    policy = {
        "apiVersion": "resolution.konverge.dev/v1alpha1",
        "kind": "ResolutionPolicy",
        "metadata": {"name": "ours"},
        "spec": {"privateNetworks": ["127.0.0.0/8"], "parameters": {"pathInRepo": ["ci/*"]}},
    }
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy))
    denied = konverge(*list_files, "--policy", file)
    assert (denied.returncode, denied.stdout) == (3, "")


FAILURES = {
    "a missing file": (["--path", "missing.yaml"], "NotFound", "user", False, 1),
    "an invalid path": (["--path", "../x"], "InvalidParams", "user", False, 1),
    "other content": (["--path", "text"], "UnsupportedContent", "user", False, 1),
    "another digest": (["--digest", str(Digest.of(b""))], "DigestMismatch", "remote", False, 7),
    "a refused network": (["--url", "http://127.0.0.1:9/a.git"], "Denied", "operator", False, 3),
    "a closed port": (["--url", "http://127.0.0.1:9/a.git", "--allow-network", "127.0.0.0/8"], "Unreachable", "remote",
                      True, 6),
    "an invalid setting": (["--setting", "fetch-timeout=banana"], "InvalidConfiguration", "operator", False, 3),
    "a missing policy": (["--policy", "missing.yaml"], "InvalidConfiguration", "operator", False, 3),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("more", "reason", "fault", "is_transient", "code"), FAILURES.values(), ids=FAILURES)
def test_with_json_a_failure_is_a_record_with_its_reason_word(
    asking: Asking, more: list[str], reason: str, fault: str, is_transient: bool, code: int
) -> None:
    done = asking(*more, "-o", "json", "--timeout", "20", network="" if "--url" in more else "127.0.0.0/8")
    record = json.loads(done.stdout)
    assert list(record) == ["resolver", "error"]
    error = record["error"]
    assert (record["resolver"], error["reason"], error["fault"], error["isTransient"], error["exitCode"]) == (
        "git", reason, fault, is_transient, code
    )  # fmt: skip
    assert done.returncode == code
    assert done.stderr == f"konverge: {reason}: {error['message']}\n"
    assert set(error) == {"reason", "message", "fault", "isTransient", "retryAfterSeconds", "exitCode"}


def test_with_json_an_error_that_nobody_expected_is_a_record_without_its_text(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    async def fail(_flags: object) -> bytes:
        raise ZeroDivisionError("hunter2")

    monkeypatch.setattr("konverge_resolution._internal.cli.resolve_actions.resolve_one", fail)
    command = ["resolve", "http", "--url", "https://files.example.com/a.yaml"]
    message = "unexpected error ZeroDivisionError; run the command again with --verbose for its traceback"
    assert run_command([*command, "-o", "json"]) == 3
    output = capfd.readouterr()
    record = json.loads(output.out)
    assert (record["resolver"], record["error"]["reason"], record["error"]["exitCode"]) == ("http", "Internal", 3)
    assert (record["error"]["message"], record["error"]["fault"]) == (message, "operator")
    assert output.err == f"konverge: Internal: {message}\n"
    assert run_command(command) == 3
    assert capfd.readouterr() == ("", output.err)
    assert run_command([*command, "--verbose"]) == 3
    assert "Traceback" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "resolver", "message"),
    [
        (["git", "-o", "json", "--banana"], "git", "No such option '--banana'"),
        (["git", "--output=json", "--offline"], "git", "--offline: requires --lock FILE"),
        (["git", "-ojson", "--digest", "md5:1"], "git", "Invalid value for --digest: expected sha256:"),
        (["gti", "-o", "json"], "gti", "resolver 'gti' is not installed; available: "),
        (["-o", "json"], "", "No such option '-o'"),
        (["git", "-o", "json", "--timeout", "x"], "git", "Invalid value for '--timeout'"),
    ],
)
def test_with_json_an_invalid_command_line_is_a_record_too(
    konverge: Konverge, arguments: list[str], resolver: str, message: str
) -> None:
    done = konverge("resolve", *arguments)
    record = json.loads(done.stdout)
    error = record["error"]
    assert (done.returncode, record["resolver"], error["reason"], error["exitCode"]) == (2, resolver, "InvalidUsage", 2)
    assert error["message"].startswith(message)
    assert list(error) == ["reason", "message", "fault", "isTransient", "retryAfterSeconds", "exitCode"]
    assert error["message"] in done.stderr
    plain = konverge("resolve", *(argument for argument in arguments if "json" not in argument and argument != "-o"))
    assert plain.stdout == ""


def test_every_reason_has_an_exit_code_and_the_page_has_the_same_table() -> None:
    page = (REPOSITORY / "docs" / "command-line.md").read_text()
    rows = {reason: f"| `{reason}` | {REASON_TRAITS[reason].fault} | {code:d} |" for reason, code in EXIT_CODES.items()}
    assert list(EXIT_CODES) == list(Reason)
    assert "\n".join(rows.values()) + "\n\n" in page


def test_the_record_says_where_it_is_from_and_what_it_is(asking: Asking) -> None:
    found = json.loads(asking("-o", "json", path="tasks/t.yaml").stdout)
    assert found["source"]["uri"] == f"git+{asking.url}"
    assert found["policySource"] == f"git+{asking.url}".removesuffix(".git")
    assert found["source"]["entryPoint"] == "tasks/t.yaml"
    assert found["digest"] == str(Digest.of(TASK.encode()))
    assert found["pinned"]["revision"] == found["source"]["digest"]["sha1"]
    assert (found["content"], found["fetchedFrom"], found["attempts"]) == (TASK, "remote", 1)


def test_every_resolver_is_a_command_whose_options_are_its_parameters(konverge: Konverge) -> None:
    listed = konverge("resolve", "--help").stdout
    assert "cluster" in listed
    assert "git" in listed
    message = konverge("resolve", "git", "--help").stdout
    for option in ("--url", "--revision", "--path", "--server-url", "--git-ssh-secret", "--param"):
        assert option in message


def test_a_resolver_that_is_not_there_is_refused_as_in_a_cluster(konverge: Konverge) -> None:
    done = konverge("resolve", "gti", "--url", "https://example.com")
    message = (
        "resolver 'gti' is not installed; available: bundles, cluster, disk, git, http, hub; did you mean 'git'?\n"
    )
    assert (done.returncode, done.stderr.endswith(f"Error: {message}")) == (2, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "code", "told"),
    [
        (["--path", "missing.yaml"], 1, "missing.yaml"),
        (["--path", "text"], 1, ".git#text: the content is not a definition"),
        (["--revision", "-x"], 1, "konverge: InvalidParams: --revision: "),
        (["--path", "../x"], 1, "konverge: InvalidParams: --path: "),
        (["--param", "gitTokenKey=/"], 1, "konverge: InvalidParams: --git-token-key: "),
        (["--param", "banana=1"], 1, "banana"),
        (["--digest", str(Digest.of(b""))], 7, f"expected {Digest.of(b'')}, found {Digest.of(PIPELINE.encode())}"),
        (["--digest", "md5:1"], 2, "expected sha256:"),
        (["--param", "url=x"], 2, "--param url: the resolver's own option sets it, too"),
        (["--param", "x"], 2, "expected NAME=VALUE"),
        (["--setting", "fetch-timeout=banana"], 3, "fetch-timeout: expected a duration"),
        (["--policy", "missing.yaml"], 3, "missing.yaml: No such file"),
        (["--ca-certificates", "missing.pem"], 3, "missing.pem: No such file"),
        (["--allow-network", "banana"], 2, "--allow-network: expected a network such as 10.0.0.0/8, found 'banana'"),
        (["--allow-network", "127.0.0.1/8"], 2, "found '127.0.0.1/8'; did you mean 127.0.0.0/8?"),
        (["--url", "file:///boxes"], 1, "--url: expected http, https or ssh, found file; other protocols"),
        (["--url", "http://127.0.0.1:9/"], 1, "--url: expected host/path, found no path"),
        (["--path", "ci/q.yaml"], 1, "does not exist in repository git+http://127.0.0.1:"),
        (["--path", "ci/q.yaml"], 1, "at main ("),
        (["--revision", "mian"], 1, "has no branch, tag or reference 'mian'; did you mean 'main'?"),
        (["--offline"], 2, "--offline: requires --lock FILE"),
        (["--credential", "a/token=hunter2-hunter2"], 2, "expected NAME/KEY=env:VARIABLE or NAME/KEY=file:PATH"),
        (["--git-token", "hunter2-hunter2"], 1, "without a location; add --credential NAME/KEY=env:VARIABLE or f"),
        (["--git-token", "boxes", "--credential", "boxes/tken=env:A"], 1,
         "konverge: AuthRequired: --git-token or --git-token-key: the reference names a credential without a location; "
         "add --credential NAME/KEY=env:VARIABLE or file:PATH; expected boxes/token; found boxes/tken\n"),
        (["--setting", "allow-plain-http-credentials=true", "--git-token", "a", "--credential", "a/token=env:NONE"],
         1, "environment variable NONE is not set"),
    ],
)  # fmt: skip
def test_each_failure_has_its_code_and_says_what_to_do(asking: Asking, more: list[str], code: int, told: str) -> None:
    done = asking(*more)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr
    assert TOKEN not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_of_a_definition_a_mistake_is_told_with_the_parameter_that_stands_there(asking: Asking, tmp_path: Path) -> None:
    done = asking("--lock", tmp_path / "lock.yaml", path="ci/wrong.yaml")
    assert done.returncode == 1
    assert "konverge: InvalidParams: spec.taskRef of git+" in done.stderr
    assert "parameter 'pathInRepo': " in done.stderr


def test_a_server_that_asks_for_a_credential_has_the_option_named(asking: Asking, server: GitServer) -> None:
    server.credentials["boxes.git"] = ("git", TOKEN)
    done = asking()
    assert done.returncode == 1
    assert "name a Secret with --git-token, or with --git-ssh-secret for ssh; " in done.stderr
    assert done.stderr.endswith("--credential NAME/KEY=env:VARIABLE or file:PATH\n")


def test_a_setting_that_a_failure_names_is_told_as_its_option(konverge: Konverge, server: GitServer) -> None:
    host = server.url("boxes", host="127.0.0.1").removeprefix("http://")
    done = konverge("resolve", "bundles", "--bundle", host, "--name", "a", "--allow-network", "127.0.0.0/8")
    assert done.returncode == 3
    assert done.stderr.endswith("if it has no TLS on purpose, add it to --setting plain-http-registries=…\n")


def test_every_refused_network_has_the_option_named(konverge: Konverge) -> None:
    done = konverge("resolve", "http", "--url", "http://127.0.0.1:9/a.yaml")
    assert done.returncode == 3
    assert done.stderr.endswith("its network is loopback; permit it with --allow-network CIDR\n")


@pytest.mark.slow
def test_a_locked_reference_that_is_asked_for_otherwise_is_told_what_is_other(asking: Asking, tmp_path: Path) -> None:
    lock = tmp_path / "lock.yaml"
    assert f"{lock}: 1 entry, 1 added, 0 changed" in asking("--lock", lock, path="tasks/t.yaml").stderr
    (entry,) = yaml.safe_load(lock.read_text())["entries"]
    same = ["--lock", lock, "--offline", "--revision", entry["defaults"]["revision"]]
    assert asking(*same, path="tasks/t.yaml").stdout == TASK
    done = asking("--lock", lock, "--offline", "--revision", "v2", path="tasks/t.yaml")
    assert done.returncode == 1
    assert "; the nearest, for git+" in done.stderr
    assert "differs in 'revision'; lock it first" in done.stderr


def test_a_private_address_is_reached_only_when_it_is_allowed(asking: Asking, server: GitServer) -> None:
    done = asking(network="")
    assert (done.returncode, server.seen) == (3, [])
    assert "connections are not permitted: its network is loopback; permit it with --allow-network CIDR" in done.stderr


@pytest.mark.slow
def test_a_remote_that_does_not_answer_may_do_so_later(asking: Asking, server: GitServer) -> None:
    server.statuses["boxes.git"] = 503
    done = asking("--timeout", "1")
    assert done.returncode == 6


@pytest.mark.slow
def test_a_credential_comes_from_the_environment_or_a_file(asking: Asking, server: GitServer, tmp_path: Path) -> None:
    server.credentials["boxes.git"] = ("git", TOKEN)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    more = ["--setting", "allow-plain-http-credentials=true", "--git-token", "mine", "--credential"]
    assert asking(*more, "mine/token=env:MY_TOKEN", MY_TOKEN=TOKEN).stdout == PIPELINE
    assert asking(*more, "mine/token=file:token").stdout == PIPELINE
    wrong = asking(*more, "mine/token=env:MY_TOKEN", MY_TOKEN=f"not-{TOKEN}")
    assert wrong.returncode in (1, 3)
    assert TOKEN not in wrong.stderr


@pytest.mark.slow
def test_a_credential_can_come_from_a_pipe_which_can_be_read_only_once(
    asking: Asking, server: GitServer, tmp_path: Path
) -> None:
    server.credentials["boxes.git"] = ("git", TOKEN)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = threading.Thread(target=pipe.write_text, args=(f"{TOKEN}\n",), daemon=True)
    writing.start()
    more = ["--setting", "allow-plain-http-credentials=true", "--git-token", "mine", "--timeout", "10"]
    assert asking(*more, "--credential", f"mine/token=file:{pipe}").stdout == PIPELINE


def test_a_file_that_is_too_large_is_refused_and_not_used_in_part(asking: Asking, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"#" * ((1 << 20) + 1))
    done = asking("--ca-certificates", "large")
    message = "konverge: InvalidConfiguration: large: expected at most 1048576 bytes, found more\n"
    assert (done.returncode, done.stderr) == (3, message)
    more = ["--setting", "allow-plain-http-credentials=true", "--git-token", "a", "--credential", "a/token=file:large"]
    done = asking(*more)
    assert done.returncode == 1
    assert "credential file large: expected at most 65536 bytes, found more" in done.stderr


@pytest.mark.slow
def test_a_policy_counts_as_it_does_in_a_cluster(asking: Asking, server: GitServer, tmp_path: Path) -> None:
    policy = {
        "apiVersion": "resolution.konverge.dev/v1alpha1",
        "kind": "ResolutionPolicy",
        "metadata": {"name": "ours"},
        "spec": {"sources": ["git+https://ours.example"]},
    }
    file = tmp_path / "policy.yaml"
    file.write_text(yaml.safe_dump(policy))
    done = asking("--policy", file)
    assert (done.returncode, server.seen) == (3, [])
    place = f"git+{asking.url}".removesuffix(".git")
    message = f"no policy allows namespace default to fetch {place} with resolver git; its policies"
    assert message in done.stderr

    policy["spec"] = {"privateNetworks": ["127.0.0.0/8"], "sources": [place]}
    file.write_text(yaml.safe_dump(policy))
    found = json.loads(asking("--policy", file, "-o", "json", network="").stdout)
    assert found["policies"] == ["ours"]

    for spec, path in (
        ({"sourcs": ["https://a"]}, "spec.sourcs"),
        ({"signature": {"mod": "enforce"}}, "spec.signature.mod"),
        ({"requireDigests": True}, "spec.requireDigests"),
    ):
        policy["spec"] = spec
        file.write_text(yaml.safe_dump(policy))
        done = asking("--policy", file)
        assert (done.returncode, done.stdout) == (3, "")
        assert f"unknown field {path}" in done.stderr

    policy["spec"] = {"sources": ["https://*"]}
    file.write_text(yaml.safe_dump(policy))
    done = asking("--policy", file)
    assert done.returncode == 3
    assert "ResolutionPolicy ours: spec.sources[0]: expected" in done.stderr

    policy["spec"] = {"resolvers": ["gti"], "sources": ["https://ours.example"]}
    file.write_text(yaml.safe_dump(policy))
    seen = len(server.seen)
    done = asking("--policy", file)
    assert (done.returncode, len(server.seen)) == (3, seen)
    assert "spec.resolvers: expected names of resolvers, found 'gti'; available: " in done.stderr
    assert "did you mean 'git'?" in done.stderr


@pytest.mark.slow
def test_a_lock_file_pins_the_tree_and_serves_it_offline(
    asking: Asking, konverge: Konverge, server: GitServer, tmp_path: Path
) -> None:
    lock = tmp_path / "ci.lock.yaml"
    done = asking("--lock", lock)
    assert (done.returncode, done.stdout) == (0, PIPELINE)
    assert f"{lock}: 2 entries, 2 added, 0 changed" in done.stderr
    entries = yaml.safe_load(lock.read_text())["entries"]
    assert {entry["params"]["pathInRepo"]: entry.get("root", False) for entry in entries} == {
        "ci/p.yaml": True,
        "tasks/t.yaml": False,
    }
    before = lock.read_bytes()

    server.reset_counters()
    assert asking("--lock", lock, "--offline", network="").stdout == PIPELINE
    assert konverge("resolve", "--lock", lock, "--offline").returncode == 0
    assert (server.seen, lock.read_bytes()) == ([], before)

    for content in (tmp_path / "ci.lock.yaml.d").iterdir():
        content.unlink()
    done = konverge("resolve", "--lock", lock, "--offline")
    assert done.returncode == 6
    assert "offline: the content sha256:" in done.stderr
    done = konverge("resolve", "--lock", lock, "--allow-network", "127.0.0.0/8")
    assert (done.returncode, lock.read_bytes()) == (0, before)
    assert konverge("resolve", "--lock", lock, "--offline").returncode == 0


@pytest.mark.slow
def test_a_locked_branch_stays_until_it_is_locked_again(konverge: Konverge, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "ci").mkdir(parents=True)
    (work / "ci/p.yaml").write_text(PIPELINE.replace("../tasks/", ""))
    (work / "ci/t.yaml").write_text(TASK)
    git("init", "--quiet", folder=work)
    lock = tmp_path / "lock.yaml"

    def commit(text: str) -> None:
        (work / "ci/t.yaml").write_text(text)
        git("add", ".", folder=work)
        git("commit", "--quiet", "-m", "more", folder=work)

    commit(TASK)
    with git_server(work) as server:
        asking = Asking(konverge, server)
        asking.url = server.url(".git", host="127.0.0.1")
        assert asking("--lock", lock).returncode == 0
        before = lock.read_bytes()
        commit(TASK.replace("t}", "newer}"))
        assert asking("--lock", lock).returncode == 0
        assert lock.read_bytes() == before

        done = konverge("resolve", "--lock", lock, "--update", "--allow-network", "127.0.0.0/8")
        assert (done.returncode, done.stderr.strip()) == (0, f"{lock}: 2 entries, 1 added, 0 changed, 1 removed")
        newer = lock.read_bytes()
        assert asking("--lock", lock, "--update").returncode == 0
        assert lock.read_bytes() == newer != before
        assert len(list(Path(f"{lock}.d").iterdir())) == 2


@pytest.mark.slow
def test_a_folder_that_is_not_the_lock_files_own_keeps_what_other_lock_files_have_there(
    asking: Asking, tmp_path: Path
) -> None:
    shared = tmp_path / "content"
    asking("--lock", tmp_path / "a.yaml", "--content", shared)
    asking("--lock", tmp_path / "b.yaml", "--content", shared, "--update", path="tasks/t.yaml")
    assert len(list(shared.iterdir())) == 2


def test_a_lock_file_that_cannot_be_read_is_refused_in_one_line(asking: Asking, tmp_path: Path) -> None:
    lock = tmp_path / "lock.yaml"
    lock.write_text("<<<<<<< ours\n")
    done = asking("--lock", lock)
    assert done.returncode == 3
    prefix = f"konverge: InvalidConfiguration: {lock}: not a lock file: "
    assert done.stderr == f"{prefix}Expected `object`, got `str`\n"
    lock.write_text(TASK)
    assert asking("--lock", lock).stderr == f"{prefix}expected DefinitionLock, found Task\n"


@pytest.mark.slow
def test_no_credential_is_sent_to_a_place_that_a_lock_file_alone_names(
    asking: Asking, konverge: Konverge, server: GitServer, tmp_path: Path
) -> None:
    lock, given = tmp_path / "lock.yaml", ["--credential", "mine/token=env:BOXES"]
    plain = ["--setting", "allow-plain-http-credentials=true"]
    done = asking("--lock", lock, "--git-token", "mine", *given, *plain, path="tasks/t.yaml", BOXES=TOKEN)
    assert done.returncode == 0
    before = lock.read_bytes()
    for content in (tmp_path / "lock.yaml.d").iterdir():
        content.unlink()
    server.reset_counters()
    for more in ([], ["--update"], ["--verify"]):
        done = konverge("resolve", "--lock", lock, "--allow-network", "127.0.0.0/8", *given, *more, BOXES=TOKEN)
        assert done.returncode == 1
        assert f"{lock}: no credential is sent to a place that only the lock file names" in done.stderr
    assert (server.seen, lock.read_bytes()) == ([], before)


@pytest.mark.slow
def test_verifying_asks_the_source_for_what_is_here_already(
    asking: Asking, konverge: Konverge, server: GitServer, tmp_path: Path
) -> None:
    lock = tmp_path / "lock.yaml"
    assert asking("--lock", lock).returncode == 0
    server.reset_counters()
    done = konverge("resolve", "--lock", lock, "--verify", "--allow-network", "127.0.0.0/8")
    assert (done.returncode, done.stderr) == (0, f"{lock}: 2 entries; all content is in {lock}.d\n")
    assert server.seen
    assert asking("--lock", lock, "--verify").returncode == 0
    for more in ("--offline", "--update"):
        assert "--verify compares locked content with its source" in asking("--lock", lock, "--verify", more).stderr


@pytest.mark.slow
def test_of_several_failures_each_has_its_reason_word(
    asking: Asking, konverge: Konverge, server: GitServer, tmp_path: Path
) -> None:
    lock = tmp_path / "lock.yaml"
    assert asking("--lock", lock).returncode == 0
    for content in (tmp_path / "lock.yaml.d").iterdir():
        content.unlink()
    done = konverge("resolve", "--lock", lock, "--offline")
    lines = done.stderr.splitlines()
    assert (len(lines), [line.startswith("konverge: Unreachable: ") for line in lines]) == (2, [True, True])


def test_without_a_resolver_there_has_to_be_a_lock_file(konverge: Konverge, tmp_path: Path) -> None:
    assert "expected a resolver or --lock FILE" in konverge("resolve").stderr
    assert "No such file" in konverge("resolve", "--lock", tmp_path / "none.yaml").stderr
    assert "options must follow the resolver" in konverge("resolve", "--timeout", "1", "git").stderr

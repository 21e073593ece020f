"""Boxes that import others: locked from a real git server, and read from the locked content."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from konverge._internal.cli.main import konverge
from konverge_box._internal.file import BoxFileError
from konverge_box._internal.runtime.box_validation import find_box_errors, load_valid_box
from konverge_resolution import Digest
from konverge_resolution._internal.content_store import ContentStore
from tests.resolution.network.http_servers import certificate
from tests.resolution.servers.git import GitServer, git, git_server


def entry(kind: str, **more: object) -> dict[str, object]:
    return {"resource": {"apiVersion": "shops.example.com/v1", "kind": kind}, **more}


def a_box(name: str, crds: dict[str, object], **spec: object) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "konverge.dev/v1alpha1",
            "kind": "OperatorBox",
            "metadata": {"name": name},
            "spec": {"crds": crds, **spec},
        },
        sort_keys=False,
    )


CONFIG = {"configMaps": [{"name": "{{ metadata.name }}", "data": {"a": "b"}}]}
COMMON = a_box("common", {"cart": entry("Cart", onReconcile=CONFIG)}, imports=[{"path": "deeper/base.yaml"}])
BASE = a_box("base", {"till": entry("Till", onReconcile=CONFIG)})


class Shop:
    """A box in a folder that imports from a repository."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "work"
        self.file = folder / "box.yaml"
        self.lock = folder / "box.lock.yaml"
        (self.work / "boxes/deeper").mkdir(parents=True)
        git("init", "--quiet", folder=self.work)
        self.server: GitServer | None = None

    def publish(self, common: str = COMMON, base: str = BASE) -> None:
        (self.work / "boxes/common.yaml").write_text(common)
        (self.work / "boxes/deeper/base.yaml").write_text(base)
        git("add", ".", folder=self.work)
        git("commit", "--quiet", "--allow-empty", "-m", "more", folder=self.work)

    @property
    def url(self) -> str:
        assert self.server is not None
        return self.server.url(".git", host="127.0.0.1")

    def write(self, crds: dict[str, object] | None = None, **spec: object) -> None:
        reference = {"resolver": "git", "params": {"url": self.url, "pathInRepo": "boxes/common.yaml"}}
        spec = {"imports": [reference], **spec}
        self.file.write_text(a_box("shop", {"shelf": entry("Shelf")} if crds is None else crds, **spec))

    def locking(self, *more: str) -> Result:
        return CliRunner().invoke(konverge, ["box", "lock", str(self.file), "--allow-network", "127.0.0.0/8", *more])

    def mistakes(self) -> list[str]:
        return [str(each) for each in find_box_errors(self.file.read_bytes(), file=str(self.file))]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    made = Shop(tmp_path)
    made.publish()
    with git_server(made.work) as server:
        made.server = server
        made.write()
        yield made


@pytest.mark.slow
def test_what_is_imported_belongs_to_the_box_with_all_that_it_imports_itself(shop: Shop) -> None:
    assert shop.locking().exit_code == 0
    box = load_valid_box(shop.file.read_bytes(), file=str(shop.file))
    assert list(box.spec.crds) == ["shelf", "cart", "till"]
    assert len(list(Path(f"{shop.lock}.d").iterdir())) == 2


def test_without_a_lock_file_the_mistake_says_how_to_make_one(shop: Shop) -> None:
    (mistake,) = shop.mistakes()
    assert f"{shop.file}:" in mistake
    assert "spec.imports" in mistake
    assert f"not resolved yet; run konverge box lock {shop.file}" in mistake


@pytest.mark.parametrize("crds", [{}, {"shelf": entry("Shelf", dependsOn={"cart": "healthy"})}])
def test_before_it_is_locked_nothing_is_said_to_be_missing(shop: Shop, crds: dict[str, object]) -> None:
    shop.write(crds)
    (mistake,) = shop.mistakes()
    assert "not resolved yet" in mistake


@pytest.mark.slow
def test_nothing_but_locking_asks_a_network_and_what_is_locked_stays(shop: Shop) -> None:
    shop.locking()
    before = shop.lock.read_bytes()
    shop.publish(common=a_box("common", {"other": entry("Other")}))
    assert shop.server is not None
    shop.server.reset_counters()
    assert shop.mistakes() == []
    assert shop.server.seen == []
    assert shop.locking().exit_code == 0
    assert shop.lock.read_bytes() == before

    assert shop.locking("--update").exit_code == 0
    box = load_valid_box(shop.file.read_bytes(), file=str(shop.file))
    assert list(box.spec.crds) == ["shelf", "other"]
    assert "base.yaml" not in shop.lock.read_text()


@pytest.mark.slow
def test_locking_uses_the_login_of_its_user_for_the_hosts_of_the_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine 127.0.0.1 login ann password hunter2\n")
    monkeypatch.setenv("HOME", str(home))
    authority, tls = certificate(tmp_path)
    (tmp_path / "authority.pem").write_text(authority)
    made = Shop(tmp_path)
    made.publish()
    with git_server(made.work, tls) as server:
        made.server = server
        server.credentials[".git"] = ("ann", "hunter2")
        made.write()
        more = ["--ca-certificates", str(tmp_path / "authority.pem")]
        off = made.locking(*more, "--no-user-credentials")
        assert (off.exit_code, any(request.authorization for request in server.seen)) == (1, False)
        done = made.locking(*more)
    assert (done.exit_code, "2 entries, 2 added" in done.stderr) == (0, True), done.stderr
    assert "hunter2" not in done.stderr + made.lock.read_text()


@pytest.mark.slow
def test_content_that_is_locked_no_more_is_removed_and_no_other_file(shop: Shop) -> None:
    shop.locking()
    folder = Path(f"{shop.lock}.d")
    (folder / "sha256-notes").write_text("ours")
    shop.publish(common=a_box("common", {"other": entry("Other")}))
    done = shop.locking("--update")
    assert done.stderr.strip() == f"{shop.lock}: 1 entry, 0 added, 1 changed, 1 removed"
    assert sorted(len(file.name) for file in folder.iterdir()) == [len("sha256-notes"), len("sha256-") + 64]


@pytest.mark.slow
def test_locking_says_so_when_nothing_is_new(shop: Shop) -> None:
    shop.locking()
    assert shop.locking().stderr.strip() == f"{shop.lock}: 2 entries, 0 added, 0 changed"


def test_what_is_no_box_is_not_locked(shop: Shop) -> None:
    shop.publish(common="apiVersion: tekton.dev/v1\nkind: Task\nmetadata: {name: t}\n")
    done = shop.locking()
    assert done.exit_code == 1
    assert "is of a kind that must not be fetched; allowed: OperatorBox.konverge.dev" in str(done.exception)
    assert not shop.lock.exists()


@pytest.mark.slow
def test_a_name_that_is_there_twice_is_refused_with_both_files(shop: Shop) -> None:
    shop.write({"cart": entry("Basket")})
    shop.locking()
    (mistake,) = shop.mistakes()
    assert mistake.startswith(f"git+{shop.url}#boxes/common.yaml:")
    assert f"{shop.file} already has this name" in mistake


def test_a_mistake_in_what_is_imported_has_the_file_and_line_there(shop: Shop) -> None:
    shop.publish(base=a_box("base", {"till": entry("Till", onReconcil=CONFIG)}))
    shop.locking()
    (mistake,) = shop.mistakes()
    assert mistake.startswith(f"git+{shop.url}#boxes/deeper/base.yaml:11:")
    assert "spec.crds.till.onReconcil" in mistake
    assert "unknown field" in mistake


@pytest.mark.slow
def test_what_only_compiling_finds_has_the_file_there_too(shop: Shop) -> None:
    call = {"name": "a", "protocol": "redis", "url": "redis://a.example/", "query": "FLUSHALL"}
    shop.publish(base=a_box("base", {"till": entry("Till", external=[call])}))
    shop.locking()
    (mistake,) = shop.mistakes()
    assert mistake.startswith(f"git+{shop.url}#boxes/deeper/base.yaml:")
    assert "found 'FLUSHALL'" in mistake


@pytest.mark.slow
def test_what_is_imported_opens_no_networks(shop: Shop) -> None:
    shop.publish(base=a_box("base", {}, allowedNetworks=["10.0.0.0/8"]))
    shop.locking()
    (mistake,) = shop.mistakes()
    assert "spec.allowedNetworks: an imported box cannot allow networks" in mistake


@pytest.mark.slow
def test_content_that_was_changed_is_refused_at_the_import(shop: Shop) -> None:
    shop.locking()
    for content in Path(f"{shop.lock}.d").iterdir():
        content.write_text(BASE)
    with pytest.raises(BoxFileError, match=r"spec.imports\[0\].*the content does not match the digest in the name"):
        load_valid_box(shop.file.read_bytes(), file=str(shop.file))


@pytest.mark.slow
def test_an_import_that_is_not_locked_is_refused_with_its_place(shop: Shop) -> None:
    shop.locking()
    shop.write(imports=[{"resolver": "git", "params": {"url": "https://other.example/x", "pathInRepo": "a"}}])
    (mistake,) = shop.mistakes()
    assert "spec.imports[0]" in mistake
    assert "the lock file has no entry for this reference of resolver" in mistake


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        (["common.yaml"], "spec.imports[0]: expected a mapping with resolver and params"),
        ([{"path": "common.yaml"}], "expected a resolver, found only a path, which only an imported box can use"),
        ([{"resolver": "git", "parms": {}}], "parms: no such field"),
        ("common.yaml", "expected a list"),
    ],
)
def test_what_is_no_reference_is_refused(shop: Shop, imports: object, message: str) -> None:
    shop.lock.write_text("apiVersion: resolution.konverge.dev/v1alpha1\nkind: DefinitionLock\nentries: []\n")
    shop.write(imports=imports)
    assert any(message in mistake for mistake in shop.mistakes()), shop.mistakes()


def test_a_policy_decides_what_may_be_imported(shop: Shop, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: resolution.konverge.dev/v1alpha1\nkind: ResolutionPolicy\nmetadata: {name: ours}\n"
        'spec: {sources: ["git+https://ours.example"]}\n'
    )
    done = shop.locking("--policy", str(policy))
    assert done.exit_code != 0
    assert not shop.lock.exists()


def tamper_with(shop: Shop, field: str, value: object) -> None:
    """Change one field of the locked import, only in the lock file."""
    document = yaml.safe_load(shop.lock.read_text())
    entry = next(each for each in document["entries"] if each["source"]["entryPoint"] == "boxes/common.yaml")
    first, _, last = field.rpartition(".")
    (entry.setdefault(first, {}) if first else entry)[last] = value
    shop.lock.write_text(yaml.safe_dump(document))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("pinned.url", "https://evil.example/boxes.git", "{url}"),
        ("pinned.gitToken", "others", "none"),
        ("pinned.pathInRepo", "evil.yaml", "boxes/common.yaml"),
        ("pinned.revision", "main", "a permanent version such as a commit or a digest"),
        ("defaults.gitToken", "others", "none"),
        ("source.uri", "git+https://evil.example/boxes.git", "git+{url}"),
    ],
)
@pytest.mark.parametrize("command", ["lint", "render"])
def test_a_lock_file_that_says_otherwise_than_the_box_is_refused_with_the_field(
    shop: Shop, command: str, field: str, value: str, expected: str
) -> None:
    shop.locking()
    tamper_with(shop, field, value)
    assert shop.server is not None
    shop.server.reset_counters()
    shelf = shop.file.with_name("shelf.yaml")
    shelf.write_text("apiVersion: shops.example.com/v1\nkind: Shelf\nmetadata: {name: a}\n")
    more = ["--object", str(shelf)] if command == "render" else []
    done = CliRunner().invoke(konverge, ["box", command, str(shop.file), *more])
    message = f"{done.output}{done.exception}"
    assert done.exit_code != 0
    assert "spec.imports[0]: " in message
    assert f"{shop.lock}: the entry for git+{shop.url} does not match its reference: {field}: " in message
    assert f"expected {expected.format(url=shop.url)}, found " in message
    assert "lock it again with --update" in message
    assert shop.server.seen == []

    assert shop.locking("--update").exit_code == 0
    assert shop.mistakes() == []


@pytest.mark.slow
def test_content_that_was_changed_with_its_digest_is_found_out_by_verifying_or_by_a_digest_of_the_import(
    shop: Shop,
) -> None:
    shop.locking()
    evil = a_box("evil", {"cart": entry("Cart", onReconcile=CONFIG)}).encode()
    digest = ContentStore(Path(f"{shop.lock}.d")).add(evil)
    honest = Digest.of(COMMON.encode())
    tamper_with(shop, "digest", str(digest))
    assert shop.mistakes() == []  # the local content is consistent
    done = shop.locking("--verify")
    assert f"the content differs from {digest} in the lock file" in str(done.exception)

    params = {"url": shop.url, "pathInRepo": "boxes/common.yaml"}
    shop.write(imports=[{"resolver": "git", "params": params, "digest": str(honest)}])
    (mistake,) = shop.mistakes()
    assert "digest" in mistake
    assert str(honest) in mistake
    assert str(digest) in mistake

"""docs/resolution/writing-a-resolver.md: the package of the page, found, asked, and tested as the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from konverge.resolution.registry import ENTRY_POINTS

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/resolution/writing-a-resolver.md").read_text()
RESOLVER, OPERATOR, TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
(METADATA,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)

CONFTEST = """
import pytest
from aiohttp import web
from konverge.clock import SystemClock
from konverge.network import GuardedHttp, Names, Networks, Trust
from konverge.resolution import Services
from tests.network.stands import site

BOX = b"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: a}\\n"


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def store():
    async def serve(request):
        return web.Response(body=BOX, status=200 if request.path == "/boxes/a/box.yaml" else 404)

    async with site(serve) as url:
        yield url


@pytest.fixture
def services():
    names = Names()
    http = GuardedHttp(names, tls=Trust(), networks=Networks(["127.0.0.0/8"]))
    yield Services(http=http, secrets=None, workspaces=None, clock=SystemClock())
    names.close()
"""

ASKING = """
import asyncio, json, sys
from konverge.clock import SeededEntropy
from konverge.resolution import Reference
from konverge.resolution.engine import Requester
from konverge.resolution.local import LocalSetup, local_engine
from konverge.resolution.resolvers import standard_resolvers
from tests.network.stands import Seen, site

async def main():
    async with site(Seen(b"apiVersion: v1\\nkind: ConfigMap\\n")) as url:
        setup = LocalSetup(settings={"bucket": {"server-url": url}}, networks=("127.0.0.0/8",))
        async with local_engine(standard_resolvers(), setup) as engine:
            reference = Reference("bucket", {"bucket": "boxes", "key": "box.yaml"})
            outcome = await engine.resolve(reference, Requester("web"))
            print(json.dumps([outcome.resolver, outcome.object["kind"], engine.registry.names]))

asyncio.run(main())
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package, as an installer leaves it."""
    (tmp_path / "bucket_resolver.py").write_text(RESOLVER)
    info = tmp_path / "bucket_resolver-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bucket-resolver\nVersion: 1.0\n")
    found = re.search(r'\[project.entry-points."([^"]+)"\]\n(\w+) = "([^"]+)"', METADATA)
    assert found is not None
    group, name, target = found.groups()
    assert group == ENTRY_POINTS
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {target}\n")
    return tmp_path


def run(package: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": f"{package}:{REPOSITORY}", "PATH": "", "HOME": str(package)},
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_package_adds_a_resolver_that_the_engine_does_not_know(package: Path) -> None:
    done = run(package, "-c", ASKING)
    assert done.stdout == '["bucket", "ConfigMap", ["bucket", "bundles", "cluster", "git", "http", "hub"]]\n', (
        done.stderr
    )


def test_the_command_line_has_its_parameters_as_options(package: Path) -> None:
    done = run(package, "-m", "konverge", "resolve", "bucket", "--help")
    assert "--bucket TEXT" in done.stdout
    assert "--key TEXT" in done.stdout


def test_without_the_package_it_is_gone_and_the_others_are_not(package: Path) -> None:
    for file in package.glob("bucket_resolver-1.0.dist-info/*"):
        file.unlink()
    done = run(package, "-c", ASKING)
    assert "resolver 'bucket' does not exist here; there are: bundles, cluster, git, http, hub" in done.stderr


def test_the_operator_of_the_page_serves_it_alone(package: Path) -> None:
    done = run(package, "-c", f"from bucket_resolver import BucketResolver\n{OPERATOR}\nprint(operator.name)")
    assert done.stdout == "bucket-resolution\n", done.stderr


def test_it_passes_the_tests_that_the_page_shows(package: Path) -> None:
    (package / "conftest.py").write_text(CONFTEST)
    (package / "test_bucket.py").write_text(f"from bucket_resolver import BucketResolver\n{TESTS}")
    done = run(package, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "anyio", "test_bucket.py")
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_its_author_needs_no_client_of_kubernetes() -> None:
    imported = re.findall(r"^from (konverge[\w.]*) import", RESOLVER, re.MULTILINE)
    assert imported
    assert all(name.startswith("konverge.resolution") for name in imported)

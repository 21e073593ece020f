"""docs/resolution/writing-a-resolver.md: the package of the page is found, called, and tested as described."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from konverge_resolution.network import GuardedHttp

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/resolution/writing-a-resolver.md").read_text()
(METADATA,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
RESOLVER, PROCESS, CONFTEST, TESTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
PROJECT = {
    "pyproject.toml": METADATA,
    "src/bucket_resolver/__init__.py": RESOLVER,
    "src/bucket_resolver/process.py": PROCESS,
    "tests/conftest.py": CONFTEST,
    "tests/test_bucket.py": TESTS,
}

ASKING = """
import asyncio, json, sys
from konverge.clock import SeededEntropy
from konverge_resolution import Reference
from konverge_resolution._internal.engine import Requester
from konverge_resolution.local_engine import LocalSetup, local_engine
from konverge_resolution._internal.resolvers import load_resolvers
from tests.resolution.network.http_servers import RecordingHandler, serve_site

async def main():
    async with serve_site(RecordingHandler(b"apiVersion: v1\\nkind: ConfigMap\\n")) as url:
        setup = LocalSetup(settings={"bucket": {"server-url": url}}, networks=("127.0.0.0/8",))
        async with local_engine(load_resolvers(), setup) as engine:
            reference = Reference("bucket", {"bucket": "boxes", "key": "box.yaml"})
            outcome = await engine.resolve(reference, Requester("web"))
            print(json.dumps([outcome.resolver, outcome.object["kind"], engine.registry.names]))

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the project of the page, with its installed package in `built`."""
    folder = tmp_path_factory.mktemp("bucket-resolver")
    for name, text in PROJECT.items():
        assert f"`{name}`" in PAGE
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "built").mkdir()
    build = ["build_py", "--build-lib", "built", "egg_info", "--egg-base", "built"]
    done = run(folder, "-c", "import setuptools; setuptools.setup()", *build)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def run(project: Path, *arguments: str, is_installed: bool = True) -> subprocess.CompletedProcess[str]:
    path = project / "built" if is_installed else project / "nothing"
    return subprocess.run(
        [sys.executable, *arguments],
        env={"PYTHONPATH": f"{path}:{os.environ['PYTHONPATH']}", "PATH": "", "HOME": str(project)},
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.slow
def test_a_package_adds_a_resolver_that_the_engine_does_not_know(project: Path) -> None:
    done = run(project, "-c", ASKING)
    assert done.stdout == '["bucket", "ConfigMap", ["bucket", "bundles", "cluster", "git", "http", "hub"]]\n', (
        done.stderr
    )


@pytest.mark.slow
def test_the_command_line_has_its_parameters_as_options(project: Path) -> None:
    done = run(project, "-m", "konverge", "resolve", "bucket", "--help")
    assert "--bucket TEXT" in done.stdout
    assert "--key TEXT" in done.stdout


@pytest.mark.slow
def test_without_the_package_it_is_gone_and_the_others_are_not(project: Path) -> None:
    done = run(project, "-c", ASKING, is_installed=False)
    assert "resolver 'bucket' is not installed; available: bundles, cluster, git, http, hub" in done.stderr


@pytest.mark.slow
def test_the_operator_of_the_page_serves_it_alone(project: Path) -> None:
    done = run(project, "-c", "from bucket_resolver.process import operator\nprint(operator.name)")
    assert done.stdout == "bucket-resolution\n", done.stderr


@pytest.mark.slow
def test_it_passes_the_tests_that_the_page_shows(project: Path) -> None:
    done = run(project, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs")
    assert done.returncode == 0, done.stdout
    assert "12 passed, 3 skipped" in done.stdout
    assert "impossible for this resolver: the server is in the settings" in done.stdout


def test_the_page_names_methods_that_exist() -> None:
    methods = re.findall(r"`fetch\.services\.http\.(\w+)", PAGE)
    assert methods
    assert [method for method in methods if not hasattr(GuardedHttp, method)] == []


def test_its_author_needs_no_client_of_kubernetes() -> None:
    imported = re.findall(r"^from (konverge[\w.]*) import", RESOLVER, re.MULTILINE)
    assert imported
    assert all(name.startswith("konverge_resolution") for name in imported)

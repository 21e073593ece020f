"""The examples in the README and the docs work, and the links are valid."""

from __future__ import annotations

import asyncio
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge._internal.cli.operator_file import load_operator, parse_operator_reference
from konverge.crd import crd_manifest, decode, find_definition
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator, RunOptions
from konverge_cluster.testing import Cluster
from tests.docs.pages import REPOSITORY, find_code_blocks, load_page_operator

SOURCES = sorted(REPOSITORY.glob("packages/*/src"))
SOURCE = REPOSITORY / "packages" / "konverge" / "src" / "konverge"
BASES = [
    SOURCE / "_internal",
    *(package / "_internal" for source in SOURCES for package in source.glob("konverge*")),
    *SOURCES,
    SOURCE,
    REPOSITORY,
]
PAGES = [
    page
    for pattern in ("*.md", "docs/**/*.md", "examples/**/*.md", "packages/*/*.md")
    for page in REPOSITORY.glob(pattern)
]
ADMIN = "docs"
DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")


async def install(cluster: Cluster, operator: Operator) -> None:
    (resource,) = operator.custom_resources
    await cluster.install(crd_manifest(resource))


@pytest.mark.anyio
@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
async def test_the_operator_that_a_page_shows_makes_the_object_that_it_shows_ready(
    page: str, cluster: Cluster, tmp_path: Path
) -> None:
    operator = load_page_operator(page, tmp_path)
    example: Object = yaml.safe_load(find_code_blocks(page, "yaml")[0])
    example["metadata"]["namespace"] = cluster.namespace
    gvk, key = GroupVersionKind.of(example), ObjectKey.of(example)

    async def is_ready() -> bool:
        found = find_condition(await cluster.client.get(gvk, key), "Ready")
        return found is not None and found.status == "True"

    await install(cluster, operator)
    in_namespace = RunOptions(namespaces=(cluster.namespace,))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            operator.run(cluster.new_client(f"{ADMIN}-operator"), in_namespace, clock=cluster.clock)
        )
        await cluster.client.apply(example, field_manager=ADMIN)

        await cluster.eventually(is_ready, describe=f"{key} is ready")

        running.cancel()


# The embedded cluster binds a claim at once; the real one has no provisioner for volumes.
VOLUME_CLAIM = {"embedded": "Component is healthy.", "real": "the volume is not bound yet"}

# Imports that the components page leaves out around its blocks.
COMPONENTS_FRAME = """
from dataclasses import dataclass
from datetime import timedelta
from konverge import *
from konverge import guards, options, prerequisites
from konverge.mutation import *
from konverge.primitives import *

@dataclass
class WebAppSpec:
    host: str = ""
    suspended: bool = False
    tracing: bool = True

@custom_resource(group="docs.konverge.test", version="v1")
@dataclass
class WebApp:
    metadata: Metadata
    spec: WebAppSpec

def rules(app):
    return {{"defaultBackend": {{"service": {{"name": "pages", "port": {{"number": 80}}}}}}}}

def named(app, suffix=""):
    return {{"name": app.metadata.name + suffix, "namespace": app.metadata.namespace}}

def pages(app):
    labels = {{"app": app.metadata.name}}
    containers = [{{"name": "main", "image": "konverge.test/app:1"}}]
    template = {{"metadata": {{"labels": labels}}, "spec": {{"containers": containers}}}}
    return {{"metadata": named(app), "spec": {{"selector": {{"matchLabels": labels}}, "template": template}}}}

def service(app):
    return {{"metadata": named(app), "spec": {{"ports": [{{"port": 80}}]}}}}

def old_service(app):
    return {{"metadata": named(app, "-old")}}

def workers(app):
    return pages(app) | {{"metadata": named(app, "-workers")}}

def queue(app):
    return {{"metadata": named(app, "-queue")}}

{blocks}

def traced(app):
    app = WebApp(Metadata(name=app.metadata.name + "-traced", namespace=app.metadata.namespace), app.spec)
    return ComponentBuilder("traced", condition_type="TracedReady").with_resource(traced_pages(app)).build()

def storage(app):
    return ComponentBuilder("storage", condition_type="StorageReady").with_resource(claim(app)).build()

operator = Operator("apps")
operator.manages(WebApp, frontend, traced, certificate, storage, work)
"""


@pytest.mark.anyio
async def test_the_components_that_the_components_page_shows_do_what_it_says(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "shown.py"
    file.write_text(COMPONENTS_FRAME.format(blocks="\n\n".join(find_code_blocks("docs/components.md", "python"))))
    operator = load_operator(parse_operator_reference(str(file)))
    key = ObjectKey(cluster.namespace, "shop")
    metadata = {"name": key.name, "namespace": key.namespace}
    gvk = find_definition(operator.custom_resources[0]).gvk
    secret: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}

    async def says(condition_type: str, message: str) -> None:
        async def it_does() -> bool:
            found = find_condition(await cluster.client.get(gvk, key), condition_type)
            return found is not None and message in found.message

        await cluster.eventually(it_does, describe=f"{condition_type} says {message!r}")

    await install(cluster, operator)
    in_namespace = RunOptions(namespaces=(cluster.namespace,))
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            operator.run(cluster.new_client(f"{ADMIN}-operator"), in_namespace, clock=cluster.clock)
        )
        await cluster.client.create({"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": {}})
        await says("FrontendReady", 'Condition "BackendReady" not found')
        await says("TracedReady", "healthy")
        await says("CertificateReady", "waiting for v1/Secret")
        await says("StorageReady", VOLUME_CLAIM[cluster.name])
        await cluster.client.apply(secret, field_manager=ADMIN)
        await says("CertificateReady", 'waiting for data "certificate"')
        await cluster.client.apply({**secret, "stringData": {"tls.crt": "x"}}, field_manager=ADMIN)
        await says("CertificateReady", "healthy")
        await says("WorkReady", "healthy")
        assert (await cluster.client.get(gvk, key))["metadata"]["finalizers"] == ["waves.konverge.dev/apps"]

        running.cancel()
    example = runpy.run_path(str(file))
    owner = decode(example["WebApp"], await cluster.client.get(gvk, key))
    assert [obj["kind"] for obj in example["rendered"](owner)] == ["Ingress"]
    pages = await cluster.client.get(DEPLOYMENT, ObjectKey(key.namespace, f"{key.name}-traced"))
    (container,) = pages["spec"]["template"]["spec"]["containers"]
    assert [variable["name"] for variable in container["env"]] == ["OTEL_EXPORTER_OTLP_ENDPOINT"]


@pytest.fixture
def sites(pytester: pytest.Pytester) -> pytest.Pytester:
    """Save the README's operator with the tests from the testing page, as a reader would."""
    conftest, tests = find_code_blocks("docs/testing.md", "python")
    pytester.makepyfile(sites=find_code_blocks("README.md", "python")[0], conftest=conftest, test_sites=tests)
    return pytester


@pytest.mark.slow
def test_the_tests_that_the_testing_page_shows_pass(sites: pytest.Pytester) -> None:
    sites.runpytest_subprocess("-p", "no:cacheprovider", "-m", "not real").assert_outcomes(passed=3, deselected=1)


@pytest.mark.slow
@pytest.mark.anyio
async def test_the_test_that_the_testing_page_shows_for_both_clusters_passes(
    cluster: Cluster, sites: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(sites.path)
    example = runpy.run_path(str(sites.path / "test_sites.py"))

    await example["test_a_site_becomes_ready_and_its_deployment_comes_back"](cluster)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_to_files_lead_to_files(page: Path) -> None:
    links: list[Any] = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_command_line_page_has_every_command() -> None:
    from konverge._internal.cli.main import konverge as program

    page = (REPOSITORY / "docs" / "command-line.md").read_text()

    assert [name for name in program.list_commands(None) if f"konverge {name}" not in page] == []  # type: ignore[arg-type]


def test_the_architecture_page_leads_to_modules_that_exist() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`(\w+/[\w/]*(?:\.py)?)`", page.partition("## Where to change what")[2])

    assert paths
    assert [path for path in paths if not any((base / path).exists() for base in BASES)] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_the_map_of_a_package_leads_to_files_that_exist(source: Path) -> None:
    rows = [line for line in (source.parent / "ARCHITECTURE.md").read_text().splitlines() if line.startswith("| `")]
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row.split("|")[1])]
    (package,) = source.glob("konverge*")

    assert len(paths) > 20
    assert [
        path
        for path in paths
        if not any(package.glob(path.rstrip("/"))) and not any((package / "_internal").glob(path.rstrip("/")))
    ] == []


def test_the_architecture_page_has_every_package() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in (SOURCE / "_internal").glob("*/__init__.py")]
    packages += [path.name for source in SOURCES for path in source.iterdir() if path.name != "konverge"]

    assert [name for name in packages if f"| `{name}` |" not in page] == []

"""What the README and the docs show works, and their links lead somewhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from konverge.cli.operator_file import load_operator, parse_reference
from konverge.crd import crd_manifest, definition_of
from konverge.kube import GroupVersionKind, Object, ObjectKey, find_condition
from konverge.operator import Operator
from konverge.testing import Cluster

REPOSITORY = Path(__file__).parents[2]
SOURCE = REPOSITORY / "src" / "konverge"
PAGES = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), *REPOSITORY.glob("examples/**/*.md")]
ADMIN = "docs"


def blocks(page: str, language: str) -> list[str]:
    """The code blocks of that language on a page, in order."""
    text = (REPOSITORY / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def operator_of(page: str, folder: Path) -> Operator:
    """The operator that a page shows, saved as its reader would."""
    file = folder / "shown.py"
    file.write_text("\n\n".join(blocks(page, "python")))
    return load_operator(parse_reference(str(file)))


async def install(cluster: Cluster, operator: Operator) -> None:
    (resource,) = operator.custom_resources
    await cluster.client.apply(crd_manifest(resource), field_manager=ADMIN)
    await cluster.eventually(lambda: cluster.client.mapping(definition_of(resource).gvk))


@pytest.mark.anyio
@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
async def test_the_operator_that_a_page_shows_makes_the_object_that_it_shows_ready(
    page: str, cluster: Cluster, tmp_path: Path
) -> None:
    operator = operator_of(page, tmp_path)
    shown: Object = yaml.safe_load(blocks(page, "yaml")[0])
    shown["metadata"]["namespace"] = cluster.namespace
    gvk, key = GroupVersionKind.of(shown), ObjectKey.of(shown)

    async def is_ready() -> bool:
        found = find_condition(await cluster.client.get(gvk, key), "Ready")
        return found is not None and found.status == "True"

    await install(cluster, operator)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            operator.run(cluster.new_client(f"{ADMIN}-operator"), clock=cluster.clock, namespace=cluster.namespace)
        )
        await cluster.client.apply(shown, field_manager=ADMIN)

        await cluster.eventually(is_ready, describe=f"{key} is ready")

        running.cancel()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_to_files_lead_to_files(page: Path) -> None:
    links: list[Any] = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())

    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_command_line_page_has_every_command() -> None:
    from konverge.cli.program import konverge as program

    page = (REPOSITORY / "docs" / "command-line.md").read_text()

    assert [name for name in program.list_commands(None) if f"konverge {name}" not in page] == []  # type: ignore[arg-type]


def test_the_architecture_page_leads_to_modules_that_exist() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    paths = re.findall(r"`(\w+/[\w/]*(?:\.py)?)`", page.partition("## Where to change what")[2])

    assert paths
    assert [path for path in paths if not any((base / path).exists() for base in (SOURCE, REPOSITORY))] == []


def test_the_architecture_page_has_every_package() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    packages = [path.parent.name for path in SOURCE.glob("*/__init__.py")]

    assert [name for name in packages if f"| `{name}` |" not in page] == []

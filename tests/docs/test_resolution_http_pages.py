"""The tables of docs/resolution/cluster.md, http.md and hub.md match the code, and the examples are valid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from konverge.feature import VersionRange
from konverge_resolution import Reason, Resolver
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.cluster import ClusterResolver
from konverge_resolution._internal.resolvers.disk import DiskResolver
from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution._internal.resolvers.hub import HubResolver
from tests.docs.pages import find_code_blocks, read_page
from tests.docs.resolver_tables import build_parameter_table, build_setting_table

PAGES: dict[str, Resolver] = {
    "docs/resolution/cluster.md": ClusterResolver(),
    "docs/resolution/http.md": HttpResolver(),
    "docs/resolution/hub.md": HubResolver(),
}


@pytest.mark.parametrize(("page", "resolver"), PAGES.items(), ids=["cluster", "http", "hub"])
def test_a_page_has_every_parameter_and_setting_as_the_code_has_it(page: str, resolver: Resolver) -> None:
    assert build_parameter_table(resolver) in read_page(page)
    assert build_setting_table(resolver) in read_page(page)


@pytest.mark.parametrize(("page", "count"), [("docs/resolution/http.md", 4), ("docs/resolution/hub.md", 2)])
def test_what_a_page_shows_is_valid(page: str, count: int) -> None:
    examples = [yaml.safe_load(block) for block in find_code_blocks(page, "yaml")]
    resolver = PAGES[page]
    settings, mistakes = parse_settings(
        {name: value for each in examples if "params" not in each for name, value in each.items()}, resolver.settings
    )
    assert (len(examples), mistakes) == (count, ())
    for each in examples:
        assert resolver.validate(each.get("params", examples[0]["params"]), settings.select())


@pytest.mark.parametrize(("page", "count"), list(zip(PAGES, [6, 9, 9], strict=True)))
def test_the_reasons_of_a_page_are_reasons(page: str, count: int) -> None:
    table = read_page(page).partition("## What can go wrong")[2].partition("\n\n")[2].partition("\n\n")[0]
    named = [word.strip("`,") for line in table.strip().splitlines()[2:] for word in line.split("|")[1].split()]
    assert set(named) <= {reason.value for reason in Reason}
    assert len(named) == count


def test_the_page_of_the_disk_has_its_parameters_and_the_reasons_of_the_code() -> None:
    text = read_page("docs/resolution/disk.md")
    resolver = DiskResolver(Path())
    assert build_parameter_table(resolver) in text
    assert set(re.findall(r"^\| `(\w+)` \| [A-Z]", text.partition("## What can go wrong")[2], re.MULTILINE)) < set(
        Reason
    )
    (example,) = find_code_blocks("docs/resolution/disk.md", "yaml")
    params = resolver.validate(yaml.safe_load(example)["params"], {})
    assert f"`{resolver.source_uri(params, {})}`" in text


def test_the_ranges_of_the_page_are_ranges() -> None:
    table = read_page("docs/resolution/hub.md").partition("| range | means |")[2].partition("\n\n")[0]
    cells = [line.replace("\\|", "OR").split("|")[1] for line in table.splitlines()[2:]]
    ranges = [part.replace("OR", "|") for cell in cells for part in cell.split("`")[1::2]]
    assert len(ranges) == 8
    assert all(VersionRange(text).enabled("0.7") is not None for text in ranges)

"""The tables of docs/resolution/git.md match the code, and its examples are valid."""

from __future__ import annotations

import yaml

from konverge_resolution import Reason
from konverge_resolution._internal.resolver_settings import parse_settings
from konverge_resolution._internal.resolvers.git import GitResolver
from tests.docs.pages import find_code_blocks, read_page
from tests.docs.resolver_tables import build_parameter_table, build_setting_table

PAGE = "docs/resolution/git.md"
RESOLVER = GitResolver()


def test_the_page_has_every_parameter_and_setting_as_the_code_has_it() -> None:
    assert build_parameter_table(RESOLVER) in read_page(PAGE)
    assert build_setting_table(RESOLVER) in read_page(PAGE)


def test_the_parameters_that_the_page_shows_are_valid() -> None:
    settings, _ = parse_settings({}, RESOLVER.settings)
    examples = [found for block in find_code_blocks(PAGE, "yaml") if "params" in (found := yaml.safe_load(block))]
    assert len(examples) == 3
    assert all(RESOLVER.validate(each["params"], settings.select()) for each in examples)


def test_the_reasons_of_the_page_are_reasons() -> None:
    table = read_page(PAGE).partition("## What can go wrong")[2].partition("\n\nA server")[0]
    named = [word.strip("`,") for line in table.splitlines()[4:] for word in line.split("|")[1].split()]
    assert set(named) <= {reason.value for reason in Reason}
    assert len(named) == 8

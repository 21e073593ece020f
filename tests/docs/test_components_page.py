"""The lists on the page about components are complete and in the order of the code."""

from __future__ import annotations

import re

import konverge.options
from konverge.component import ComponentBuilder, ConditionReason
from konverge.options import Option
from tests.docs.pages import read_page

PAGE = "docs/components.md"


def test_the_reasons_are_listed_by_priority_with_their_status() -> None:
    section = read_page(PAGE).partition("| reason | status | it means |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines()]

    listed = [(reason, row[1]) for row in rows for reason in re.findall(r"`(\w+)`", row[0])]

    assert listed == [
        (status, status.condition_status) for status in sorted(ConditionReason, key=lambda status: -status.priority)
    ]


def test_every_option_is_explained() -> None:
    options = [
        name
        for name in konverge.options.__all__
        if getattr(getattr(konverge.options, name), "__annotations__", {}).get("return") == Option.__name__
    ]

    assert len(options) > 10
    assert [name for name in options if f"`{name}(" not in read_page(PAGE)] == []


def test_every_method_of_the_builder_is_named() -> None:
    methods = [name for name in vars(ComponentBuilder) if not name.startswith("_")]

    assert [name for name in methods if name not in read_page(PAGE)] == []

"""The example in docs/box-file.md loads, and its table has the steps in order."""

from __future__ import annotations

import re

import click
import pytest

from konverge_box._internal.cli.box import box
from konverge_box._internal.file import load_box
from konverge_box._internal.file.expression_scopes import STEPS
from tests.box.file.sample_boxes import find_errors
from tests.docs.pages import find_code_blocks, read_page

PAGE = "docs/box-file.md"


def test_the_box_of_the_page_loads() -> None:
    parsed_box = load_box(find_code_blocks(PAGE, "yaml")[0])

    (group,) = parsed_box.spec.crds["website"].on_reconcile
    assert [each.kind for each in group.resources] == ["deployments", "services", "ingresses"]


def test_the_groups_of_the_page_are_some() -> None:
    groups = "".join(f"  {line}\n" for line in find_code_blocks(PAGE, "yaml")[1].splitlines())

    assert find_errors(f"onReconcile:\n{groups}") == []


def test_the_conditions_of_the_page_are_some() -> None:
    conditions = "".join(f"    {line}\n" for line in find_code_blocks(PAGE, "yaml")[2].splitlines())

    assert find_errors(f"onReconcile:\n{conditions}") == []


def test_the_steps_of_the_page_are_those_of_a_box_with_what_each_reads() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| ?(.*?) ?\|$", read_page(PAGE).partition("## Groups")[0], re.MULTILINE)

    assert {step: set(re.findall(r"`(\w+)`", reads)) for step, reads in rows} == STEPS
    assert [step for step, _ in rows] == list(STEPS)


@pytest.mark.parametrize("command", re.findall(r"`konverge box (\w+)", read_page(PAGE)))
def test_the_commands_of_the_page_exist(command: str) -> None:
    assert box.get_command(click.Context(box), command) is not None

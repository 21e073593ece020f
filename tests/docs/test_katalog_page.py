"""The examples in docs/box-from-a-katalog.md match the import; docs/box-in-production.md lists the printed options."""

from __future__ import annotations

import re

from konverge_box._internal.cli.box_import import box_import
from konverge_box._internal.cli.box_package import box_package
from konverge_box._internal.katalog import import_katalog
from tests.box.test_packaging import package_box
from tests.docs.pages import find_code_blocks, read_page

PAGE = "docs/box-from-a-katalog.md"
PRODUCTION = "docs/box-in-production.md"


def test_the_katalog_of_the_page_becomes_the_box_of_the_page() -> None:
    katalog, box = find_code_blocks(PAGE, "yaml")

    found = import_katalog(katalog, file="katalog.yaml")

    assert found.text == box
    assert "".join(f"{each}\n" for each in found.listed) == find_code_blocks(PAGE, "text")[0]


def test_each_contradiction_has_a_decision() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| (.+?) \| (.+?) \|$", read_page(PAGE), re.MULTILINE)

    assert [int(number) for number, *_ in rows] == list(range(1, 18))


def test_the_options_of_the_pages_are_there() -> None:
    known = {word for command in (box_import, box_package) for each in command.params
             for word in (*each.opts, *each.secondary_opts)}  # fmt: skip
    options = set(re.findall(r"`(--[a-z-]+)", read_page(PAGE) + read_page(PRODUCTION))) - {"--metrics"}

    assert options <= known


def test_the_page_lists_the_kinds_that_are_printed() -> None:
    table = read_page(PRODUCTION).partition("## The image")[0]
    kinds = {each["kind"] for each in package_box()}

    assert {kind for kind in kinds if kind not in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")} <= {
        kind.removesuffix("s") if kind.endswith("Definitions") else kind for kind in re.findall(r"[A-Z]\w+", table)
    }

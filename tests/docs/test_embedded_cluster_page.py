"""docs/embedded-cluster.md contains the list of the command."""

from __future__ import annotations

from konverge_cluster._internal.embedded.limitations.limitation_list import format_limitations, list_limitations
from tests.docs.pages import read_page


def test_the_page_contains_the_list_of_the_code() -> None:
    _, _, shown = read_page("docs/embedded-cluster.md").partition("## The list\n\n")

    assert shown == format_limitations(list_limitations(), markdown=True) + "\n"

"""Web pages of git servers: each names the file that it shows."""

from __future__ import annotations

import pytest
from yarl import URL

from konverge_resolution._internal.resolvers.http import HttpResolver
from konverge_resolution._internal.resolvers.web_pages import suggest_raw_url
from tests.resolution.http_resolution import expect_resolution_error
from tests.resolution.network.http_servers import RecordingHandler, serve_site


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("https://github.com/team/boxes/blob/main/a/b%20c.yaml?plain=1",
         "https://raw.githubusercontent.com/team/boxes/main/a/b%20c.yaml"),
        ("https://git.example/team/boxes/blob/v1/b.yaml", "https://git.example/team/boxes/raw/v1/b.yaml"),
        ("https://gitlab.com/team/sub/boxes/-/blob/main/b.yaml", "https://gitlab.com/team/sub/boxes/-/raw/main/b.yaml"),
        ("https://codeberg.org/team/boxes/src/branch/main/b.yaml",
         "https://codeberg.org/team/boxes/raw/branch/main/b.yaml"),
        ("https://codeberg.org/team/boxes/src/commit/abc/b.yaml",
         "https://codeberg.org/team/boxes/raw/commit/abc/b.yaml"),
        ("https://github.com/team/boxes", ""),
        ("https://github.com/team/boxes/tree/main/a", ""),
        ("https://example.com/", ""),
        ("https://example.com/a/blob", ""),
    ],
)  # fmt: skip
def test_a_page_of_a_git_server_has_the_address_of_its_file(page: str, file: str) -> None:
    assert suggest_raw_url(URL(page)) == file


@pytest.mark.anyio
async def test_the_message_about_a_page_suggests_its_file() -> None:
    async with serve_site(RecordingHandler(b"<html>", headers={"Content-Type": "text/html"})) as url:
        error = await expect_resolution_error(HttpResolver(), {"url": f"{url}/team/boxes/blob/main/b.yaml"})
    assert error.message.endswith(f"expected YAML or JSON; did you mean {url}/team/boxes/raw/main/b.yaml?")

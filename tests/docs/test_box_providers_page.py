"""The examples in docs/box-providers.md work: the box compiles, and the template follows the rules of providers."""

from __future__ import annotations

import re

import pytest

from konverge_box._internal.file import load_box
from konverge_box._internal.providers.aws import Aws
from konverge_box._internal.providers.dispatcher import _PENDING_AGAIN
from konverge_box._internal.providers.items import MAX_ITEMS
from konverge_box._internal.providers.postgres import Postgres
from konverge_box._internal.providers.provider_pool import ProviderLimits
from konverge_box.providers import ProviderPool, ProvidersStep
from konverge_box.testing import PROVIDER_CASES
from tests.docs.pages import find_code_blocks, read_page, save_page_code

PAGE = "docs/box-providers.md"

WIKI_SERVER = """
from aiohttp import web


@pytest.fixture
def anyio_backend():
    return "asyncio"


class WikiServer:
    def __init__(self):
        self.pages = {}

    async def about(self):
        return dict(self.pages["about"]) if "about" in self.pages else None

    async def write_about(self):
        self.pages["about"] = {"text": "by hand", "category": "none", "mark": ""}

    async def answer(self, request):
        assert request.headers["Authorization"] == "Bearer a-token"
        name = request.match_info["name"]
        if request.method == "PUT":
            self.pages[name] = await request.json()
        elif name not in self.pages:
            raise web.HTTPNotFound
        elif request.method == "DELETE":
            del self.pages[name]
            return web.Response()
        return web.json_response(self.pages[name])


@pytest.fixture
async def wiki_server():
    server, app = WikiServer(), web.Application()
    app.router.add_route("*", "/pages/{name}", server.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield server
    await runner.cleanup()
"""


def test_the_box_of_the_page_compiles_with_the_providers_of_konverge() -> None:
    box = load_box(find_code_blocks(PAGE, "yaml")[0], file=PAGE)

    ProvidersStep(box.spec.crds["shop"].providers, box.spec.providers, "spec.crds.shop.providers", ProviderPool())


def test_the_template_keeps_the_rules_of_providers_in_the_test_that_the_page_shows(pytester: pytest.Pytester) -> None:
    module_file = save_page_code(PAGE, pytester.path, "test_wiki.py")
    module_file.write_text(module_file.read_text() + WIKI_SERVER)

    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=len(PROVIDER_CASES))


def test_the_fields_and_kinds_of_the_page_are_those_of_the_providers() -> None:
    rows = re.findall(r"^\| `([A-Z]\w+)` \| (`.*?) \| ", read_page(PAGE), re.MULTILINE)
    documented = {kind: re.findall(r"`(\w+)`", fields) for kind, fields in rows}

    kinds = {**Postgres.kinds, **Aws.kinds}
    assert {kind: sorted(fields) for kind, fields in documented.items()} == {
        name: sorted(kind.spec.__struct_encode_fields__) for name, kind in kinds.items()
    }


def test_the_limits_of_the_page_are_those_of_the_code() -> None:
    page, limits = " ".join(read_page(PAGE).split()), ProviderLimits()

    assert f"A call takes at most {limits.item_seconds:g} s" in page
    assert f"of a provider {limits.provider_seconds:g} s" in page
    assert f"at most {MAX_ITEMS} items" in page
    assert f"after {_PENDING_AGAIN.total_seconds():g} s" in page
    assert limits.workers == 4
    assert "Four calls of a provider" in page

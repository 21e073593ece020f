"""What the tests of anybody's resolver give it to use."""

from __future__ import annotations

import pytest

from konverge_resolution import Reason, ResolutionError
from konverge_resolution.network import RefusedAddressError
from konverge_resolution.resolver_conformance import loopback_services
from tests.resolution.network.http_servers import RecordingHandler, serve_site

pytestmark = pytest.mark.anyio


async def test_this_machine_is_reached_and_no_other_private_network() -> None:
    async with serve_site(RecordingHandler(b"here")) as url:
        with loopback_services() as services:
            assert (await services.http.get(url, max_bytes=10)).body == b"here"
            with pytest.raises(RefusedAddressError, match="private"):
                await services.http.get("http://10.0.0.1/", max_bytes=10)


async def test_secrets_are_those_that_were_given() -> None:
    with loopback_services(secrets={"mine": {"token": b"a"}}) as services:
        assert await services.secrets.read_value("mine", "token") == "a"
        assert await services.secrets.read_all("mine") == {"token": b"a"}
        for name, key in (("mine", "other"), ("other", "token")):
            with pytest.raises(ResolutionError) as caught:
                await services.secrets.read_value(name, key)
            assert caught.value.reason is Reason.AUTHENTICATION_REQUIRED


async def test_no_folder_is_left_of_them() -> None:
    with loopback_services() as services:
        assert services.addresses is not None
        await services.addresses.resolve_permitted("localhost", 1)
        async with services.workspaces.folder(max_bytes=10) as folder:
            made = folder
    assert not made.parent.exists()

"""For any error of credentials, a transport raises an error of `konverge.errors`."""

from __future__ import annotations

import pytest
from aiohttp import web

from konverge._internal.client.credentials import Credentials, Identity
from konverge.client import ClusterConfig, HttpTransport
from konverge.errors import ConfigurationError, ConnectionFailedError, NotConnectedError
from tests.client.servers import Servers

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: there are sockets."""
    return "asyncio"


class BrokenCredentials:
    """Credentials that raise an error, or return an invalid header."""

    description = "the token"

    def __init__(self, headers: dict[str, str] | None = None) -> None:
        self._headers = headers

    async def get_identity(self) -> Identity:
        if self._headers is None:
            raise OverflowError("s3cret is out of range")
        return Identity(self._headers)

    def invalidate(self, identity: Identity) -> bool:
        return False

    def clone(self) -> Credentials:
        return self


@pytest.mark.parametrize(
    ("headers", "kind", "words"),
    [
        (None, NotConnectedError, r"the token: cannot get the credentials \(the test\): OverflowError"),
        ({"authorization": "s3cret\r\nX-Evil: 1"}, ConnectionFailedError, "cannot be sent .*ValueError"),
    ],
    ids=["raises", "header"],
)
async def test_a_mistake_of_credentials_is_a_failure_like_others(
    servers: Servers, headers: dict[str, str] | None, kind: type[Exception], words: str
) -> None:
    asked: list[str] = []

    async def note(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response()

    transport = HttpTransport(
        ClusterConfig(await servers.start(note), "the test", credentials=BrokenCredentials(headers))
    )
    with pytest.raises(kind, match=words) as raised:
        await transport.request("GET", "/", timeout_seconds=9)
    await transport.close()

    assert "s3cret" not in str(raised.value)
    assert asked == []


@pytest.mark.parametrize(
    ("server", "proxy"), [("http://[", ""), ("http://a", "http://u:s3cret:1"), ("http://u:s3cret@a", "")]
)
def test_an_address_that_cannot_be_used_is_told_at_once(server: str, proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot use ") as raised:
        HttpTransport(ClusterConfig(server, "the test", proxy_url=proxy))
    assert "s3cret" not in str(raised.value)

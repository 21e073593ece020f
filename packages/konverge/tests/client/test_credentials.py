"""Token files are read every minute, and after the server rejects the token."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from konverge._internal.client.credentials import TokenFile
from konverge.clock import SimulatedClock
from konverge.errors import ConfigurationError

pytestmark = pytest.mark.anyio


class StandingClock(SimulatedClock):
    """A clock that a test sets; simulated time would jump while a thread reads."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def anyio_backend() -> str:
    """Use real time: files are read in a thread."""
    return "asyncio"


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def rewrite(file: Path, content: str) -> None:
    file.write_text(content)


def remove(file: Path) -> None:
    file.unlink()


async def get_authorization(credentials: TokenFile) -> str:
    return (await credentials.get_identity()).headers["authorization"]


async def test_a_token_is_read_again_after_a_minute(file: Path, clock: StandingClock) -> None:
    credentials = TokenFile(file, clock)
    found = [await get_authorization(credentials)]
    rewrite(file, "second")
    for clock.seconds in (59.0, 60.0):
        found.append(await get_authorization(credentials))

    assert found == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_refused_token_is_read_again_at_once(file: Path, clock: StandingClock) -> None:
    credentials = TokenFile(file, clock)
    await get_authorization(credentials)
    rewrite(file, "second")

    assert credentials.invalidate(await credentials.get_identity())
    assert await get_authorization(credentials) == "Bearer second"


async def test_the_last_token_serves_while_the_file_cannot_be_read(file: Path, clock: StandingClock) -> None:
    credentials = TokenFile(file, clock)
    await get_authorization(credentials)
    remove(file)
    clock.seconds = 100.0

    assert await get_authorization(credentials) == "Bearer first"


async def test_the_last_token_serves_while_the_file_holds_none(
    file: Path, clock: StandingClock, caplog: pytest.LogCaptureFixture
) -> None:
    credentials = TokenFile(file, clock)
    await get_authorization(credentials)
    rewrite(file, "s3cret\r\nX-Evil: 1")
    clock.seconds = 100.0
    found = [await get_authorization(credentials)]
    rewrite(file, "third")
    clock.seconds = 200.0
    found.append(await get_authorization(credentials))

    assert found == ["Bearer first", "Bearer third"]
    assert "found others; using the previous token" in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda path: path.unlink(), "cannot read the file: No such file"),
        (lambda path: path.write_bytes(b""), "found an empty file"),
        (lambda path: path.write_bytes(b"\xff"), "expected ASCII text"),
        (lambda path: path.write_bytes(b"a\r\nX-Evil: 1"), "expected a token of printable ASCII characters"),
    ],
    ids=["missing", "empty", "binary", "two lines"],
)
async def test_a_file_without_a_token_is_told(
    file: Path, clock: StandingClock, spoil: Callable[[Path], object], words: str
) -> None:
    spoil(file)

    with pytest.raises(ConfigurationError, match=words):
        await TokenFile(file, clock).get_identity()

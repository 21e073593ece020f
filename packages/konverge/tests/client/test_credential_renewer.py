"""Credentials that expire: early renewal, once for all callers, and not repeatedly after a failure."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from konverge._internal.client.credential_renewer import CredentialRenewer, IssuedIdentity, compute_renewal_time
from konverge._internal.client.credentials import Identity
from konverge.clock import SimulatedClock
from konverge.errors import ConfigurationError, KonvergeError, NotConnectedError

pytestmark = pytest.mark.anyio

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Issuer:
    """An issuer of identities with a validity period, which fails on request."""

    def __init__(self, life_seconds: float | None = None, takes_seconds: float = 0.0) -> None:
        self.clock = SimulatedClock()
        self.issued: list[Identity] = []
        self.asked = 0
        self.failure: KonvergeError | None = None
        self._life_seconds = life_seconds
        self._takes_seconds = takes_seconds
        self.renewal = CredentialRenewer(self.issue, self.clock, "the credentials")

    async def issue(self) -> IssuedIdentity:
        self.asked += 1
        await self.clock.sleep(self._takes_seconds)
        if self.failure is not None:
            raise self.failure
        self.issued.append(Identity.from_token(f"token {len(self.issued) + 1}"))
        life = self._life_seconds
        expires = None if life is None else self.clock.now() + timedelta(seconds=life)
        return IssuedIdentity(self.issued[-1], expires)


@pytest.mark.parametrize(
    ("life_seconds", "renewed_after"),
    [(3600, 3540), (300, 240), (100, 80), (10, 8), (5, 5), (0, 5), (-60, 5)],
)
def test_it_is_renewed_shortly_before_its_end(life_seconds: int, renewed_after: int) -> None:
    assert compute_renewal_time(NOON, NOON + timedelta(seconds=life_seconds)) == NOON + timedelta(seconds=renewed_after)


async def test_what_does_not_expire_is_issued_once() -> None:
    issuer = Issuer()
    found = []
    for _ in range(3):
        found.append(await issuer.renewal.get_identity())
        await issuer.clock.sleep(1e6)

    assert found == [issuer.issued[0]] * 3


async def test_what_expires_is_renewed_before_it_does() -> None:
    issuer = Issuer(life_seconds=600)
    found = []
    for seconds in (0, 539, 1):
        await issuer.clock.sleep(seconds)
        found.append(await issuer.renewal.get_identity())

    assert found == [issuer.issued[0], issuer.issued[0], issuer.issued[1]]


async def test_all_who_wait_share_one_renewal() -> None:
    issuer = Issuer(takes_seconds=3)
    found = await asyncio.gather(*(issuer.renewal.get_identity() for _ in range(50)))

    assert issuer.asked == 1
    assert set(map(id, found)) == {id(issuer.issued[0])}


async def test_another_goes_on_when_the_one_who_renews_is_cancelled() -> None:
    issuer = Issuer(takes_seconds=3)
    first, second = (asyncio.create_task(issuer.renewal.get_identity()) for _ in range(2))
    await issuer.clock.sleep(1)
    first.cancel()

    assert await second is issuer.issued[0]
    assert issuer.asked == 2


@pytest.mark.parametrize("kind", [ConfigurationError, NotConnectedError])
async def test_a_failure_is_shared_for_a_while(kind: type[KonvergeError]) -> None:
    issuer = Issuer()
    issuer.failure = kind("no")
    for _ in range(20):
        with pytest.raises(kind, match="no"):
            await issuer.renewal.get_identity()
    asked = issuer.asked
    issuer.failure = None
    await issuer.clock.sleep(5)

    assert asked == 1
    assert await issuer.renewal.get_identity() is issuer.issued[0]


async def test_what_is_still_valid_serves_on_when_it_cannot_be_renewed_early() -> None:
    issuer = Issuer(life_seconds=600)
    await issuer.renewal.get_identity()
    issuer.failure = NotConnectedError("no")
    await issuer.clock.sleep(550)
    late = [await issuer.renewal.get_identity() for _ in range(2)]
    asked = issuer.asked
    await issuer.clock.sleep(60)

    assert late == [issuer.issued[0]] * 2
    assert asked == 2
    with pytest.raises(NotConnectedError):
        await issuer.renewal.get_identity()


async def test_what_was_refused_is_renewed_at_once() -> None:
    issuer = Issuer()
    refused = await issuer.renewal.get_identity()

    assert issuer.renewal.invalidate(refused)
    assert await issuer.renewal.get_identity() is issuer.issued[1]


async def test_many_refusals_of_the_same_lead_to_one_renewal() -> None:
    issuer = Issuer()
    refused = await issuer.renewal.get_identity()
    for _ in range(10):
        assert issuer.renewal.invalidate(refused)
        await issuer.renewal.get_identity()

    assert issuer.asked == 2


async def test_a_successor_that_is_refused_as_well_is_not_renewed_again_at_once() -> None:
    issuer = Issuer()
    answers = []
    for pause in (0, 1, 10):
        await issuer.clock.sleep(pause)
        answers.append(issuer.renewal.invalidate(await issuer.renewal.get_identity()))

    assert answers == [True, False, True]

"""Retried steps of a start, in simulated time."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from konverge._internal.runtime.start_steps import StartSteps
from konverge.clock import SeededEntropy, SimulatedClock
from konverge.errors import (
    ApiError,
    ConfigurationError,
    ForbiddenError,
    KindNotServedError,
    KonvergeError,
    NotConnectedError,
    ServerError,
    StartError,
    UnauthorizedError,
    UntrustedServerError,
)

pytestmark = pytest.mark.anyio

CLOCK = SimulatedClock()


def with_request(error: ApiError, request: str) -> ApiError:
    error.request = request
    return error


class Step:
    """Fails a given number of times, and then succeeds."""

    def __init__(self, error: KonvergeError, times: int) -> None:
        self.error = error
        self.times = times
        self.attempts: list[float] = []

    async def __call__(self) -> str:
        self.attempts.append(CLOCK.monotonic())
        if len(self.attempts) <= self.times:
            raise self.error
        return "done"


def steps(seconds: float = 300.0) -> StartSteps:
    return StartSteps(clock=CLOCK, entropy=SeededEntropy(1), timeout=timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ServerError("Internal Server Error"), id="500"),
        pytest.param(UnauthorizedError("Unauthorized"), id="401"),
        pytest.param(ForbiddenError("shops is forbidden"), id="403"),
        pytest.param(KindNotServedError("the server does not serve it"), id="404"),
        pytest.param(NotConnectedError("connection refused"), id="connection refused"),
    ],
)
async def test_a_step_is_tried_again_with_growing_pauses_until_it_succeeds(error: KonvergeError) -> None:
    step = Step(error, times=8)

    assert await steps().run_step("listing", step) == "done"
    pauses = [after - before for before, after in zip(step.attempts, step.attempts[1:], strict=False)]
    assert pauses[0] <= 0.75
    assert 15.0 <= pauses[-1] <= 22.5


async def test_a_step_is_given_up_at_its_limit_with_the_request_and_the_last_failure() -> None:
    step = Step(with_request(ServerError("Internal Server Error", code=500), "GET https://server/apis"), times=1000)

    with pytest.raises(StartError) as given_up:
        await steps(60.0).run_step("discovery", step)

    assert CLOCK.monotonic() - step.attempts[0] == pytest.approx(60.0)
    assert given_up.value.__cause__ is step.error
    assert str(given_up.value) == (
        "discovery failed for 60 s: GET https://server/apis was answered with HTTP 500: Internal Server Error"
    )


async def test_without_a_limit_the_first_failure_is_the_last() -> None:
    step = Step(KindNotServedError("the server does not serve it"), times=1)

    with pytest.raises(StartError, match="discovery failed at the first attempt: the server does not"):
        await steps(0.0).run_step("discovery", step)


@pytest.mark.parametrize("error", [UntrustedServerError("expired"), ConfigurationError("no such port")])
async def test_what_trying_again_cannot_mend_ends_the_start_at_once(error: KonvergeError) -> None:
    step = Step(error, times=1000)

    with pytest.raises(type(error)):
        await steps().run_step("discovery", step)

    assert len(step.attempts) == 1


async def test_each_failure_is_logged_and_a_missing_permission_as_an_error(caplog: pytest.LogCaptureFixture) -> None:
    words = 'shops is forbidden: User "guest" cannot list'
    step = Step(with_request(ForbiddenError(words), "GET https://server/apis/demo.dev/v1/shops"), times=2)
    starting = steps()

    await starting.run_step("listing demo.dev/v1/Shop", step)

    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
    refused = "GET https://server/apis/demo.dev/v1/shops was answered with HTTP 403"
    assert (
        f"listing demo.dev/v1/Shop failed: {refused}: {words}"
        ". If this persists, a permission is missing: konverge rbac prints the required roles; retry in"
    ) in caplog.text
    assert starting.waiting_for == ""

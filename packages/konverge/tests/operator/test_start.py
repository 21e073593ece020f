"""Operators that start while the API server is not ready, on either cluster."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import aiohttp
import pytest

from konverge.client import Client
from konverge.errors import NotConnectedError, StartError, UnauthorizedError
from konverge.observability import ObservabilityOptions
from konverge.operator import Operator, RunOptions
from tests.operator.faulty_transport import ErrorResponse, FaultyTransport, build_error_response
from tests.operator.sample_operator import AGENT, SHOP, OperatorHarness, Shop, find_free_address, settings

pytestmark = pytest.mark.anyio

FORBIDDEN = 'shops.operator.konverge.test is forbidden: User "operator" cannot list resource "shops"'
NO_RESOURCE = "the server could not find the requested resource"


class Fault:
    """Answers the first requests that have this in their path."""

    def __init__(self, words: str, answer: ErrorResponse | Exception, times: int = 3) -> None:
        self.words = words
        self.answer = answer
        self.times = times

    def __call__(self, method: str, path: str) -> ErrorResponse | Exception | None:
        if self.times == 0 or not path.endswith(self.words):
            return None
        self.times -= 1
        return self.answer


def an_operator() -> Operator:
    operator = Operator("shops")
    operator.manages(Shop, settings)
    return operator


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        pytest.param(("/api", build_error_response(500)), "discovery of", id="500 on /api"),
        pytest.param(("/apis", build_error_response(500)), "discovery of", id="500 on /apis"),
        pytest.param(
            ("/apis", build_error_response(503, "starting", "ServiceUnavailable")), "discovery of", id="503 on /apis"
        ),
        pytest.param(("", UnauthorizedError("Unauthorized")), "discovery of", id="401 on everything"),
        pytest.param(("", NotConnectedError("connection refused")), "discovery of", id="connection refused"),
        pytest.param(
            ("/shops", build_error_response(403, FORBIDDEN, "Forbidden")), "listing", id="403 on the first list"
        ),
        pytest.param(
            ("/shops", build_error_response(404, NO_RESOURCE, "NotFound")), "listing", id="404 on the first list"
        ),
    ],
)
async def test_an_operator_starts_as_soon_as_the_server_lets_it(
    town: OperatorHarness, fault: tuple[str, ErrorResponse | Exception], step: str, caplog: pytest.LogCaptureFixture
) -> None:
    # A client tries some requests four times by itself.
    transport = FaultyTransport(town.cluster.new_transport(), Fault(*fault, times=5))
    async with town.running_operator(an_operator(), transport=transport):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

    assert len(transport.refused) == 5
    messages = [record.getMessage() for record in caplog.records if record.name == "konverge.runtime"]
    assert any(message.startswith(f"{step} operator.konverge.test/v1/Shop failed: ") for message in messages)


async def test_a_first_list_that_fails_for_a_while_is_said_with_its_request(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    transport = FaultyTransport(town.cluster.new_transport(), Fault("/shops", build_error_response(500), times=2))
    async with town.running_operator(an_operator(), transport=transport):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")

    assert f"{SHOP}: list or watch failed (retried with backoff): GET " in caplog.text
    assert "/shops was answered with HTTP 500: Internal Server Error" in caplog.text


async def test_a_permission_review_that_is_not_served_holds_nothing_up(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    fault = Fault("/selfsubjectrulesreviews", build_error_response(404, NO_RESOURCE, "NotFound"), times=2)
    transport = FaultyTransport(town.cluster.new_transport(), fault)
    options = RunOptions((town.namespace,), checks_permissions=True)
    async with town.running_operator(an_operator(), options, transport=transport):
        await town.create_shop("corner")
        await town.wait_until_ready("corner")
        await town.cluster.eventually(lambda: fault.times == 0, describe="the review is tried again")

    assert "checking the permissions failed: POST " in caplog.text
    assert "/selfsubjectrulesreviews was answered with HTTP 404" in caplog.text


async def test_a_permission_that_stays_missing_is_said_and_ends_the_start_at_its_limit(
    town: OperatorHarness, caplog: pytest.LogCaptureFixture
) -> None:
    transport = FaultyTransport(
        town.cluster.new_transport(), Fault("/shops", build_error_response(403, FORBIDDEN, "Forbidden"), times=-1)
    )
    client = Client(transport, user_agent=AGENT, clock=town.clock)
    begun = town.clock.monotonic()

    with pytest.raises(StartError, match=f"listing {SHOP} failed for 3 s: GET .*/shops was answ"):
        await an_operator().run(
            client, RunOptions((town.namespace,), start_timeout=timedelta(seconds=3)), clock=town.clock
        )

    assert town.clock.monotonic() - begun >= 3.0
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert FORBIDDEN in errors[0]
    assert "a permission is missing: konverge rbac prints the required roles" in errors[0]


@pytest.mark.slow
@pytest.mark.real_time
async def test_readyz_names_the_step_that_is_tried_again(town: OperatorHarness) -> None:
    fault = Fault("/shops", build_error_response(403, FORBIDDEN, "Forbidden"), times=-1)
    transport = FaultyTransport(town.cluster.new_transport(), fault)
    probes = find_free_address()
    options = RunOptions((town.namespace,), observability=ObservabilityOptions("0", probes))
    async with aiohttp.ClientSession() as session, town.running_operator(an_operator(), options, transport=transport):

        async def readiness() -> str:
            try:
                async with session.get(f"http://{probes}/readyz?verbose") as answer:
                    return await answer.text()
            except aiohttp.ClientError:
                return ""

        async def waits() -> bool:
            return f"listing {SHOP} failed and is being retried" in await readiness()

        async def is_ready() -> bool:
            return "readyz check passed" in await readiness()

        await town.cluster.eventually(waits, describe="the step is named")
        assert "[-]started failed: the owners are not listed yet" in await readiness()
        assert FORBIDDEN not in await readiness()
        fault.times = 0
        await town.cluster.eventually(is_ready, describe="the operator is ready")


async def test_an_operator_that_waits_for_the_server_can_be_cancelled(town: OperatorHarness) -> None:
    fault = Fault("", NotConnectedError("connection refused"), times=-1)
    client = Client(FaultyTransport(town.cluster.new_transport(), fault), user_agent=AGENT, clock=town.clock)
    running = asyncio.create_task(an_operator().run(client, clock=town.clock))
    await town.clock.sleep(5.0)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from konverge.clock import SeededEntropy
from konverge.kube import Object
from konverge.localcluster.apiserver import ApiServer
from konverge.localcluster.audit import AuditLog
from konverge.localcluster.requests import RequestHandler
from tests.localcluster.asking import Asker
from tests.localcluster.objects import DEFINITION, webapp_definition


class StandingClock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def pass_seconds(self, seconds: float) -> None:
        self._seconds += seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self._seconds += max(0.0, seconds)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def api(clock: StandingClock) -> ApiServer:
    return ApiServer(clock=clock, entropy=SeededEntropy())


@pytest.fixture
def webapps(api: ApiServer) -> Object:
    """The definition of the custom resource that the tests use, installed."""
    return api.create(DEFINITION, webapp_definition())


@pytest.fixture
def audit() -> AuditLog:
    return AuditLog()


@pytest.fixture
def ask(api: ApiServer, clock: StandingClock, audit: AuditLog) -> Asker:
    """Asks the server as an HTTP client does, without HTTP."""
    return Asker(RequestHandler(api, clock=clock, entropy=SeededEntropy(), audit=audit), api)

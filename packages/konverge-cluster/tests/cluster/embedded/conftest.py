from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from konverge.clock import SeededEntropy
from konverge.kube import Object
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditLog
from konverge_cluster._internal.embedded.request_handler import RequestHandler
from tests.cluster.embedded.objects import DEFINITION, webapp_definition
from tests.cluster.embedded.request_client import RequestClient


class ManualClock:
    """A clock that a test advances."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def advance(self, seconds: float) -> None:
        self._seconds += seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        return self._seconds

    async def sleep(self, seconds: float) -> None:
        self._seconds += max(0.0, seconds)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def api(clock: ManualClock) -> ApiServer:
    return ApiServer(clock=clock, entropy=SeededEntropy())


@pytest.fixture
def webapps(api: ApiServer) -> Object:
    """Install the definition of the custom resource for the tests."""
    return api.create(DEFINITION, webapp_definition())


@pytest.fixture
def audit() -> AuditLog:
    return AuditLog()


@pytest.fixture
def ask(api: ApiServer, clock: ManualClock, audit: AuditLog) -> RequestClient:
    """Return a client of the server without HTTP."""
    return RequestClient(RequestHandler(api, clock=clock, entropy=SeededEntropy(), audit=audit), api)

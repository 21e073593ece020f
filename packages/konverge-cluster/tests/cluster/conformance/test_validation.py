"""Objects that break a rule of their kind: both servers answer as recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from konverge_cluster.testing import Cluster
from tests.cluster.conformance.recorded_answers import ask, check_recorded
from tests.cluster.conformance.validation_requests import GROUPS

pytestmark = pytest.mark.anyio

ANSWERS = Path(__file__).with_name("validation_answers.json")


@pytest.mark.parametrize("group", GROUPS)
async def test_an_invalid_object_is_refused_with_the_recorded_answer(cluster: Cluster, group: str) -> None:
    transport = cluster.new_transport()

    answers = {name: await ask(transport, request, cluster.namespace) for name, request in GROUPS[group].items()}

    check_recorded(cluster, ANSWERS, group, answers)

"""Objects that break a rule of their kind: both servers answer as recorded.

`validation_answers.json` contains the answers of the real server. With ``KONVERGE_RECORD=1`` a run on the real cluster
writes it again.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from konverge.client import Transport
from konverge_cluster.testing import Cluster
from tests.cluster.conformance.validation_requests import GROUPS, ValidationRequest

pytestmark = pytest.mark.anyio

ANSWERS = Path(__file__).with_name("validation_answers.json")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def ask(transport: Transport, request: ValidationRequest, namespace: str) -> dict[str, Any]:
    """Return the status, the distinct causes in order of their fields, and the warnings."""
    response = await transport.request(
        "POST",
        request.path.replace("{n}", namespace),
        query={"dryRun": "All"},
        headers={"content-type": "application/json", "accept": "application/json"},
        body=json.dumps(request.body).encode(),
        timeout_seconds=60,
    )
    body = json.loads(response.body)
    answer: dict[str, Any] = {"status": response.status}
    causes = body.get("details", {}).get("causes") if response.status >= 400 else None
    if causes:
        lines = {f"{cause['field']} | {cause['reason']} | {cause['message']}" for cause in causes}
        answer["causes"] = sorted(UID.sub("<uid>", line) for line in lines)
    elif response.status >= 400:
        answer["message"] = body["message"]
    if response.headers.get("warning"):
        answer["warning"] = response.headers["warning"]
    return answer


@pytest.mark.parametrize("group", GROUPS)
async def test_an_invalid_object_is_refused_with_the_recorded_answer(cluster: Cluster, group: str) -> None:
    transport = cluster.new_transport()

    answers = {name: await ask(transport, request, cluster.namespace) for name, request in GROUPS[group].items()}

    recorded = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    if cluster.name == "real" and os.environ.get("KONVERGE_RECORD"):
        recorded[group] = answers
        ANSWERS.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert answers == recorded[group]

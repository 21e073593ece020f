"""Answers of the real server in files beside the tests: both servers must answer as recorded.

With ``KONVERGE_RECORD=1`` a run on the real cluster writes the file again.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from konverge.client import Transport
from konverge.kube import Object
from konverge_cluster.testing import Cluster

WARNING = re.compile(r'299 - "(?:\\.|[^"\\])*"')
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class RecordedRequest(NamedTuple):
    """The creation of one object in a dry run; ``{n}`` in the path is the namespace."""

    path: str
    body: Object


async def ask(transport: Transport, request: RecordedRequest, namespace: str) -> dict[str, Any]:
    """Return the status, the distinct causes in order of their fields, and the warnings of a real server."""
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
        answer["message"] = hide_namespace(body["message"], namespace)
    found = WARNING.findall(response.headers.get("warning", ""))
    warnings = [warning for warning in found if not warning.startswith('299 - "konverge: ')]
    if warnings:
        answer["warning"] = hide_namespace(", ".join(warnings), namespace)
    return answer


def hide_namespace(text: str, namespace: str) -> str:
    """Return the text with a placeholder for the name of the test's namespace, which is quoted there."""
    return re.sub(rf'(\\?"){re.escape(namespace)}(\\?")', r"\1<namespace>\2", text)


def check_recorded(cluster: Cluster, file: Path, group: str, answers: dict[str, Any]) -> None:
    """Compare the answers of a group with the recorded ones, or record them."""
    recorded = json.loads(file.read_text()) if file.exists() else {}
    if cluster.name == "real" and os.environ.get("KONVERGE_RECORD"):
        recorded[group] = answers
        file.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert answers == recorded[group]

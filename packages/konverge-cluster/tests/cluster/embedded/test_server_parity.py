"""The embedded server answers like the real one, for each sequence of requests."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from difflib import unified_diff
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from konverge.clock import SeededEntropy, SystemClock, SystemEntropy
from konverge_cluster._internal.embedded.apiserver import ApiServer
from konverge_cluster._internal.embedded.audit_log import AuditLog
from konverge_cluster._internal.embedded.request_handler import RequestHandler
from konverge_cluster.controlplane import RealCluster
from tests.cluster.embedded.parity_requests import GROUP, SEQUENCES, WEBAPPS, ParityRequest, build_definition
from tests.cluster.embedded.request_client import RequestClient

pytestmark = pytest.mark.real

_DEADLINE_SECONDS = 30
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_USER_AGENT = "tester/1.0"

Answered: TypeAlias = tuple[int, list[str], Any]
Ask: TypeAlias = Callable[[ParityRequest], Answered]


class RealServer:
    """The real API server, accessed over HTTPS."""

    def __init__(self, control_plane: RealCluster) -> None:
        user = json.loads(Path(control_plane.kubeconfig).read_text())["users"][0]["user"]
        self._url = control_plane.url
        self._token = user["token"]

    def __call__(self, question: ParityRequest) -> Answered:
        body = question.body if isinstance(question.body, bytes | None) else json.dumps(question.body).encode()
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": question.content_type,
            "User-Agent": _USER_AGENT,
        }
        request = urllib.request.Request(self._url + question.path, body, headers, method=question.method)
        context = ssl._create_unverified_context()  # loopback, and a self-signed certificate of the server
        try:
            answer = urllib.request.urlopen(request, timeout=_DEADLINE_SECONDS, context=context)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            return answer.status, answer.headers.get_all("warning") or [], json.load(answer)


class EmbeddedServer:
    """The embedded API server, called in process."""

    def __init__(self) -> None:
        clock, entropy = SystemClock(), SeededEntropy()
        api = ApiServer(clock=clock, entropy=entropy)
        self._ask = RequestClient(RequestHandler(api, clock=clock, entropy=entropy, audit=AuditLog()), api)

    def __call__(self, question: ParityRequest) -> Answered:
        asked = self._ask(question.method, question.path, question.body, content_type=question.content_type)
        return asked.status, [f"299 - {json.dumps(text)}" for text in asked.warnings], asked.body


def in_namespace(question: ParityRequest, namespace: str) -> ParityRequest:
    path = question.path.replace("{n}", namespace)
    body = question.body
    if isinstance(body, dict):
        body = json.loads(json.dumps(body).replace("{n}", namespace))
    return ParityRequest(question.method, path, body, question.content_type)


@pytest.fixture(scope="module")
def servers(real_control_plane: RealCluster) -> tuple[Ask, Ask, str]:
    """Return both servers with the same preparation, and the namespace on them."""
    namespace = f"compare-{SystemEntropy().name_suffix(8)}"
    real, embedded = RealServer(real_control_plane), EmbeddedServer()
    for ask in (real, embedded):
        ask(ParityRequest("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}))
        ask(ParityRequest("POST", _DEFINITIONS, build_definition()))
    deadline = SystemClock().monotonic() + _DEADLINE_SECONDS
    probe = ParityRequest("POST", f"{WEBAPPS}?dryRun=All", SEQUENCES["a custom resource"][0].body)
    while real_status(real, in_namespace(probe, namespace)) != 201:
        assert SystemClock().monotonic() < deadline, f"{GROUP} is not served"
    return real, embedded, namespace


def real_status(real: Ask, question: ParityRequest) -> int:
    try:
        return real(question)[0]
    except json.JSONDecodeError:  # "404 page not found", until the definition is served
        return 404


# Values that differ between runs, and texts with another order or form by design.
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_ADDRESS = re.compile(r"\b10\.\d+\.\d+\.\d+(/\d+)?")


def normalize_response(value: Any, name: str = "") -> Any:
    """Return the value without the parts that differ between runs."""
    match value:
        case dict():
            kept = {key: normalize_response(each, key) for key, each in value.items()}
            return {key: each for key, each in kept.items() if not (key in ("details", "reason") and not each)}
        case list():
            return [normalize_response(each, name) for each in value]
        case str() if name == "resourceVersion":
            return "<version>"
        case str():
            return _ADDRESS.sub("<address>", _TIME.sub("<time>", _UID.sub("<uid>", value)))
        case int() if name == "nodePort":
            return "<port>"
        case _:
            return value


def comparable(answered: Answered) -> Answered:
    """Return what both servers must have in common.

    The causes are a set: the real server reports them in any order, and some twice. The embedded cluster's warnings of
    what it lacks are left out.
    """
    status, warnings, body = answered
    warnings = [warning for warning in warnings if not warning.startswith('299 - "konverge: ')]
    body = normalize_response(body)
    causes = (body.get("details") or {}).get("causes") if isinstance(body, dict) else None
    if causes:
        unique = sorted({json.dumps(cause, sort_keys=True) for cause in causes})
        body = {
            **body,
            "details": {**body["details"], "causes": unique},
            "message": deduplicate_causes(body["message"]),
        }
    return status, sorted(warnings), body


def deduplicate_causes(message: str) -> str:
    """Return a message whose causes have a fixed order; the causes themselves are compared separately."""
    return message.partition(" is invalid: ")[0]


def transcript(ask: Ask, questions: Iterable[ParityRequest], namespace: str) -> list[str]:
    """Return requests and responses line by line, for a readable difference."""
    lines = []
    for question in (in_namespace(each, namespace) for each in questions):
        lines.append(f"{question.method} {question.path} {question.body!r}")
        lines += json.dumps(comparable(ask(question)), indent=1, sort_keys=True).splitlines()
    return lines


@pytest.mark.parametrize("name", SEQUENCES)
def test_both_servers_answer_alike(servers: tuple[Ask, Ask, str], name: str) -> None:
    real, embedded, namespace = servers

    expected, found = (transcript(ask, SEQUENCES[name], namespace) for ask in (real, embedded))

    assert found == expected, "\n".join(unified_diff(expected, found, "real", "embedded", lineterm=""))

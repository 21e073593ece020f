"""The descriptions of changes in the demo."""

from __future__ import annotations

import pytest

from konverge.kube import Object
from konverge_cluster._internal.cli.demo_changes import describe_changes, describe_state
from konverge_cluster._internal.cli.demo_script import DemoState

LABELS = {"app.kubernetes.io/instance": "shop"}


def obj(kind: str, name: str, **fields: object) -> Object:
    return {"kind": kind, "metadata": {"name": name, "resourceVersion": "1", "labels": LABELS}, **fields}


def webapp(version: int, status: str, reason: str, message: str) -> Object:
    condition = {"type": "Ready", "status": status, "reason": reason, "message": message}
    metadata = {"name": "shop", "resourceVersion": str(version), "generation": 1}
    return {"kind": "WebApp", "metadata": metadata, "status": {"conditions": [condition]}}


def test_what_goes_and_what_comes_is_news() -> None:
    before = DemoState("shop").with_object(obj("Service", "old"))
    after = DemoState("shop").with_object(obj("Service", "new"))

    assert describe_changes(before, after) == ["- Service old", "+ Service new"]


def test_a_condition_is_news_when_its_reason_changes() -> None:
    before = DemoState("shop").with_object(webapp(1, "False", "Creating", "0/2 ready"))
    after = before.with_object(webapp(2, "True", "Healthy", "Component is healthy."))

    (line,) = describe_changes(before, after)

    assert line.split(maxsplit=3) == ["Ready", "True", "Healthy", "Component is healthy."]


def test_another_message_alone_is_no_news() -> None:
    before = DemoState("shop").with_object(webapp(1, "False", "Creating", "0/2 ready"))
    after = before.with_object(webapp(2, "False", "Creating", "1/2 ready"))

    assert describe_changes(before, after) == []


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (obj("Deployment", "web", spec={"replicas": 3}, status={"readyReplicas": 1}), "1/3 ready"),
        (obj("Pod", "web", status={"phase": "Pending"}), "Pending"),
        (obj("Pod", "web", status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), "ready"),
        (obj("ConfigMap", "web"), ""),
        ({"kind": "Pod", "metadata": {"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, "terminating"),
    ],
)
def test_the_state_of_an_object_in_few_words(found: Object, state: str) -> None:
    assert describe_state(found) == state

"""The comparison of results with expectations, and the messages about differences."""

import base64
from typing import Any

import msgspec
import pytest

from konverge_box._internal.simulation import RecordedOperation
from konverge_box._internal.simulation.expectations import find_object_failures, find_operation_failures
from konverge_box._internal.simulation.simulation_model import Expectations, ExpectedObject

SITE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Site",
    "metadata": {"name": "a"},
    "spec": {"replicas": 2, "hosts": ["a", "b"], "on": True},
    "status": {
        "phase": "Up",
        "conditions": [{"type": "Ready", "status": "False", "reason": "Creating", "message": "waiting for pods"}],
    },
}


def failures(found: dict[str, Any] | None, **expected: Any) -> list[str]:
    declared = msgspec.convert({"kind": "Site", "name": "a", **expected}, ExpectedObject)
    return list(find_object_failures(declared, found))


@pytest.mark.parametrize(
    "expected",
    [
        {},
        {"has": {"spec": {"replicas": 2}}},
        {"has": {"spec": {"hosts": ["a", "b"], "absent": None}}},
        {"status": {"phase": "Up", "url": None}},
        {"conditions": {"Ready": "False"}},
        {"conditions": {"Ready": False}},
        {"conditions": {"Ready": "Creating"}},
        {"conditions": {"Ready": {"status": "False", "reason": "Creating", "message": "for pods"}}},
    ],
)
def test_what_is_there_is_as_expected(expected: dict[str, Any]) -> None:
    assert failures(SITE, **expected) == []


@pytest.mark.parametrize(
    ("expected", "message"),
    [
        ({"has": {"spec": {"replicas": 3}}}, "Site/a: spec.replicas: expected 3, found 2"),
        ({"has": {"spec": {"on": 1}}}, "Site/a: spec.on: expected 1, found true"),
        ({"has": {"spec": {"hosts": ["a"]}}}, 'Site/a: spec.hosts: expected ["a"], found ["a", "b"]'),
        ({"has": {"spec": {"hosts": ["a", "c"]}}}, "Site/a: spec.hosts[1]: expected 'c', found 'b'"),
        ({"has": {"spec": {"size": 1}}}, "Site/a: spec.size: expected 1, found nothing"),
        ({"has": {"spec": {"replicas": None}}}, "Site/a: spec.replicas: expected nothing, found 2"),
        ({"status": {"phase": "Down"}}, "Site/a: status.phase: expected 'Down', found 'Up'"),
        ({"conditions": {"Ready": "True"}}, "Site/a: Ready: expected True, found False Creating: waiting for pods"),
        ({"conditions": {"Ready": "Healthy"}}, "expected the reason Healthy, found False Creating: waiting for pods"),
        ({"conditions": {"Ready": {"message": "disk"}}}, "expected 'disk' in the message, found False Creating"),
        ({"conditions": {"Other": "True"}}, "Site/a: Other: expected a condition, found none"),
    ],
)
def test_what_is_otherwise_is_told_with_its_field(expected: dict[str, Any], message: str) -> None:
    (found,) = failures(SITE, **expected)
    assert message in found


def test_an_object_that_is_not_there_is_told_once() -> None:
    assert failures(None, has={"spec": {"replicas": 3}}) == ["Site/a: expected an object, found none"]


def test_values_of_secrets_are_compared_and_not_shown() -> None:
    data = {"password": base64.b64encode(b"open sesame").decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": data}

    assert failures(secret, has={"stringData": {"password": "open sesame"}}) == []
    (failure,) = failures(secret, has={"stringData": {"password": "guess"}})
    assert failure == "Site/a: stringData.password: expected another value (not shown)"


def test_what_the_operator_did_besides_is_told_and_status_and_owners_do_not_count() -> None:
    done = [
        RecordedOperation(verb="created", kind="ConfigMap", namespace="", name="a"),
        RecordedOperation(verb="created", kind="Secret", namespace="other", name="b"),
        RecordedOperation(verb="updated", kind="Site", namespace="", name="a"),
        RecordedOperation(verb="updated", kind="Deployment", namespace="", name="a", is_status=True),
    ]

    def find_failures(**expected: Any) -> list[str]:
        return list(find_operation_failures(Expectations(**expected), done, {"Site"}))

    assert find_failures(created=("ConfigMap/a", "Secret/other/b"), updated=()) == []
    assert find_failures(created=("ConfigMap/a", "Service/a")) == [
        "Service/a: expected it to be created, found no such change",
        "Secret/other/b: expected no such change, found it created",
    ]
    assert find_failures() == []

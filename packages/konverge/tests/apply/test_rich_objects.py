"""One object of each kind with many special cases: the real server's result against the predicted one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from konverge._internal.apply import find_drift, normalize, with_builtin_defaults
from konverge.clock import SystemEntropy
from konverge.kube import Object
from tests.apply.conftest import ComparisonServer
from tests.apply.rich_objects import NAMES, load_rich_object

pytestmark = pytest.mark.real


class Kind:
    """The path of a kind on the server."""

    def __init__(self, server: ComparisonServer, obj: Object) -> None:
        root = f"/apis/{obj['apiVersion']}" if "/" in obj["apiVersion"] else f"/api/{obj['apiVersion']}"
        self._cluster = server.compare_path("")
        resources = self._cluster.request("GET", root)["resources"]
        found = next(each for each in resources if each["kind"] == obj["kind"] and "/" not in each["name"])
        self.namespaced: bool = found["namespaced"]
        namespace = f"/namespaces/{server.namespace}" if self.namespaced else ""
        self._path = f"{root}{namespace}/{found['name']}"

    def create(self, obj: Object) -> Object:
        answer: Object = self._cluster.request("POST", f"{self._path}?dryRun=All", obj)
        return answer

    def apply(self, obj: Object, manager: str) -> Object:
        path = f"{self._path}/{obj['metadata']['name']}?force=true&fieldManager={manager}"
        answer: Object = self._cluster.request("PATCH", path, obj, "application/apply-patch+yaml")
        return answer

    def delete(self, obj: Object) -> None:
        self._cluster.request("DELETE", f"{self._path}/{obj['metadata']['name']}")


@pytest.fixture(params=NAMES)
def wanted(request: pytest.FixtureRequest, server: ComparisonServer) -> Object:
    obj = load_rich_object(request.param, server.namespace)
    if obj["kind"] != "CustomResourceDefinition":  # Its name says what it defines.
        obj["metadata"]["name"] += f"-{SystemEntropy().name_suffix()}"
    return obj


@pytest.fixture
def kind(server: ComparisonServer, wanted: Object) -> Kind:
    return Kind(server, wanted)


@pytest.fixture
def applied(kind: Kind, wanted: Object) -> Iterator[Object]:
    yield kind.apply(wanted, "one")
    kind.delete(wanted)


def test_after_an_apply_there_is_no_difference(wanted: Object, applied: Object) -> None:
    assert find_drift(wanted, applied, "one") == ()


def test_the_normal_form_is_applied_without_a_difference(kind: Kind, wanted: Object, applied: Object) -> None:
    normal = normalize(wanted)
    assert find_drift(normal, kind.apply(normal, "two"), "two") == ()


def test_defaults_are_filled_as_the_server_fills_them(kind: Kind, wanted: Object) -> None:
    """Fields that admission or the kind's own logic adds are not predicted, so they are left out."""
    stored = kind.create(wanted)
    for obj in (stored, filled := with_builtin_defaults(wanted)):
        obj["metadata"] = {name: obj["metadata"].get(name) for name in ("labels", "annotations", "finalizers")}
    assert filled == _cut_down(stored, filled)
    assert _surplus(stored, filled) <= _ALLOCATED


# What the server adds beyond defaults: by admission, or when it takes a new object in.
_ALLOCATED = {
    ".metadata.annotations",
    ".metadata.finalizers",
    ".metadata.labels.batch.kubernetes.io/controller-uid",
    ".metadata.labels.batch.kubernetes.io/job-name",
    ".metadata.labels.controller-uid",
    ".metadata.labels.job-name",
    ".spec.clusterIP",
    ".spec.clusterIPs",
    ".spec.finalizers",
    ".spec.ipFamilies",
    ".spec.ipFamilyPolicy",
    ".spec.preemptionPolicy",
    ".spec.priority",
    ".spec.selector",
    ".spec.tolerations",
    ".spec.template.metadata.labels.batch.kubernetes.io/controller-uid",
    ".spec.template.metadata.labels.batch.kubernetes.io/job-name",
    ".spec.template.metadata.labels.controller-uid",
    ".spec.template.metadata.labels.job-name",
    ".status.lastPhaseTransitionTime",
    ".status.phase",
    ".status.qosClass",
}


def _cut_down(value: Any, like: Any) -> Any:
    if isinstance(value, dict) and isinstance(like, dict):
        return {name: _cut_down(each, like[name]) for name, each in value.items() if name in like}
    if isinstance(value, list) and isinstance(like, list):
        return [_cut_down(each, other) for each, other in zip(value, like, strict=False)]
    return like if like is None else value


def _surplus(value: Any, like: Any, path: str = "") -> set[str]:
    if isinstance(value, dict) and isinstance(like, dict):
        below = (_surplus(each, like.get(name), f"{path}.{name}") for name, each in value.items())
        return set().union(*below)
    if isinstance(value, list) and isinstance(like, list) and len(value) == len(like):
        return set().union(*(_surplus(each, other, path) for each, other in zip(value, like, strict=True)))
    return set() if value == like else {path}

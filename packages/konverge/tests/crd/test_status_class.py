"""The class of a status, for each sort of class."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

import attrs
import msgspec
import pytest
from pydantic import BaseModel

from konverge._internal.crd.status_class import find_status_class
from konverge.crd import Metadata, crd_manifest, custom_resource, unstructured_resource
from konverge.errors import ConfigurationError
from konverge.kube import GroupVersionKind


@dataclass
class Part:
    name: str = ""


@dataclass
class PlainStatus:
    ready_replicas: int = 0
    parts: list[Part] = field(default_factory=list)
    seen_at: datetime | None = None
    lag: timedelta = timedelta(0)
    ratio: float = 0.0

    @cached_property
    def total(self) -> int:
        return len(self.parts)


@attrs.define
class AttrsStatus:
    ready_replicas: int = 0


class StructStatus(msgspec.Struct):
    ready_replicas: int = 0


class ModelStatus(BaseModel):
    ready_replicas: int = 0


@dataclass
class Spec:
    size: int = 1


@dataclass
class Plain:
    metadata: Metadata
    spec: Spec
    status: PlainStatus = field(default_factory=PlainStatus)


@dataclass
class Optional:
    metadata: Metadata
    spec: Spec
    status: PlainStatus | None = None


@attrs.define
class Attrs:
    metadata: Metadata
    spec: Spec
    status: AttrsStatus | None = None


class Struct(msgspec.Struct):
    metadata: Metadata
    spec: Spec
    status: StructStatus | None = None


class Model(BaseModel):
    metadata: Metadata
    spec: Spec
    status: ModelStatus | None = None


for declared in (Plain, Optional, Attrs, Struct, Model):
    custom_resource(group="status.konverge.test", version="v1")(declared)


@pytest.mark.parametrize(
    ("cls", "status"),
    [
        (Plain, PlainStatus(ready_replicas=2)),
        (Optional, PlainStatus(ready_replicas=2)),
        (Attrs, AttrsStatus(ready_replicas=2)),
        (Struct, StructStatus(ready_replicas=2)),
        (Model, ModelStatus(ready_replicas=2)),
    ],
)
def test_each_sort_of_class_has_its_fields_in_the_definition_and_in_json(cls: type[Any], status: object) -> None:
    found = find_status_class(cls)

    assert found is not None
    assert "readyReplicas" in found.names
    assert found.encode(status)["readyReplicas"] == 2
    manifest = crd_manifest(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert list(manifest["properties"]["status"]["properties"])[:3] == [
        "conditions",
        "observedGeneration",
        "readyReplicas",
    ]


def test_values_are_encoded_as_the_schema_expects_them() -> None:
    found = find_status_class(Plain)
    assert found is not None
    status = PlainStatus(parts=[Part("a")], seen_at=datetime(2026, 1, 2, tzinfo=UTC), lag=timedelta(seconds=90))
    assert status.total == 1  # a cached property is no assignment

    assert found.encode(status) == {
        "readyReplicas": 0,
        "parts": [{"name": "a"}],
        "seenAt": "2026-01-02T00:00:00Z",
        "lag": "1m30s",
        "ratio": 0.0,
    }


def build_status_with_loop() -> PlainStatus:
    status = PlainStatus()
    status.parts.append(status)  # type: ignore[arg-type]
    return status


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        (Part(), "status: expected PlainStatus, found Part"),
        (PlainStatus(parts=[object()]), "status: expected a value with a JSON form, found none"),  # type: ignore[list-item]
        (PlainStatus(ratio=float("nan")), "status.ratio: expected a finite number, found nan"),
        (build_status_with_loop(), "status: expected a value with a JSON form, found none"),
    ],
)
def test_a_value_that_no_request_can_contain_is_refused(status: object, problem: str) -> None:
    found = find_status_class(Plain)
    assert found is not None
    with pytest.raises(ConfigurationError) as refused:
        found.encode(status)
    assert problem in str(refused.value)


def test_an_attribute_that_is_no_field_of_a_nested_class_is_found() -> None:
    found, status = find_status_class(Plain), PlainStatus(parts=[Part()])
    assert found is not None
    status.parts[0].nmae = "a"  # type: ignore[attr-defined]

    problem = "status.parts[0].nmae: expected a field of Part, found no such field; did you mean 'name'?"
    assert found.find_unknown_attribute(status) == problem


def test_a_kind_with_only_a_schema_has_any_mapping() -> None:
    found = find_status_class(unstructured_resource(GroupVersionKind("status.konverge.test", "v1", "Loose"), {}))

    assert found is not None
    assert found.encode({"phase": "Open"}) == {"phase": "Open"}

"""The comparison of definitions and schemas; the server confirms what it refuses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from konverge._internal.upgrade.definition_diff import diff_definitions
from konverge._internal.upgrade.schema_diff import diff_schemas
from konverge.errors import InvalidError
from konverge.kube import GroupVersionKind, Object, ObjectKey
from konverge_cluster.testing import Cluster

DEFINITION = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
NAME = "boats.diff.konverge.test"


def version(name: str, **more: Any) -> dict[str, Any]:
    spec = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 9}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": True, "storage": False, "schema": schema, **more}


def boats() -> Object:
    """A definition that stores v1; objects may still be stored in v1beta1."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "diff.konverge.test",
            "scope": "Namespaced",
            "names": {"kind": "Boat", "plural": "boats", "singular": "boat", "listKind": "BoatList"},
            "versions": [version("v1beta1"), version("v1", storage=True)],
        },
        "status": {"storedVersions": ["v1beta1", "v1"]},
    }


def set_scope(spec: Any) -> None:
    spec["scope"] = "Cluster"


def rename_kind(spec: Any) -> None:
    spec["names"] |= {"kind": "Ship", "listKind": "ShipList"}


def remove_stored(spec: Any) -> None:
    del spec["versions"][0]


def stop_serving(spec: Any) -> None:
    spec["versions"][0]["served"] = False


def store_another(spec: Any) -> None:
    spec["versions"][1]["storage"] = False
    spec["versions"].append(version("v2", storage=True))


def deprecate(spec: Any) -> None:
    spec["versions"][0]["deprecated"] = True


def add_status(spec: Any) -> None:
    spec["versions"][1]["subresources"] = {"status": {}}


def rename_list(spec: Any) -> None:
    spec["names"]["listKind"] = "Fleet"


CHANGES: dict[str, tuple[Callable[[Any], None], list[tuple[str, str]]]] = {
    "scope": (set_scope, [("refused", "scope")]),
    "kind": (rename_kind, [("refused", "names.kind"), ("breaking", "names.listKind")]),
    "list kind": (rename_list, [("breaking", "names.listKind")]),
    "stored version removed": (remove_stored, [("refused", "v1beta1")]),
    "no longer served": (stop_serving, [("breaking", "v1beta1")]),
    "storage version": (store_another, [("note", "v2"), ("note", "v2")]),
    "deprecated": (deprecate, [("note", "v1beta1")]),
    "subresource": (add_status, [("breaking", "v1 /status")]),
}


@pytest.mark.anyio
@pytest.mark.parametrize("change", list(CHANGES))
async def test_the_server_refuses_exactly_what_is_called_refused(cluster: Cluster, change: str) -> None:
    changes, expected = CHANGES[change]
    older = boats()
    older["spec"]["versions"] = [version("v1beta1", storage=True), version("v1")]
    await cluster.install(older)
    await cluster.install(boats())
    live = await cluster.client.get(DEFINITION, ObjectKey("", NAME))
    assert live["status"]["storedVersions"] == ["v1beta1", "v1"]
    new = copy.deepcopy(live)
    changes(new["spec"])

    findings = list(diff_definitions(live, new, converts=False))
    refusal = None
    try:
        await cluster.client.update(new, dry_run=True)
    except InvalidError as error:
        refusal = error

    assert [(finding.level, finding.path) for finding in findings] == expected
    assert (refusal is not None) == any(level == "refused" for level, _ in expected), refusal


def test_a_removed_version_that_stores_nothing_concerns_its_clients() -> None:
    live, new = boats(), boats()
    live["status"]["storedVersions"] = ["v1"]
    del new["spec"]["versions"][0]

    [finding] = diff_definitions(live, new, converts=False)

    assert (finding.level, finding.path, finding.change) == ("breaking", "v1beta1", "removed")


def test_conversion_that_ends_drops_fields() -> None:
    live, new = boats(), boats()
    live["spec"]["conversion"] = {"strategy": "Webhook"}

    [ended] = diff_definitions(live, new, converts=False)
    [begun] = diff_definitions(new, new, converts=True)

    assert (ended.level, ended.change) == ("breaking", "no webhook converts any more")
    assert (begun.level, begun.path) == ("note", "conversion")


TEXT = {"type": "string"}
SCHEMAS: dict[str, tuple[Any, Any, list[tuple[str, str, str]]]] = {
    "type": (TEXT, {"type": "integer"}, [("breaking", ".f", "type changed from string to integer")]),
    "wider type": (
        {"type": "integer"},
        {"x-kubernetes-int-or-string": True},
        [("note", ".f", "type widened from integer to int-or-string")],
    ),
    "null": ({**TEXT, "nullable": True}, TEXT, [("breaking", ".f", "null is no longer valid")]),
    "enum": (
        {**TEXT, "enum": ["a", "b"]},
        {**TEXT, "enum": ["b", "c"]},
        [("breaking", ".f", 'no longer permits ["a"]'), ("note", ".f", 'also permits ["c"]')],
    ),
    "new enum": (TEXT, {**TEXT, "enum": ["a"]}, [("breaking", ".f", 'restricted to ["a"]')]),
    "pattern": (TEXT, {**TEXT, "pattern": "^a"}, [("breaking", ".f", 'pattern "^a" added')]),
    "no pattern": ({**TEXT, "pattern": "^a"}, TEXT, [("note", ".f", 'pattern "^a" removed')]),
    "higher minimum": (
        {"type": "integer", "minimum": 1},
        {"type": "integer", "minimum": 2},
        [("breaking", ".f", "minimum changed from 1 to 2")],
    ),
    "lower minimum": (
        {"type": "integer", "minimum": 1},
        {"type": "integer", "minimum": 0},
        [("note", ".f", "minimum changed from 1 to 0")],
    ),
    "default": ({**TEXT, "default": "a"}, {**TEXT, "default": "b"}, [("breaking", ".f", 'default "a" changed to "b"')]),
    "new default": (TEXT, {**TEXT, "default": "a"}, [("note", ".f", 'default "a" added')]),
    "rule": (
        TEXT,
        {**TEXT, "x-kubernetes-validations": [{"rule": "self != ''"}]},
        [("breaking", ".f", "rule added: self != ''")],
    ),
    "items": (
        {"type": "array", "items": TEXT},
        {"type": "array", "items": {**TEXT, "maxLength": 3}},
        [("breaking", ".f[]", "maxLength 3 added")],
    ),
    "values": (
        {"type": "object", "additionalProperties": TEXT},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        [("breaking", ".f{}", "type changed from string to integer")],
    ),
    "list type": (
        {"type": "array", "items": TEXT},
        {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        [("breaking", ".f", "list type changed from atomic to set")],
    ),
    "unknown fields": (
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "object"},
        [("breaking", ".f", "unknown fields are no longer kept")],
    ),
    "description": ({**TEXT, "description": "a"}, {**TEXT, "description": "b"}, []),
}


@pytest.mark.parametrize("change", list(SCHEMAS))
def test_a_changed_schema_is_judged_by_its_direction(change: str) -> None:
    before, after, expected = SCHEMAS[change]

    findings = diff_schemas(
        {"type": "object", "properties": {"f": before}}, {"type": "object", "properties": {"f": after}}, "v1"
    )

    assert [(each.level, each.path.removeprefix("v1 "), each.change) for each in findings] == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {"required": ["f"]}, [("breaking", "v1 .f", "required")]),
        ({"required": ["f"]}, {}, [("note", "v1 .f", "no longer required")]),
    ],
)
def test_a_field_that_becomes_required_breaks(before: Any, after: Any, expected: list[tuple[str, str, str]]) -> None:
    schema = {"type": "object", "properties": {"f": TEXT}}

    findings = list(diff_schemas({**schema, **before}, {**schema, **after}, "v1"))

    assert [(each.level, each.path, each.change) for each in findings] == expected

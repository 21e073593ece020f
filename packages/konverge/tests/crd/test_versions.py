"""What a definition says beside the schema of one version, and the mistakes in it."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest

from konverge.crd import (
    CelRule,
    Metadata,
    Scale,
    crd_manifest,
    custom_resource,
    decode,
    encode,
    find_definition,
    immutable,
    list_map,
    rules,
)
from konverge.errors import BuildError
from tests.crd.scaling import Fleet, FleetV1Beta1


def mistakes_of(declare: Any) -> tuple[str, ...]:
    with pytest.raises(BuildError) as failure:
        declare()
    return failure.value.errors


def test_the_definition_lists_every_version_and_stores_one() -> None:
    manifest = crd_manifest(Fleet)

    versions = manifest["spec"]["versions"]
    assert [(found["name"], found["served"], found["storage"]) for found in versions] == [
        ("v1", True, True),
        ("v1beta1", True, False),
    ]
    assert versions[1]["deprecationWarning"] == "scaling.konverge.test/v1beta1 Fleet is replaced by v1"
    assert [column["name"] for column in versions[1]["additionalPrinterColumns"]] == ["Where"]
    assert list(versions[1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]) == ["region", "replicas"]
    assert "conversion" not in manifest["spec"]


def test_a_conversion_webhook_is_named_when_one_is_given() -> None:
    service = {"service": {"namespace": "fleet", "name": "webhooks", "path": "/convert"}, "caBundle": "QQ=="}

    conversion = crd_manifest(Fleet, conversion=service)["spec"]["conversion"]

    assert conversion == {
        "strategy": "Webhook",
        "webhook": {"clientConfig": service, "conversionReviewVersions": ["v1"]},
    }


def test_each_version_decodes_and_encodes_as_itself() -> None:
    old = decode(FleetV1Beta1, {"metadata": {"name": "f"}, "spec": {"region": "north"}})

    assert encode(old)["apiVersion"] == "scaling.konverge.test/v1beta1"
    assert find_definition(Fleet).versions == (find_definition(Fleet), find_definition(FleetV1Beta1))


def test_scale_and_selectable_fields_stand_on_the_version() -> None:
    version = crd_manifest(Fleet)["spec"]["versions"][0]

    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert version["selectableFields"] == [{"jsonPath": ".spec.tier"}]
    assert find_definition(Fleet).mapping.subresources == {"status", "scale"}


def test_rules_stand_on_field_class_and_object() -> None:
    root = crd_manifest(Fleet)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]

    spec = root["properties"]["spec"]["properties"]
    assert root["x-kubernetes-validations"] == [
        {"rule": "self.metadata.name != 'armada'", "message": "no fleet is called so"}
    ]
    assert spec["region"]["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "a fleet does not move"}
    ]
    assert spec["bounds"]["x-kubernetes-validations"] == [
        {
            "rule": "self.minReplicas <= self.maxReplicas",
            "messageExpression": "self.maxReplicas > 1 ? 'more than several' : 'more than one'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".minReplicas",
        }
    ]


def test_annotations_of_topology_take_the_word_for_their_type() -> None:
    spec = crd_manifest(Fleet)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]

    assert spec["arguments"]["x-kubernetes-list-type"] == "atomic"
    assert spec["labels"]["x-kubernetes-map-type"] == "atomic"
    assert spec["template"] == {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-embedded-resource": True,
        "nullable": True,
    }


def test_several_annotations_of_rules_add_up() -> None:
    @dataclass
    class Spec:
        size: Annotated[int, immutable(), rules(CelRule("self > 0", "is too small"))] = 1

    @custom_resource(group="a.b", version="v1")
    @dataclass
    class Thing:
        metadata: Metadata
        spec: Spec = field(default_factory=Spec)

    schema = find_definition(Thing).schema["properties"]["spec"]["properties"]["size"]
    assert [rule["rule"] for rule in schema["x-kubernetes-validations"]] == ["self == oldSelf", "self > 0"]


@dataclass
class Item:
    name: str | None = None
    parts: list[str] = field(default_factory=list)


@dataclass
class BadSpec:
    replicas: str = "1"
    items: Annotated[list[Item], list_map("name", "title", "parts")] = field(default_factory=list)
    multiline: Annotated[int, rules(CelRule("self >\n0"))] = 1


def test_every_mistake_of_the_paths_rules_and_keys_is_reported_at_once() -> None:
    @dataclass
    class Bad:
        metadata: Metadata
        spec: BadSpec = field(default_factory=BadSpec)

    declare = custom_resource(
        group="a.b",
        version="v1",
        rules=(CelRule(" "),),
        scale=Scale(label_selector="status.selector"),
        selectable_fields=(".spec.items", ".spec.tier"),
    )

    assert mistakes_of(lambda: declare(Bad)) == (
        "rule: expected an expression, found none",
        "spec.items: list_map: key 'name': expected a required field or one with a default, found an optional field",
        "spec.items: list_map: expected a JSON field of the items (name, parts), found 'title'",
        "spec.items: list_map: key 'parts': expected a string, number or boolean, found array",
        "spec.multiline: rule: expected a message for an expression of several lines, which the server would not show",
        "scale replicas: expected .spec.replicas to be a declared field of type integer, found a field of type string",
        "scale status_replicas: expected .status.replicas to be a declared field of type integer, found no such field",
        "scale label_selector: expected a path that begins with .status. or .spec., found 'status.selector'",
        "selectable field .spec.items: expected a declared string, integer or boolean, found a field of type array",
        "selectable field .spec.tier: expected a declared string, integer or boolean, found no such field",
    )


def version_of(kind: str = "Thing", version: str = "v1beta1", **options: Any) -> type:
    @dataclass
    class Version:
        metadata: Metadata
        spec: Item = field(default_factory=Item)

    return custom_resource(group=options.pop("group", "a.b"), version=version, kind=kind, **options)(Version)


def test_versions_of_another_kind_and_twice_the_same_are_refused_together() -> None:
    @dataclass
    class Thing:
        metadata: Metadata
        spec: Item = field(default_factory=Item)

    others = (
        version_of(kind="Other"),
        version_of(group="c.d", version="v2"),
        version_of(version="v3", scope="Cluster"),
        version_of(version="v1"),
        version_of(version="v4", also_serves=(version_of(version="v5"),)),
        Item,
    )

    assert mistakes_of(lambda: custom_resource(group="a.b", version="v1", also_serves=others)(Thing)) == (
        "also_serves: version_of.<locals>.Version has kind 'Other', expected 'Thing' as "
        "test_versions_of_another_kind_and_twice_the_same_are_refused_together.<locals>.Thing",
        "also_serves: version_of.<locals>.Version has plural 'others', expected 'things' as "
        "test_versions_of_another_kind_and_twice_the_same_are_refused_together.<locals>.Thing",
        "also_serves: version_of.<locals>.Version has group 'c.d', expected 'a.b' as "
        "test_versions_of_another_kind_and_twice_the_same_are_refused_together.<locals>.Thing",
        "also_serves: version_of.<locals>.Version has scope 'Cluster', expected 'Namespaced' as "
        "test_versions_of_another_kind_and_twice_the_same_are_refused_together.<locals>.Thing",
        "also_serves: version_of.<locals>.Version is v1 as well as "
        "test_versions_of_another_kind_and_twice_the_same_are_refused_together.<locals>.Thing; "
        "expected one class a version",
        "also_serves: version_of.<locals>.Version has versions itself; list them all on the stored one",
        "also_serves: Item has no @custom_resource(...)",
    )


def test_the_manifest_is_the_text_in_the_tree_on_every_python() -> None:
    """To change it on purpose: write what `crd_manifest` gives into the file."""
    stored = Path(__file__).with_name("fleet.json").read_text(encoding="utf-8")

    assert json.dumps(crd_manifest(Fleet), indent=1) + "\n" == stored


MODULES_AND_CLASSES = ["webapps:WebApp", "models:Mixed", "scaling:Fleet"]
MANIFESTS = """
import json, sys
from importlib import import_module
from konverge.crd import crd_manifest

for module, name in (argument.split(":") for argument in sys.argv[1:]):
    print(json.dumps(crd_manifest(getattr(import_module(f"tests.crd.{module}"), name))))
"""


@cache
def manifests(hash_seed: str) -> dict[str, str]:
    """The text of each manifest in a process with that seed."""
    printed = subprocess.run(
        [sys.executable, "-c", MANIFESTS, *MODULES_AND_CLASSES],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return dict(zip(MODULES_AND_CLASSES, printed.splitlines(), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("module_and_class", MODULES_AND_CLASSES)
def test_the_manifest_is_the_same_text_whatever_the_hash_seed(module_and_class: str) -> None:
    texts = {manifests(hash_seed)[module_and_class] for hash_seed in ("0", "1", "424242")}

    assert len(texts) == 1
    assert json.loads(texts.pop())["kind"] == "CustomResourceDefinition"


def test_a_typo_in_a_rule_is_found_where_the_rule_stands() -> None:
    @dataclass
    class Status:
        ready: int = 0

    @dataclass
    class Misspelt:
        metadata: Metadata
        spec: Annotated[Item, rules(CelRule("self.title != ''"))] = field(default_factory=Item)
        status: Annotated[Status, rules(CelRule("size(self.conditions) < 9"), CelRule("self.raedy == 0"))] | None = None

    declare = custom_resource(
        group="a.b",
        version="v1",
        rules=(
            CelRule("self.metadata.name == self.spec.name"),
            CelRule("self.metadata.labels == {}"),
            CelRule("self.spce == 1"),
        ),
    )

    assert mistakes_of(lambda: declare(Misspelt)) == (
        "rule 'self.metadata.labels == {}': expected a declared field (one of name, generateName), found 'labels'",
        "rule 'self.spce == 1': expected a declared field "
        "(one of metadata, spec, status, apiVersion, kind), found 'spce'",
        "spec: rule \"self.title != ''\": expected a declared field (one of name, parts), found 'title'",
        "status: rule 'self.raedy == 0': expected a declared field (one of ready, conditions), found 'raedy'",
    )

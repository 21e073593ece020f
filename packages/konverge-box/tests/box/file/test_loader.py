"""The loaded box: the values of the file, defaults, and short forms expanded to Kubernetes objects."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from konverge import primitives
from konverge.kube import GroupVersionKind
from konverge_box._internal.file import KINDS, ConditionSpec, complete_schema, find_child_kind, load_box
from konverge_box.expressions import compile_check, compile_condition
from tests.box.file.sample_boxes import HEADER, load_custom_resource, load_resource

BOXES = sorted((Path(__file__).parents[5] / "examples" / "boxes").glob("*/box.yaml"))
NAME = "{{ metadata.name }}"
LABELS = {"app.kubernetes.io/name": NAME}


def container(**more: Any) -> dict[str, Any]:
    return {"containers": [{**more, "name": "main"}]}


def test_a_deployment_of_three_words_is_one_that_a_server_takes() -> None:
    found = load_resource("onReconcile: {deployments: [{image: nginx, replicas: '{{ spec.replicas }}', port: 80}]}")

    assert found.gvk == GroupVersionKind("apps", "v1", "Deployment")
    assert found.path == "spec.crds.web.onReconcile.deployments[0]"
    assert found.object == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {
            "replicas": "{{ spec.replicas }}",
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": container(image="nginx", ports=[{"containerPort": 80}]),
            },
        },
    }


SHORT = {
    "services: [{port: 80, targetPort: http}]": {
        "spec": {"ports": [{"port": 80, "targetPort": "http"}], "selector": LABELS}
    },
    "services: [{type: ExternalName, externalName: a.b}]": {"spec": {"type": "ExternalName", "externalName": "a.b"}},
    "ingresses: [{host: a.b, tls: [{hosts: [a.b]}]}]": {
        "spec": {
            "tls": [{"hosts": ["a.b"]}],
            "rules": [
                {
                    "host": "a.b",
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": NAME, "port": {"number": 80}}},
                            }
                        ]
                    },
                }
            ],
        }
    },
    "persistentVolumeClaims: [{storage: 1Gi, accessModes: [ReadWriteOnce]}]": {
        "spec": {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    },
    "horizontalPodAutoscalers: [{maxReplicas: 5, targetCPUUtilizationPercentage: 70}]": {
        "spec": {
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME},
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}},
                }
            ],
        }
    },
    "podDisruptionBudgets: [{maxUnavailable: 1}]": {"spec": {"maxUnavailable": 1, "selector": {"matchLabels": LABELS}}},
    "secrets: [{stringData: {a: b}}]": {"stringData": {"a": "b"}},
    "custom: [{apiVersion: a.dev/v1, kind: Thing, spec: {x: 1}}]": {"spec": {"x": 1}},
    "cronJobs: [{image: a, schedule: '0 * * * *', backoffLimit: 2}]": {
        "spec": {
            "schedule": "0 * * * *",
            "jobTemplate": {
                "spec": {
                    "backoffLimit": 2,
                    "template": {
                        "metadata": {"labels": LABELS},
                        "spec": {**container(image="a"), "restartPolicy": "Never"},
                    },
                }
            },
        }
    },
}


@pytest.mark.parametrize("text", SHORT)
def test_short_forms_are_written_out(text: str) -> None:
    found = load_resource(f"onReconcile: {{{text}}}").object

    assert {name: value for name, value in found.items() if name in ("spec", "data", "stringData")} == SHORT[text]


def test_a_manifest_is_merged_over_the_short_forms_container_by_container() -> None:
    found = load_resource(
        """
        onReconcile:
          deployments:
            - image: nginx
              env: {A: "1"}
              manifest:
                metadata: {labels: {tier: web}}
                spec:
                  template:
                    metadata: {labels: {tier: web}}
                    spec:
                      containers:
                        - {name: proxy, image: envoy}
                        - {name: main, workingDir: /srv}
        """
    ).object

    template = found["spec"]["template"]
    assert found["metadata"] == {"name": NAME, "labels": {"tier": "web"}}
    assert template["metadata"]["labels"] == {**LABELS, "tier": "web"}
    assert template["spec"]["containers"] == [
        {"image": "nginx", "env": [{"name": "A", "value": "1"}], "name": "main", "workingDir": "/srv"},
        {"name": "proxy", "image": "envoy"},
    ]


def test_a_group_makes_its_kinds_in_one_order_and_the_resources_of_a_kind_in_that_of_the_file() -> None:
    (group,) = load_custom_resource(
        "onReconcile: {services: [{name: c, port: 1}], configMaps: [{name: b}, {name: a}], namespaces: [{name: d}]}"
    ).on_reconcile

    assert [each.object["metadata"]["name"] for each in group.resources] == ["d", "b", "a", "c"]


def test_several_groups_stay_in_their_order() -> None:
    groups = load_custom_resource(
        "onReconcile: [{name: late, pods: [{image: a}]}, {when: [{field: spec.a}], secrets: [{}]}]"
    ).on_reconcile

    assert [(group.name, group.when, len(group.resources)) for group in groups] == [
        ("late", (), 1),
        (None, (ConditionSpec(field="spec.a"),), 1),
    ]


def test_any_of_is_another_name_for_or() -> None:
    alternatives = [
        load_custom_resource(f"validation: [{{field: spec.a, {word}: [{{field: spec.b, exists: true}}]}}]")
        .validation[0]
        .alternatives
        for word in ("or", "anyOf")
    ]

    assert alternatives[0] == alternatives[1] == (ConditionSpec(field="spec.b", exists=True),)


def test_null_is_a_value_and_what_is_not_said_is_none() -> None:
    said, unsaid = load_custom_resource(
        "mutation: [{field: spec.a, default: null}, {field: spec.a, override: 1}]"
    ).mutation

    assert (said.default, said.override) == (None, msgspec.UNSET)
    assert unsaid.default is msgspec.UNSET


def test_words_of_yaml_1_1_and_times_are_texts() -> None:
    (found,) = load_custom_resource(
        "mutation: [{field: spec.a, default: [yes, off, 12:30, 2026-01-01, 0o17, 1e3, ~]}]"
    ).mutation

    assert found.default == ["yes", "off", "12:30", "2026-01-01", 15, 1000.0, None]


def test_merge_keys_and_anchors_are_written_out() -> None:
    found = load_custom_resource(
        "onReconcile: {configMaps: [&a {name: a, labels: {x: y}}, {<<: *a, name: b}]}"
    ).on_reconcile[0]

    assert [each.object["metadata"] for each in found.resources] == [
        {"name": "a", "labels": {"x": "y"}},
        {"name": "b", "labels": {"x": "y"}},
    ]


@pytest.mark.parametrize("file", BOXES, ids=lambda file: file.parent.name)
def test_the_examples_load(file: Path) -> None:
    box = load_box(file.read_bytes(), file=str(file))

    assert box.metadata.name == file.parent.name


def test_loading_the_same_text_twice_gives_equal_boxes() -> None:
    text = BOXES[0].read_text()

    assert load_box(text) == load_box(text)


def test_what_is_loaded_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        load_box(HEADER).kind = "Box"  # type: ignore[misc, assignment]


def test_every_kind_that_has_a_primitive_can_be_declared() -> None:
    known = {kind.gvk for kind in KINDS.values()}
    own = [getattr(getattr(primitives, name), "gvk", None) for name in primitives.__all__]

    assert {gvk for gvk in own if isinstance(gvk, GroupVersionKind)} <= known


@pytest.mark.parametrize("key", [key for key, kind in KINDS.items() if kind.gvk is not None])
def test_the_short_forms_of_a_kind_are_fields_of_its_objects(key: str) -> None:
    manifests = importlib.import_module("konverge_box._internal.file.manifest_validation")
    schemas = importlib.import_module("konverge._internal.apply.builtin_schemas")
    kind = KINDS[key]
    assert kind.gvk is not None
    schema = schemas.find_builtin_schema(kind.gvk)

    lost = [name for name, path in kind.short.items() if schema and manifests.find_schema(schema, path) is None]

    assert lost == []


def test_children_have_the_kind_as_kubernetes_calls_it_and_its_plural() -> None:
    assert [kind.singular for kind in KINDS.values()][:3] == ["namespace", "customResourceDefinition", "resourceQuota"]
    assert find_child_kind("httpRoute") is find_child_kind("httpRoutes") is KINDS["httpRoutes"]
    assert find_child_kind("pods") is KINDS["pods"]


def test_a_schema_gets_the_types_that_it_implies() -> None:
    assert complete_schema({"properties": {"a": {"items": {"additionalProperties": {"type": "string"}}}}}) == {
        "type": "object",
        "properties": {
            "a": {
                "type": "array",
                "items": {"type": "object", "additionalProperties": {"type": "string"}},
            }
        },
    }


def test_the_whole_vocabulary_loads() -> None:
    text = (Path(__file__).parent / "everything.yaml").read_text()

    box = load_box(text)

    database = box.spec.crds["database"]
    assert list(box.spec.crds) == ["database", "app"]
    assert box.spec.crds["app"].depends_on == {"database": "healthy"}
    assert database.on_delete is not None
    assert [group.name for group in database.on_delete.groups] == ["backup", "pods"]


def test_a_rule_goes_back_to_what_the_file_says() -> None:
    said = {"field": "spec.a", "notIn": ["a"], "when": [{"cron": "0 9 * * *", "duration": "8h"}, {"field": "spec.b"}]}

    (rule,) = load_custom_resource(f"validation: [{said}]").validation

    assert rule.to_mapping() == said


def test_every_condition_of_the_vocabulary_compiles_as_it_was_declared() -> None:
    box = load_box((Path(__file__).parent / "everything.yaml").read_text())
    rules = box.spec.crds["database"].validation
    conditions = [each for rule in rules for each in (*rule.when, *rule.alternatives)]

    checks = [compile_check(rule.to_mapping(), where="rule").name for rule in rules]
    compiled = [compile_condition(each.to_mapping(), where="condition") for each in conditions]

    assert len(set(checks)) == len(rules) > 15
    assert len(compiled) == 4

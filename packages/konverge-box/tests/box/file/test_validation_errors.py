"""Every error of a file is reported with its position, the expected and found values, and the nearest known word."""

from __future__ import annotations

import pytest

from konverge_box._internal.file import BoxFileError, find_file_errors, load_box
from tests.box.file.sample_boxes import HEADER, build_box_text, find_errors

FILES = {
    "empty": ("", "f:1:1: expected a document of the kind OperatorBox, found an empty file"),
    "a list": ("- 1", "f:1:1: expected a mapping, found a list"),
    "two boxes": (f"{HEADER}---\n{HEADER}", "f:9:1: expected one box in a file, found a second document"),
    "another kind": (HEADER.replace("OperatorBox", "Operatorbox"), "f:2:1: kind: expected OperatorBox, found"),
    "no name": (HEADER.replace("name: test", ""), "f:3:1: metadata: name is missing"),
    "unknown field": (HEADER + "  crd: {}\n", "f:8:3: spec.crd: unknown field; did you mean crds?"),
    "no custom resource": (HEADER.partition("  crds")[0] + "  crds: {}", "f:5:3: spec.crds: expected at least one"),
    "no identifier": (HEADER.replace("web:", "my-web:"), "f:6:5: spec.crds.my-web: expected a name for expressions"),
    "imports": (
        HEADER + "  imports: [a]\n",
        "f:8:3: spec.imports: not resolved yet; run konverge box lock f to fetch",
    ),
    "no network": (HEADER + "  allowedNetworks: [10.0.0.1/8]\n", "f:8:21: spec.allowedNetworks[0]: invalid network"),
    "twice": (HEADER + "  crds: {}\n", "f:8:3: spec.crds: duplicate field, first on line 5; remove one"),
    "no YAML": ("a: [", "f:2:1: invalid YAML: while parsing a flow node"),
    "a number as name": ("1: 2", "f:1:1: expected a field name, found '1'; quote it"),
    "octal?": ("a: 0644", "f:1:1: a: found a number with a leading zero; write 0o for an octal number"),
    "infinite": ("a: .inf", "f:1:1: a: expected a finite number"),
    "a tag": ("a: !!binary aGk=", "f:1:1: a: expected a plain value, found the tag"),
    "itself": ("a: &a [*a]", "nested deeper than 64 levels"),
    "merged into itself": ("a: &a {<<: *a}", "more than 100,000 values after the expansion of its aliases"),
}

STEPS = {
    "a number for a list": ("finalizers: 1", "8:7: finalizers: expected a list, found a number"),
    "unknown step": ("onReconcil: {}", "8:7: onReconcil: unknown field; did you mean onReconcile?"),
    "another system's word": ("observe: []", "8:7: observe: unknown field; did you mean cross?"),
    "a word for a step": ("validations: []", "8:7: validations: unknown field; did you mean validation?"),
    "dependsOn: unknown": (
        "dependsOn: {dbs: healthy}",
        "8:19: dependsOn.dbs: expected a custom resource of this file, found dbs; did you mean db?",
    ),
    "dependsOn how": (
        "dependsOn: {db: helthy}",
        "8:19: dependsOn.db: expected healthy or started, found 'helthy'; did you mean healthy?",
    ),
    "too many workers": (
        "reconcile: {workers: 500}",
        "8:19: reconcile.workers: expected a whole number from 1 up to 100, found 500",
    ),
    "no duration": (
        "reconcile: {resync: 5 min}",
        "8:19: reconcile.resync: expected a duration such as 90s, 5m, 12h or 90d, found '5 min'",
    ),
    "normalize: a type for nothing": (
        "normalize: {spec: {size: '1'}, types: {sizes: integer}}",
        "8:46: normalize.types.sizes: expected a field of normalize.spec, found sizes; did you mean size?",
    ),
    "mutation: default and override": (
        "mutation: [{field: spec.a, default: 1, override: 2}]",
        "8:18: mutation[0]: expected default or override, found both",
    ),
    "mutation: neither": (
        "mutation: [{field: spec.a}]",
        "8:18: mutation[0]: expected default or override, found neither",
    ),
    "mutation: another generation's type": (
        "mutation: [{field: spec.a, default: 1, valueType: int}]",
        "8:46: mutation[0].valueType: unknown field; did you mean type?",
    ),
    "normalize: from where a path is counted": (
        "normalize: {spec: {spec.size: '1'}}",
        "8:26: normalize.spec['spec.size']: expected a path relative to spec; write size",
    ),
    "mutation: a read-only field": (
        "mutation: [{field: metadata.name, default: a}]",
        "8:19: mutation[0].field: expected a field of spec, metadata.labels or metadata.annotations",
    ),
    "mutation: no path": (
        "mutation: [{field: spec.a b, default: a}]",
        "8:19: mutation[0].field: expected a field of spec, metadata.labels or metadata.annotations",
    ),
    "validation: what is unique of an expression": (
        "validation: [{field: '{{ spec.a }}', unique: true}]",
        "8:21: validation[0].field: expected a path for unique, found an expression",
    ),
    "status: from where a path is counted": (
        "status: {fields: [{path: status.a, value: 1}]}",
        "8:26: status.fields[0].path: expected a path relative to status; write a",
    ),
    "two groups of one name": (
        "onReconcile: [{name: a}, {name: a}]",
        "8:33: onReconcile[1].name: 'a' is already the name of another group",
    ),
    "validation: action": (
        "validation: [{field: spec.a, action: denied}]",
        "8:36: validation[0].action: expected deny or warn, found 'denied'; did you mean deny?",
    ),
    "validation: operator": (
        "validation: [{field: spec.a, gte: 3}]",
        "8:36: validation[0].gte: unknown field; did you mean min?",
    ),
    "validation: bound": (
        "validation: [{field: spec.a, min: three}]",
        "8:36: validation[0].min: expected a number or a quantity, found 'three'",
    ),
    "validation: two operators": (
        "validation: [{field: spec.a, min: 3, max: 4}]",
        "8:20: validation[0]: expected one operator, found max and min; write one condition for each",
    ),
    "validation: range": (
        "validation: [{field: spec.a, between: [1, 2, 3]}]",
        "8:36: validation[0].between: expected two numbers",
    ),
    "validation: pattern": ("validation: [{field: spec.a, regex: '('}]", "8:36: validation[0].regex: "),
    "when: no list": (
        "validation: [{field: spec.a, when: {field: spec.b}}]",
        "8:36: validation[0].when: expected a list, found a mapping",
    ),
    "when: about nothing": (
        "validation: [{field: spec.a, when: [{equals: 1}]}]",
        "8:43: validation[0].when[0]: expected field together with equals",
    ),
    "when: a day": (
        "validation: [{field: spec.a, when: [{dayOfWeek: [monday]}]}]",
        "8:56: validation[0].when[0].dayOfWeek[0]: expected fri, mon, sat, sun, thu, tue or wed, found 'monday'",
    ),
    "when: a time": (
        "validation: [{field: spec.a, when: [{time: {after: 9:00, before: '17:00'}}]}]",
        "8:51: validation[0].when[0].time.after: expected a time of day such as 09:00, found '9:00'",
    ),
    "when: a schedule": (
        "validation: [{field: spec.a, when: [{cron: hourly}]}]",
        "8:44: validation[0].when[0].cron: ",
    ),
    "when: a text": (
        "validation: [{field: spec.a, when: [spec.b]}]",
        "8:43: validation[0].when[0]: expected a mapping, found a string",
    ),
    "or and anyOf": (
        "validation: [{field: spec.a, or: [], anyOf: []}]",
        "8:44: validation[0].anyOf: the same list as or; put all conditions into one of them",
    ),
    "cross: unknown": (
        "cross: [{crd: dbs, selector: {name: a}}]",
        "8:16: cross[0].crd: expected a custom resource of this file, found dbs; did you mean db?",
    ),
    "cross: of two": (
        "cross: [{crd: db, kind: Pod, selector: {name: a}}]",
        "8:15: cross[0]: expected crd, or apiVersion and kind; found both",
    ),
    "cross: without as": (
        "cross: [{apiVersion: v1, kind: Pod, selector: {name: a}}]",
        "8:15: cross[0]: expected apiVersion, kind and as",
    ),
    "cross: which one": (
        "cross: [{crd: db}]",
        "8:15: cross[0]: expected a selector with either name or matchLabels, found neither",
    ),
    "cross: a name and labels": (
        "cross: [{crd: db, selector: {name: a, matchLabels: {a: b}}}]",
        "8:25: cross[0].selector: expected a selector with either name or matchLabels, found both",
    ),
    "cross: one name for two": (
        "cross: [{crd: db, selector: {name: a}}, {crd: db, selector: {name: b}}]",
        "8:47: cross[1]: 'db' is already the name of another entry",
    ),
    "external: name": (
        "external: [{name: my-call, url: http://a}]",
        "8:19: external[0].name: expected a name for expressions: letters and digits, starting with a lowercase "
        "letter, found 'my-call'",
    ),
    "external: protocol": (
        "external: [{name: a, url: b, protocol: htp}]",
        "8:36: external[0].protocol: expected http, postgres, prometheus or redis, found 'htp'; did you mean http?",
    ),
    "external: status": (
        "external: [{name: a, url: b, expectedStatus: [20]}]",
        "8:53: external[0].expectedStatus[0]: expected a whole number from 100 up to 599, found 20",
    ),
    "kind": ("onReconcile: {deployment: []}", "8:21: onReconcile.deployment: unknown field; did you mean deployments?"),
    "a kind's abbreviation": ("onReconcile: {hpa: []}", "unknown field; did you mean horizontalPodAutoscalers?"),
    "a kind is no list": (
        "onReconcile: {services: {port: 80}}",
        "8:21: onReconcile.services: expected a list, found a mapping",
    ),
    "a short form": (
        "onReconcile: {deployments: [{image: a, replica: 2}]}",
        "8:46: onReconcile.deployments[0].replica: unknown field; did you mean replicas?",
    ),
    "a short form's type": (
        "onReconcile: {deployments: [{image: a, replicas: two}]}",
        "8:46: onReconcile.deployments[0].replicas: expected a whole number, found a string",
    ),
    "inside a short form": (
        "onReconcile: {deployments: [{image: a, resources: {limit: {cpu: 1}}}]}",
        "8:58: onReconcile.deployments[0].resources.limit: unknown field of ResourceRequirements; did you mean limits?",
    ),
    "inside a manifest": (
        "onReconcile: {deployments: [{image: a, manifest: {spec: {paussed: true}}}]}",
        "8:64: onReconcile.deployments[0].manifest.spec.paussed: unknown field of DeploymentSpec; did you mean paused?",
    ),
    "a label that is a number": (
        "onReconcile: {deployments: [{image: a, manifest: {metadata: {labels: {a: 1}}}}]}",
        "manifest.metadata.labels.a: expected a string, found a number; quote it",
    ),
    "a variable that is a number": (
        "onReconcile: {deployments: [{image: a, env: {A: 1}}]}",
        "onReconcile.deployments[0].env.A: expected a string, found a number; quote it",
    ),
    "another kind's manifest": (
        "onReconcile: {deployments: [{image: a, manifest: {kind: Pod}}]}",
        "manifest.kind: expected Deployment; put other kinds under custom",
    ),
    "two names": (
        "onReconcile: {configMaps: [{name: a, manifest: {metadata: {name: b}}}]}",
        "manifest.metadata.name: the name is given twice; remove it here or from the resource",
    ),
    "what the server needs": (
        "onReconcile: {cronJobs: [{image: a}]}",
        "8:32: onReconcile.cronJobs[0]: spec.schedule is missing in the CronJob of this entry",
    ),
    "no image": (
        "onReconcile: {deployments: [{replicas: 1}]}",
        "8:35: onReconcile.deployments[0]: image is missing: the container main has none",
    ),
    "a namespace of what has none": (
        "onReconcile: {namespaces: [{name: a, namespace: b}]}",
        "8:44: onReconcile.namespaces[0].namespace: namespaces are cluster-scoped; remove the namespace",
    ),
    "custom without a kind": (
        "onReconcile: {custom: [{name: a}]}",
        "8:30: onReconcile.custom[0]: expected apiVersion and kind of the object",
    ),
    "plain text as data of a Secret": (
        "onReconcile: {secrets: [{data: {password: hunter2!}}]}",
        "8:39: onReconcile.secrets[0].data.password: expected base64; put plain text in stringData",
    ),
    "once where values are kept": (
        "onReconcile: {secrets: [{once: true}]}",
        "8:32: onReconcile.secrets[0].once: valid only in onCreate without reconcile: true",
    ),
    "reconcile twice": (
        "onReconcile: {configMaps: [{reconcile: true}]}",
        "8:35: onReconcile.configMaps[0].reconcile: valid only in onCreate",
    ),
    "one object twice": (
        "onReconcile: {configMaps: [{data: {}}, {data: {}}]}",
        "8:46: onReconcile.configMaps[1]: the same object as configMaps[0]; give one a name or a condition",
    ),
    "onDelete: a kind": (
        "onDelete: {groups: [{delete: {pod: [{name: a}]}}]}",
        "8:37: onDelete.groups[0].delete.pod: unknown kind; did you mean pods?",
    ),
    "onDelete: a job": (
        "onDelete: {groups: [{run: [{name: a}]}]}",
        "8:34: onDelete.groups[0].run[0]: image is missing: the container main has none",
    ),
    "status: a path": ("status: {fields: [{path: '{{ spec.a }}', value: 1}]}", "expected a path of field names"),
    "status: no value": ("status: {fields: [{path: a}]}", "8:25: status.fields[0]: value is missing"),
    "no expression": (
        "status: {fields: [{path: a, value: '{{ spec. }}'}]}",
        "8:35: status.fields[0].value: invalid expression:",
    ),
}

SCHEMAS = {
    "{propertys: {}}": "spec.propertys: unknown schema keyword; did you mean properties?",
    "{properties: {a: {type: int}}}": "spec.properties.a.type: unknown schema type 'int'; did you mean integer?",
    "{properties: {a: {}}}": "spec.properties.a: type is missing; known: array, boolean, integer, number",
    "{properties: {a: {items: {typ: string}}}}": "spec.properties.a.items.typ: unknown schema keyword; did you mean",
    "{properties: {a: string}}": "spec.properties.a: expected a schema such as {type: string}",
    "{properties: {size: {type: string}}, required: [sise]}": "spec.required[0]: no such property: 'sise'; did you",
    "{type: string, maxLength: ten}": "spec.maxLength: expected a whole number",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_with_a_mistake_says_where_and_what(schema: str) -> None:
    resource = f"{{apiVersion: a.dev/v1, kind: A, schema: {{spec: {schema}}}}}"
    text = HEADER.replace("{apiVersion: test.konverge.dev/v1, kind: Web}", resource)

    found = [str(each).partition("resource.schema.")[2] for each in find_file_errors(text)]

    assert any(each.startswith(SCHEMAS[schema]) for each in found), found


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_a_mistake_says_where_and_what(name: str) -> None:
    text, expected = FILES[name]

    assert any(expected in str(found) for found in find_file_errors(text, file="f")), find_file_errors(text, file="f")


@pytest.mark.parametrize("name", STEPS)
def test_a_step_with_a_mistake_says_where_and_what(name: str) -> None:
    steps, expected = STEPS[name]

    (found,) = find_errors(steps, second="finalizers: []")

    assert expected in found


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    steps = """
        reconcile: {worker: 3}
        validation: [{field: spec.a, action: no}]
        onReconcile: {pod: []}
        status: {fields: [{path: a, value: '{{ spec. }}', when: [{field: children.pod}]}]}
    """

    assert [each.partition(":")[0] for each in find_errors(steps)] == ["8", "9", "10", "11", "11"]


def test_loading_raises_one_error_with_all_mistakes() -> None:
    with pytest.raises(BoxFileError, match=r"(?s)f:8:7: .*\nf:9:7: ") as caught:
        load_box(build_box_text("onReconcil: {}\nfinalizer: []"), file="f")

    assert [error.line for error in caught.value.errors] == [8, 9]


@pytest.mark.parametrize(
    "steps",
    [
        "onReconcile: {secrets: [{stringData: {a: [hunter2]}}]}",
        "onReconcile: {secrets: [{stringData: {a: 0123456}}]}",
        "onReconcile: {secrets: [{data: {a: hunter2!}}]}",
        "onReconcile: {secrets: [{manifest: {stringData: {a: {b: hunter2}}}}]}",
    ],
)
def test_no_mistake_shows_a_secret_value(steps: str) -> None:
    found = find_errors(steps)

    assert len(found) == 1
    assert "hunter2" not in found[0]
    assert "123456" not in found[0]


def test_a_message_obeys_nobody_who_wrote_the_file() -> None:
    steps = 'validation: [{field: spec.a, regex: "[\\n::error file=x::done\\e[31m", message: no}]'
    (error,) = find_file_errors(build_box_text(steps), file="f")

    assert str(error).isprintable()
    assert r"[\n::error file=x::done\x1b[31m" in str(error)
    assert "\n" in error.message  # as data it is what it is

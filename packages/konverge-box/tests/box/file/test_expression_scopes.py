"""The names that each step may read: declared ones, and the results of earlier steps."""

from __future__ import annotations

import pytest

from konverge_box._internal.file import find_file_errors
from konverge_box._internal.file.expression_scopes import STEPS
from tests.box.file.sample_boxes import build_box_text, find_errors

# A read of a name in each step, and the results that steps can set.
READERS = {
    "normalize": "normalize: {{spec: {{a: '{{{{ {name} }}}}'}}}}",
    "mutation": "mutation: [{{field: spec.a, default: '{{{{ {name} }}}}'}}]",
    "validation": "validation: [{{field: '{{{{ {name} }}}}', message: no}}]",
    "cross": "cross: [{{crd: db, as: a, selector: {{name: '{{{{ {name} }}}}'}}}}, "
    "{{crd: db, as: db2, selector: {{name: a}}}}]",
    "external": "external: [{{name: call, url: '{{{{ {name} }}}}'}}, {{name: call2, url: a}}]",
    "onCreate": "onCreate: {{configMaps: [{{data: {{a: '{{{{ {name} }}}}'}}}}]}}",
    "onReconcile": "onReconcile: {{configMaps: [{{when: [{{field: {name}, exists: true}}]}}]}}",
    "providers": "providers: {{aws: [{{kind: Bucket, name: '{{{{ {name} }}}}'}}]}}",
    "status": "status: {{fields: [{{path: a, value: '{{{{ {name} }}}}'}}]}}",
    "onDelete": "onDelete: {{groups: [{{delete: {{pods: [{{name: '{{{{ {name} }}}}'}}]}}}}]}}",
}
RESULTS = {
    "cross.db2": "cross: [{crd: db, as: db2, selector: {name: a}}]",
    "external.call2.body": "external: [{name: call2, url: a}]",
    "providers.aws": "providers: {aws: []}",
    "children.configMap.data": "onReconcile: {configMaps: [{name: b}]}",
}


def may_read(step: str, result: str) -> bool:
    return result.partition(".")[0] in STEPS[step]


def read_in(step: str, name: str) -> str:
    """Return the steps of a box in which the step reads the name and every result is set."""
    made = [text for text in RESULTS.values() if text.partition(":")[0] != step]
    return "\n".join([READERS[step].format(name=name), *made])


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("step", STEPS)
def test_a_step_reads_the_results_of_earlier_steps_and_of_no_later_one(step: str, result: str) -> None:
    found = [
        each for each in find_errors(read_in(step, result), second="finalizers: []") if " is not available here" in each
    ]

    assert bool(found) is not may_read(step, result), found


@pytest.mark.parametrize("step", STEPS)
def test_every_step_reads_the_custom_resource_itself(step: str) -> None:
    assert find_errors(read_in(step, ".spec.a"), second="finalizers: []") == []


def test_the_steps_stand_in_the_order_in_which_they_run() -> None:
    first, *rest = READERS
    assert [first, *rest] == list(STEPS)


CASES = {
    "a step's later result": (
        "cross: [{crd: db, selector: {name: '{{ external.a.body }}'}}]\nexternal: [{name: a, url: b}]",
        "8:36: cross[0].selector.name: external.a.body is not available here: external sets it after cross",
    ),
    "a deletion": (
        "onDelete: {when: [{field: cross.db.found}]}\ncross: [{crd: db, selector: {name: a}}]",
        "cross.db.found is not available here: a deletion does not run the step that sets it",
    ),
    "an undeclared entry of cross": (
        "cross: [{crd: db, selector: {name: a}}]\nonReconcile: {configMaps: [{name: '{{ cross.dbs.name }}'}]}",
        "9:35: onReconcile.configMaps[0].name: cross.dbs is not declared; did you mean db?",
    ),
    "an undeclared entry of external": (
        "onReconcile: {configMaps: [{name: '{{ external.a.body }}'}]}",
        "external.a is not declared; external has no entries",
    ),
    "a field of an observation": (
        "cross: [{crd: db, selector: {name: a}}]\nonReconcile: {configMaps: [{name: '{{ cross.db.statuss }}'}]}",
        "cross.db.statuss: unknown field; did you mean status?",
    ),
    "data of what has none": (
        "cross: [{crd: db, selector: {name: a}}]\nonReconcile: {configMaps: [{name: '{{ cross.db.data.a }}'}]}",
        "cross.db.data: unknown field",
    ),
    "all observations while they are made": (
        "cross: [{crd: db, as: a, selector: {name: x}}, {crd: db, selector: {name: '{{ cross[spec.a].name }}'}}]",
        "cross[1].selector.name: cross is incomplete here; read one entry of it: cross.<name>",
    ),
    "a name": (
        "onReconcile: {configMaps: [{name: '{{ sepc.a }}'}]}",
        "unknown name: sepc; did you mean spec?",
    ),
    "an item outside of a loop": (
        "onReconcile: {configMaps: [{name: '{{ item }}'}]}",
        "item is available only in an entry with forEach",
    ),
    "an item of another resource": (
        "onReconcile: {configMaps: [{name: '{{ zone }}', forEach: {field: spec.a, as: zone}}, {name: '{{ zone }}'}]}",
        "onReconcile.configMaps[1].name: unknown name: zone",
    ),
    "items of one name": (
        "onReconcile: {configMaps: [{name: a, forEach: {field: spec.a}}]}",
        "onReconcile.configMaps[0].name: each item makes an object with the same name; use item, index, key or value",
    ),
    "items of no name in a manifest": (
        "onReconcile: {configMaps: [{forEach: {field: spec.a}, manifest: {metadata: {name: a}}}]}",
        "onReconcile.configMaps[0]: each item makes an object with the same name",
    ),
    "loops of which one is not in the name": (
        "onReconcile: {configMaps: [{name: '{{ e }}', forEach: [{field: spec.a, as: m}, {field: m.b, as: e}]}]}",
        "configMaps[0].name: the items of the loop m make objects with the same name; use m or key in the name",
    ),
    "the object itself outside of its readiness": (
        "onReconcile: {configMaps: [{data: {a: '{{ self.data.b }}'}}]}",
        "configMaps[0].data.a: unknown name: self",
    ),
    "a text as a condition": (
        "onReconcile: {configMaps: [{readyWhen: [self.data.b]}]}",
        "readyWhen[0]: expected a condition, or an expression such as {{ self.status.ready }}, found a string",
    ),
    "a readiness of a Job of a deletion": (
        "onDelete: {groups: [{run: [{name: a, image: b, readyWhen: [{field: spec.a}]}]}]}",
        "readyWhen: valid only in onCreate and onReconcile",
    ),
    "an item with the name of something else": (
        "onReconcile: {configMaps: [{name: '{{ item }}', forEach: {field: spec.a, as: children}}]}",
        "forEach.as: children has another meaning in expressions; use another name",
    ),
    "an item with the name of its key": (
        "onReconcile: {configMaps: [{forEach: {field: spec.a, as: key}}]}",
        "forEach.as: key has another meaning in expressions; use another name",
    ),
    "a list of no loops": (
        "onReconcile: {configMaps: [{forEach: []}]}",
        "onReconcile.configMaps[0].forEach: expected at least one loop, found an empty list",
    ),
    "two loops of one name": (
        "onReconcile: {configMaps: [{name: '{{ key }}', forEach: [{field: spec.a}, {field: spec.b}]}]}",
        "onReconcile.configMaps[0].forEach[1]: two loops have the name item; set as",
    ),
    "an item of an inner loop in an outer one": (
        "onReconcile: {configMaps: [{name: '{{ key }}', forEach: [{field: e.b, as: m}, {field: spec.a, as: e}]}]}",
        "onReconcile.configMaps[0].forEach[0].field: unknown name: e",
    ),
    "a key that depends on the position": (
        "onReconcile: {configMaps: [{name: '{{ key }}', forEach: {field: spec.a, key: '{{ index }}'}}]}",
        "forEach.key: index is available only in an entry with forEach",
    ),
    "a loop over no path": (
        "onReconcile: {configMaps: [{name: '{{ item }}', forEach: {field: spec a}}]}",
        "forEach.field: expected a path such as spec.hosts, or an expression, found 'spec a'",
    ),
    "a loop over an unknown name in an expression": (
        "onReconcile: {configMaps: [{name: '{{ item }}', forEach: {field: '{{ [x for x in sepc.a] }}'}}]}",
        "forEach.field: unknown name: sepc; did you mean spec?",
    ),
    "too many loops": (
        "onReconcile: {configMaps: [{forEach: ["
        + ", ".join(f"{{field: spec.a, as: a{number}}}" for number in range(5))
        + "]}]}",
        "onReconcile.configMaps[0].forEach: expected at most 4 loops, found 5",
    ),
    "a loop over what is not there": (
        "onReconcile: {configMaps: [{name: '{{ item }}', forEach: {field: external.a.items}}]}",
        "configMaps[0].forEach.field: external.a is not declared",
    ),
    "a child of no kind": (
        "status: {fields: [{path: a, value: '{{ children.deploymnt.status }}'}]}",
        "children.deploymnt: unknown kind; did you mean deployment?",
    ),
    "a child that is not made": (
        "status: {fields: [{path: a, value: '{{ children.deployment.status }}'}]}",
        "children.deployment: onCreate and onReconcile declare no deployments",
    ),
    "a condition's field": (
        "onReconcile: {configMaps: [{when: [{field: sepc.a}]}]}",
        "configMaps[0].when[0].field: unknown name: sepc; did you mean spec?",
    ),
    "a call that reads itself": (
        "external: [{name: a, url: '{{ external.a.body }}'}]",
        "8:7: external: these entries of external read each other: a -> a",
    ),
    "calls in a circle": (
        "external: [{name: a, url: '{{ external.b.body }}'}, {name: b, url: c, when: [{field: external.a.called}]}]",
        "external: these entries of external read each other: a -> b -> a",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_name_that_a_step_cannot_know_is_refused(name: str) -> None:
    steps, expected = CASES[name]

    (found,) = find_errors(steps, second="finalizers: []")

    assert expected in found


@pytest.mark.parametrize(
    "steps",
    [
        "onReconcile: {configMaps: [{name: '{{ zone }}-{{ index }}', forEach: {field: spec.a, as: zone}}]}",
        "onReconcile: {configMaps: [{name: '{{ item }}', data: {a: '{{ value }}'}, when: [{field: item.on}], "
        "forEach: {field: spec.a}}]}",
        "onReconcile: {configMaps: [{name: same, namespace: '{{ item }}', forEach: {field: spec.a}}]}",
        "external: [{name: b, url: '{{ external.a.body }}'}, {name: a, url: c}]",
        "cross: [{crd: db, as: b, selector: {name: '{{ cross.a.spec.next }}'}}, {crd: db, as: a, selector: {name: a}}]",
        "onReconcile: {configMaps: [{name: a, data: {a: '{% for each in spec.a %}{{ each }}{% endfor %}'}}]}",
    ],
)
def test_items_are_known_in_all_of_their_resource_and_results_whatever_their_order(steps: str) -> None:
    assert find_errors(steps, second="finalizers: []") == []


SPEC = "{properties: {size: {type: integer}, any: {type: object}}}"
SCHEMA = f"resource: {{apiVersion: a.dev/v1, kind: A, schema: {{spec: {SPEC}}}}}"


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ("spec.size", ""),
        ("spec.any.thing", ""),
        ("metadata.annotations", ""),
        ("spec.made", ""),
        ("spec.sise", "spec.sise is not in the schema; did you mean size?"),
        ("spec.size.unit", "spec.size.unit is not in the schema: its type is integer, which has no fields"),
    ],
)
def test_an_expression_reads_only_what_the_schema_has_or_normalize_makes(read: str, expected: str) -> None:
    steps = f"normalize: {{spec: {{made: 1}}}}\nonReconcile: {{configMaps: [{{data: {{a: '{{{{ {read} }}}}'}}}}]}}"
    text = build_box_text(steps).replace("resource: {apiVersion: test.konverge.dev/v1, kind: Web}", SCHEMA)

    found = " ".join(str(each) for each in find_file_errors(text))

    assert expected in found
    assert bool(expected) is bool(found)


WAITING = "dependsOn: {db: healthy}"
OBSERVING = "cross: [{crd: db, selector: {name: a}}]"


def test_custom_resources_that_wait_for_each_other_are_refused() -> None:
    (found,) = find_errors(WAITING, second="dependsOn: {web: started}")

    assert "dependsOn: these custom resources wait for each other: web -> db -> web" in found


def test_custom_resources_that_observe_each_other_are_refused() -> None:
    (found,) = find_errors(OBSERVING, second="cross: [{crd: web, selector: {name: a}}]")

    assert "cross: these custom resources observe each other" in found
    assert found.endswith("web -> db -> web")


def test_an_observation_that_wakes_nobody_makes_no_circle() -> None:
    assert find_errors(OBSERVING, second="cross: [{crd: web, wake: false, selector: {name: a}}]") == []


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_secrets_and_config_maps_are_observed_with_their_data(kind: str) -> None:
    observing = f"cross: [{{apiVersion: v1, kind: {kind}, as: found, selector: {{name: a}}}}]"

    assert (
        find_errors(f"{observing}\nonReconcile: {{configMaps: [{{data: {{a: '{{{{ cross.found.data.b }}}}'}}}}]}}")
        == []
    )


@pytest.mark.parametrize(("field", "expected"), [("'spec.{{ spec.size }}'", 0), ("spec.made", 1)])
def test_where_an_expression_names_the_field_that_is_set_any_may_be_read(field: str, expected: int) -> None:
    steps = f"mutation: [{{field: {field}, override: 1}}]\nvalidation: [{{field: spec.other}}]"
    text = build_box_text(steps).replace("resource: {apiVersion: test.konverge.dev/v1, kind: Web}", SCHEMA)

    assert len(find_file_errors(text)) == expected


def test_a_mutation_may_be_of_a_label_with_dots_and_a_slash() -> None:
    assert find_errors("mutation: [{field: metadata.labels.app.kubernetes.io/name, default: web}]") == []


def test_the_key_of_items_that_are_mappings_has_to_be_declared() -> None:
    def list_problems(loop: str) -> list[str]:
        schema = "{spec: {properties: {members: {items: {type: object, properties: {name: {type: string}}}}}}}"
        text = build_box_text(f"onReconcile: {{configMaps: [{{name: '{{{{ key }}}}', forEach: {loop}}}]}}")
        return [each.message for each in find_file_errors(text.replace("kind: Web}", f"kind: Web, schema: {schema}}}"))]

    assert list_problems("{field: spec.members}") == [
        "key is not available: the items are mappings; declare key in forEach"
    ]
    assert list_problems("{field: spec.members, key: '{{ item.name }}'}") == []
    assert list_problems("{field: '{{ map(spec.members, m, m.name) }}'}") == []


SERVICES = "{name: net, services: [{port: 80}]}"
ADDRESS = "configMaps: [{data: {ip: '{{ children.service.spec.clusterIP }}'}}]"


@pytest.mark.parametrize(
    "steps",
    [
        f"onReconcile: [{SERVICES}, {{name: web, {ADDRESS}}}]",
        f"onCreate: {SERVICES}\nonReconcile: {{{ADDRESS}}}",
        f"onReconcile: [{SERVICES}, {{name: more, services: [{{name: b, port: 1}}], {ADDRESS}}}]",
        f"onReconcile: [{SERVICES}, {{configMaps: [{{waitFor: [{{field: children.service.spec.clusterIP}}]}}]}}]",
        f'onReconcile: [{SERVICES}, {{configMaps: [{{readyWhen: ["{{{{ children.service.kind == self.kind }}}}"]}}]}}]',
        "onReconcile: {configMaps: [{data: {a: '{{ providers.aws.store.outputs.arn }}'}}]}\nproviders: {aws: []}",
    ],
)
def test_a_group_may_read_earlier_groups_and_providers_in_its_content(steps: str) -> None:
    assert find_errors(steps, second="finalizers: []") == []


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        (f"onReconcile: {{services: [{{port: 80}}], {ADDRESS}}}",
         "configMaps[0].data.ip: children.service: only this group declares services; declare them in an earlier "
         "group"),
        (f"onReconcile: [{{name: web, {ADDRESS}}}, {SERVICES}]",
         "onReconcile[0].configMaps[0].data.ip: children.service: only net, a later group, declares services; "
         "put it before web"),
        (f"onReconcile: [{{{ADDRESS}}}, {{services: [{{port: 80}}]}}]",
         "only onReconcile[1], a later group, declares services; put it before onReconcile[0]"),
        (f"onReconcile: [{{name: web, {ADDRESS}}}, {{name: net, services: [{{port: 80, labels: "
         "{a: '{{ children.configMap.data.a }}'}}]}]",
         "children.service: these groups read each other: web -> net -> web"),
        ("onReconcile: [{services: [{port: 80}]}, {configMaps: [{name: '{{ children.service.metadata.uid }}'}]}]",
         "configMaps[0].name: children.service.metadata.uid cannot be read here: names, loops and conditions decide"),
        ("onReconcile: [{services: [{port: 80}]}, {configMaps: [{when: [{field: children.service.spec.a}]}]}]",
         "children.service.spec.a cannot be read here"),
        ("onReconcile: [{services: [{port: 80}]}, {when: [{field: children.service.spec.a}], configMaps: [{}]}]",
         "onReconcile[1].when[0].field: children.service.spec.a cannot be read here"),
        ("onReconcile: [{services: [{port: 80}]}, {configMaps: [{name: '{{ item }}', "
         "forEach: {field: children.services}}]}]", "forEach.field: children.services cannot be read here"),
        ("onReconcile: [{services: [{port: 80}]}, {configMaps: [{manifest: {metadata: "
         "{name: '{{ children.service.kind }}'}}}]}]", "manifest.metadata.name: children.service.kind cannot be read"),
        ("onReconcile: [{services: [{port: 80}]}, {configMaps: [{data: '{{ children }}'}]}]",
         "children: name the kind that is read, as in children.service"),
        ("onReconcile: {configMaps: [{when: [{field: providers.aws.a}]}]}\nproviders: {aws: []}",
         "providers.aws.a cannot be read here"),
        ("onReconcile: {configMaps: [{data: {a: '{{ children.pod.status }}'}}]}",
         "children.pod: onCreate and onReconcile declare no pods"),
    ],
)  # fmt: skip
def test_a_read_in_another_order_or_place_is_refused_with_its_path(steps: str, problem: str) -> None:
    found = find_errors(steps, second="finalizers: []")

    assert [each for each in found if problem in each], found

"""Groups: names, dependencies and suspension; and the fields that may not contain random values."""

from __future__ import annotations

import pytest

from tests.box.file.sample_boxes import find_errors, load_custom_resource

ONE = "configMaps: [{name: a}]"


def test_a_group_says_what_a_component_can_be_told() -> None:
    storage, rest = load_custom_resource(
        """
        onReconcile:
          - name: storage
          - name: rest
            waitsFor: [storage]
            gracePeriod: 90s
            suspend: [{field: spec.paused, equals: true}]
        """
    ).on_reconcile

    assert (storage.waits_for, storage.grace_period, storage.suspend) == ((), None, ())
    assert (rest.waits_for, rest.grace_period) == (("storage",), "90s")
    assert [each.field for each in rest.suspend] == ["spec.paused"]


def test_a_resource_says_what_it_waits_for() -> None:
    (group,) = load_custom_resource("onReconcile: {configMaps: [{waitFor: [{field: spec.host}]}]}").on_reconcile

    assert [each.field for each in group.resources[0].wait_for] == ["spec.host"]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        pytest.param(
            "onCreate: {name: a}\nonReconcile: {name: a}",
            "onReconcile.name: 'a' is already the name of another group",
            id="a name in both steps",
        ),
        pytest.param(
            "onReconcile: [{name: storage}, {name: web, waitsFor: [storge]}]",
            "onReconcile[1].waitsFor[0]: expected an earlier group, found 'storge'; did you mean storage?",
            id="an unknown group",
        ),
        pytest.param(
            "onReconcile: [{name: web, waitsFor: [db]}, {name: db}]",
            "onReconcile[0].waitsFor[0]: expected an earlier group, found a later group",
            id="a later group",
        ),
        pytest.param(
            "onReconcile: [{name: web, waitsFor: [web]}]",
            "onReconcile[0].waitsFor[0]: expected an earlier group, found this group itself",
            id="itself",
        ),
        pytest.param(
            "onReconcile: {waitsFor: [db]}",
            "onReconcile.waitsFor[0]: expected an earlier group, found 'db'; no earlier group has a name",
            id="no group with a name",
        ),
        pytest.param(
            "onReconcile: {name: resources2}",
            "onReconcile.name: resources2 is reserved for groups without a name; use another name",
            id="the name of one without",
        ),
        pytest.param(
            "onReconcile: {suspend: [{fild: a}]}",
            "onReconcile.suspend[0].fild: unknown field; did you mean field?",
            id="a condition of suspend",
        ),
        pytest.param(
            "onReconcile: {configMaps: [{waitFor: [{field: spec.a, regex: '['}]}]}",
            "onReconcile.configMaps[0].waitFor[0].regex: ",
            id="a condition of waitFor",
        ),
        pytest.param(
            "onReconcile: {configMaps: [{waitFor: [{field: crss.a}]}]}",
            "onReconcile.configMaps[0].waitFor[0].field: unknown name: crss; did you mean cross?",
            id="a name in waitFor",
        ),
        pytest.param(
            "onDelete: {groups: [{run: [{image: a, waitFor: [{field: spec.a}]}]}]}",
            "onDelete.groups[0].run[0].waitFor: valid only in onCreate and onReconcile;",
            id="waitFor in a deletion",
        ),
        pytest.param(
            "onReconcile: {gracePeriod: soon}",
            "onReconcile.gracePeriod: expected a duration such as 90s, 5m, 12h or 90d, found 'soon'",
            id="no duration",
        ),
    ],
)
def test_a_mistake_in_a_group_says_where_and_what(steps: str, expected: str) -> None:
    (found,) = find_errors(steps)

    assert found.partition(": ")[2].startswith(expected)


def test_a_group_of_on_reconcile_waits_for_one_of_on_create() -> None:
    assert find_errors("onCreate: {name: keys}\nonReconcile: {name: web, waitsFor: [keys]}") == []


RANDOM = "'{{ randomHex(8) }}'"
EVERY_PASS = "a random value would differ in every reconcile; generate it in the data of a Secret "


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        (f"onReconcile: {{configMaps: [{{data: {{a: {RANDOM}}}}}]}}", "onReconcile.configMaps[0].data.a"),
        (f"onCreate: {{configMaps: [{{data: {{a: {RANDOM}}}}}]}}", "onCreate.configMaps[0].data.a"),
        (f"onReconcile: {{secrets: [{{stringData: {{a: {RANDOM}}}}}]}}", "onReconcile.secrets[0].stringData.a"),
        (f"onCreate: {{secrets: [{{name: {RANDOM}, once: true}}]}}", "onCreate.secrets[0].name"),
        (f"onCreate: {{secrets: [{{once: true, labels: {{a: {RANDOM}}}}}]}}", "onCreate.secrets[0].labels.a"),
        (f"onCreate: {{configMaps: [{{when: [{{field: {RANDOM}}}]}}]}}", "onCreate.configMaps[0].when[0].field"),
        (f"onReconcile: {{suspend: [{{field: spec.a, equals: {RANDOM}}}]}}", "onReconcile.suspend[0].equals"),
        (
            "onReconcile: {custom: [{apiVersion: example.org/v1, kind: Vault, "
            f"spec: {{secrets: [{{once: true, data: {{a: {RANDOM}}}}}]}}}}]}}",
            "onReconcile.custom[0].spec.secrets[0].data.a",
        ),
        (f"normalize: {{spec: {{a: {RANDOM}}}}}", "normalize.spec.a"),
        (f"status: {{fields: [{{path: a, value: {RANDOM}}}]}}", "status.fields[0].value"),
    ],
)
def test_a_random_value_where_it_would_change_in_every_pass_is_refused(steps: str, at: str) -> None:
    (found,) = find_errors(steps)

    assert f"{at}: {EVERY_PASS}" in found


@pytest.mark.parametrize(
    "steps",
    [
        f"onCreate: {{secrets: [{{once: true, stringData: {{a: {RANDOM}}}}}]}}",
        f"onCreate: {{secrets: [{{rotateAfter: 1d, data: {{a: {RANDOM}}}}}]}}",
        f"onCreate: {{secrets: [{{once: true, manifest: {{stringData: {{a: {RANDOM}}}}}}}]}}",
        f"external: [{{name: a, url: b, headers: {{X-Request-Id: {RANDOM}}}}}]",
    ],
)
def test_a_random_value_that_is_kept_or_sent_is_not(steps: str) -> None:
    assert find_errors(steps) == []


def test_a_manifest_may_have_fields_that_are_called_as_those_of_boxes() -> None:
    steps = """
        onReconcile:
          custom:
            - apiVersion: tekton.dev/v1
              kind: Pipeline
              spec: {when: [{input: a, operator: in}], forEach: {field: b}, waitFor: [{field: no.path}]}
        """

    assert find_errors(steps) == []

"""Decisions about questions that other systems answer inconsistently, as far as a file shows them."""

from __future__ import annotations

from konverge_box._internal.file import CallAuthentication, OnDelete, ReconcileSpec
from konverge_box._internal.file.expression_scopes import STEPS
from tests.box.file.sample_boxes import find_errors, load_custom_resource


def test_a_denied_object_waits_for_its_next_change_unless_the_box_says_otherwise() -> None:
    assert ReconcileSpec().retry_denied is False
    assert load_custom_resource("reconcile: {retryDenied: true}").reconcile.retry_denied is True


def test_mutation_runs_before_validation_and_both_before_anything_is_read_from_outside() -> None:
    assert list(STEPS)[:5] == ["normalize", "mutation", "validation", "cross", "external"]


def test_an_item_is_known_in_conditions_and_data() -> None:
    steps = """
        onReconcile:
          configMaps:
            - name: "{{ item }}"
              forEach: {field: spec.zones}
              when: [{field: value.on, equals: true}]
              or: [{field: "{{ item }}", prefix: eu}]
              data: {"{{ item }}": "{{ value }}"}
    """

    assert find_errors(steps) == []


def test_there_is_one_list_of_calls_so_that_none_hides_another() -> None:
    assert find_errors("onReconcile: {external: [{name: a, url: b}]}") != []
    assert len(load_custom_resource("external: [{name: a, url: b}, {name: c, url: d}]").external) == 2


def test_only_authorization_is_a_header_by_default() -> None:
    (call,) = load_custom_resource("external: [{name: a, url: b, auth: {env: TOKEN, header: X-Token}}]").external

    assert call.auth == CallAuthentication(env="TOKEN", header="X-Token")
    assert CallAuthentication(env="TOKEN").header == "Authorization"


def test_a_status_field_has_both_kinds_of_conditions() -> None:
    (field,) = load_custom_resource(
        "status: {fields: [{path: a, value: 1, when: [{field: spec.b}], or: [{field: spec.c}]}]}"
    ).status.fields

    assert (len(field.when), len(field.alternatives)) == (1, 1)


def test_validation_can_ask_for_the_type_of_a_value() -> None:
    (rule,) = load_custom_resource("validation: [{field: spec.a, typeOf: map}]").validation

    assert rule.type_of == "map"


def test_a_window_may_cross_midnight() -> None:
    assert find_errors("onReconcile: {when: [{time: {after: '22:00', before: '06:00'}}]}") == []


def test_an_observation_by_labels_has_all_of_them() -> None:
    (found,) = load_custom_resource(
        "cross: [{crd: web, as: other, wake: false, selector: {matchLabels: {a: b, c: d}}}]"
    ).cross

    assert found.selector.match_labels == {"a": "b", "c": "d"}


def test_the_time_of_a_deletion_is_for_all_of_its_groups() -> None:
    steps = load_custom_resource("onDelete: {timeout: 10m, groups: [{delete: {pods: [{name: a}]}}]}").on_delete

    assert steps is not None
    assert (steps.timeout, OnDelete().timeout) == ("10m", "5m")
    assert "timeout" in find_errors("onDelete: {groups: [{timeout: 1m}]}")[0]


def test_the_resources_of_a_kind_keep_the_order_of_the_file_from_which_the_first_child_is_taken() -> None:
    (group,) = load_custom_resource("onReconcile: {configMaps: [{name: z}, {name: a}, {name: m}]}").on_reconcile

    assert [each.object["metadata"]["name"] for each in group.resources] == ["z", "a", "m"]

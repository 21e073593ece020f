"""The plan of a reconcile for the objects of a custom resource."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from konverge._internal.primitives.value_generation import GENERATED_AT, ROTATE, ROTATED
from konverge.errors import KindUnreachableError
from konverge.kube import GroupVersionKind, Object, ObjectKey, format_time
from konverge_box._internal.file import KINDS
from konverge_box._internal.steps import StepError
from konverge_box._internal.steps.apply_policy import ObjectAction
from konverge_box._internal.steps.creation_marks import MAX_MARKS_LENGTH, compute_mark, plan_marks, read_marks
from konverge_box._internal.steps.labels import CREATED, ENTRY, MANAGED_BY, OWNER_UID
from konverge_box._internal.steps.resource_plan import ResourcePlan
from konverge_box.expressions import ExpressionError, has_sensitive, reveal_sensitive, to_sensitive
from tests.box.steps.sample_plans import (
    NOW,
    UID,
    ObjectListReader,
    build_applied_object,
    build_owner,
    build_plan,
    describe_plan,
    list_entries,
    parse_groups,
    to_stored_object,
)


def list_reads(steps: str, spec: dict[str, Any] | None = None, *objects: Object) -> list[str]:
    reader = ObjectListReader(*objects)
    build_plan(steps, spec, reader=reader)
    return reader.asked


def compute_marks(plan: ResourcePlan, owner: Object, *objects: Object) -> list[str] | None:
    return asyncio.run(plan_marks(plan, owner, ObjectListReader(*objects)))


# Objects.


def test_an_object_carries_the_box_its_owner_and_its_entry() -> None:
    obj = build_applied_object(build_plan("onReconcile: {configMaps: [{labels: {a: b}, data: {c: d}}]}"))

    assert obj["metadata"]["name"] == "site"
    assert obj["metadata"]["namespace"] == "here"
    labels = obj["metadata"]["labels"]
    assert {name: labels[name] for name in ("a", MANAGED_BY, OWNER_UID)} == {
        "a": "b",
        MANAGED_BY: "test-box",
        OWNER_UID: UID,
    }
    assert len(labels[ENTRY]) == 12


def test_the_label_of_an_entry_does_not_depend_on_where_it_stands() -> None:
    first = "{name: a, data: {x: '1'}}"
    alone = build_plan(f"onReconcile: {{configMaps: [{first}]}}")
    later = build_plan(f"onReconcile: {{secrets: [{{}}], configMaps: [{{name: b}}, {first}]}}")
    elsewhere = build_plan(f"onReconcile: [{{name: other, configMaps: [{first}]}}]")

    label = build_applied_object(alone, "a")["metadata"]["labels"][ENTRY]
    assert build_applied_object(later, "a")["metadata"]["labels"][ENTRY] == label
    assert build_applied_object(later, "b")["metadata"]["labels"][ENTRY] != label
    assert build_applied_object(elsewhere, "a")["metadata"]["labels"][ENTRY] != label


def test_numbers_and_booleans_become_text_where_kubernetes_wants_text() -> None:
    plan = build_plan(
        """
        onReconcile:
          deployments:
            - image: a
              replicas: "{{ spec.size }}"
              port: "{{ spec.port }}"
              labels: {size: "{{ spec.size }}"}
              env: {SIZE: "{{ spec.size }}", DEBUG: "{{ spec.debug }}"}
              podAnnotations: "{{ spec.notes }}"
          configMaps: [{data: "{{ spec.notes }}"}]
        """,
        {"size": 3, "debug": True, "port": 80, "notes": {"a": 1.5}},
    )
    settings, deployment = (entry.object for entry in list_entries(plan))

    assert settings is not None
    assert settings["data"] == {"a": "1.5"}
    assert deployment is not None
    assert deployment["metadata"]["labels"]["size"] == "3"
    assert deployment["spec"]["replicas"] == 3
    assert deployment["spec"]["template"]["metadata"]["annotations"] == {"a": "1.5"}
    (main,) = deployment["spec"]["template"]["spec"]["containers"]
    assert [each["value"] for each in main["env"]] == ["3", "true"]
    assert main["ports"] == [{"containerPort": 80}]


def test_a_field_that_is_null_is_left_out_but_of_kinds_that_may_mean_it() -> None:
    plan = build_plan(
        """
        onReconcile:
          configMaps: [{data: {a: "{{ null }}", b: x}}]
          custom: [{apiVersion: t/v1, kind: Boat, spec: {crew: null}}]
        """
    )
    settings, boat = (entry.object for entry in list_entries(plan))

    assert settings is not None
    assert settings["data"] == {"b": "x"}
    assert boat is not None
    assert boat["spec"] == {"crew": None}


@pytest.mark.slow
@given(st.permutations(["podDisruptionBudgets", "services", "configMaps", "secrets", "namespaces", "jobs"]))
def test_the_kinds_of_a_group_are_made_in_their_order_whatever_the_file_says(keys: list[str]) -> None:
    entry = "{image: a, name: '{{ item }}', forEach: {field: spec.names}}"
    lists = [f"{key}: [{entry if key == 'jobs' else entry.replace('image: a, ', '')}]" for key in keys]
    made = list_entries(build_plan(f"onReconcile: {{{', '.join(lists)}}}", {"names": ["b", "a"]}))

    order = list(KINDS)
    places = [order.index(entry.resource.kind) for entry in made]
    assert places == sorted(places)
    assert [entry.key.name for entry in made] == ["b", "a"] * len(keys)


def test_an_object_that_cannot_be_rendered_is_a_problem_of_its_own_with_its_path() -> None:
    plan = build_plan(
        """
        onReconcile:
          - name: broken
            configMaps: [{name: a, data: {x: "{{ status.host.name }}"}}]
          - name: whole
            configMaps: [{name: b}]
        """
    )
    broken, whole = list_entries(plan)

    assert "spec.crds.web.onReconcile[0].configMaps[0].data.x" in broken.problem
    assert broken.object is None
    assert (whole.problem, whole.action) == ("", ObjectAction.APPLY)


def test_without_a_name_the_plan_fails_for_nobody_knows_what_is_wanted() -> None:
    with pytest.raises(ExpressionError, match=r"configMaps\[0\]\.name"):
        build_plan("onReconcile: {configMaps: [{name: '{{ status.a.b }}'}]}")


@pytest.mark.parametrize(
    ("name", "found"),
    [("{{ spec.flag }}", "found a boolean"), ("{{ spec.empty }}", "expected a name"), ("{{ omit }}", "found omit")],
)
def test_a_name_is_text(name: str, found: str) -> None:
    with pytest.raises(StepError, match=found):
        build_plan(f"onReconcile: {{configMaps: [{{name: '{name}'}}]}}", {"flag": True, "empty": ""})


def test_a_name_may_be_a_number() -> None:
    assert describe_plan(build_plan("onReconcile: {configMaps: [{name: '{{ spec.n }}'}]}", {"n": 7})) == {
        "ConfigMap here/7": "apply"
    }


def test_an_object_with_a_namespace_of_an_owner_without_needs_one() -> None:
    owner = build_owner()
    del owner["metadata"]["namespace"]

    with pytest.raises(StepError, match="expected the namespace of this ConfigMap"):
        build_plan("onReconcile: {configMaps: [{}]}", owner=owner)


# Contradiction 7: items are in scope everywhere, and objects that are no longer declared are deleted.

HOSTS = """
onReconcile:
  configMaps:
    - name: "{{ metadata.name }}-{{ host }}"
      forEach: {field: spec.hosts, as: host}
      when: [{field: host, notEquals: skipped}]
      data: {host: "{{ item }}", at: "{{ index }}"}
"""


def test_an_item_is_in_scope_of_names_conditions_and_data() -> None:
    plan = build_plan(HOSTS, {"hosts": ["a", "skipped", "b"]})

    assert describe_plan(plan) == {
        "ConfigMap here/site-a": "apply",
        "ConfigMap here/site-skipped": "skip",
        "ConfigMap here/site-b": "apply",
    }
    assert build_applied_object(plan, "site-b")["data"] == {"host": "b", "at": "2"}


def test_the_object_of_a_removed_element_is_deleted_if_it_is_ours() -> None:
    both = build_plan(HOSTS, {"hosts": ["a", "b"]})
    ours, taken = build_applied_object(both, "site-b"), build_applied_object(both, "site-a")
    taken["metadata"]["ownerReferences"] = []

    assert describe_plan(build_plan(HOSTS, {"hosts": []}, ours, taken)) == {"ConfigMap here/site-b": "delete"}


def test_objects_of_other_entries_and_other_owners_are_no_removed_elements() -> None:
    one = build_applied_object(build_plan("onReconcile: {configMaps: [{name: fixed}]}"), "fixed")
    other = to_stored_object({**one, "metadata": {**one["metadata"], "name": "x", "labels": {OWNER_UID: "another"}}})

    assert describe_plan(build_plan(HOSTS, {"hosts": []}, one, other)) == {}


def test_what_an_entry_made_under_a_former_name_is_deleted() -> None:
    steps = "onReconcile: {configMaps: [{name: '{{ spec.name }}'}]}"
    former = build_applied_object(build_plan(steps, {"name": "old"}))

    assert describe_plan(build_plan(steps, {"name": "new"}, former)) == {
        "ConfigMap here/new": "apply",
        "ConfigMap here/old": "delete",
    }


def test_a_job_of_a_removed_element_stays() -> None:
    steps = "onReconcile: {jobs: [{name: '{{ item }}', forEach: {field: spec.hosts}, image: a}]}"
    job = build_applied_object(build_plan(steps, {"hosts": ["a"]}))

    assert describe_plan(build_plan(steps, {"hosts": []}, job)) == {}


def test_a_name_that_no_element_has_any_more_is_found_though_the_condition_guards_its_expression() -> None:
    steps = "onReconcile: {configMaps: [{name: '{{ spec.db.name }}', when: [{field: spec.db, exists: true}]}]}"
    made = build_applied_object(build_plan(steps, {"db": {"name": "x"}}))

    assert describe_plan(build_plan(steps, {}, made)) == {"ConfigMap here/x": "delete"}


def test_names_that_cannot_vary_cost_no_look_at_the_cluster() -> None:
    assert list_reads("onReconcile: {configMaps: [{name: '{{ metadata.name }}-a'}], services: [{port: 80}]}") == []


# Contradiction 4: objects that onReconcile no longer declares are deleted, without flapping.

VARIANTS = """
onReconcile:
  - name: small
    when: [{field: spec.size, equals: small}]
    configMaps: [{name: settings, data: {size: s}}]
  - name: large
    configMaps: [{name: settings, data: {size: l}, when: [{field: spec.size, equals: large}]}]
"""


def test_an_object_whose_condition_turns_false_is_deleted() -> None:
    steps = "onReconcile: {configMaps: [{when: [{field: spec.on, equals: true}]}]}"
    made = build_applied_object(build_plan(steps, {"on": True}))

    assert describe_plan(build_plan(steps, {"on": False}, made)) == {"ConfigMap here/site": "delete"}


def test_one_that_is_not_ours_stays() -> None:
    steps = "onReconcile: {configMaps: [{when: [{field: spec.on, equals: true}]}]}"
    made = build_applied_object(build_plan(steps, {"on": True}))
    without_reference = {**made, "metadata": {**made["metadata"], "ownerReferences": []}}
    without_label = {**made, "metadata": {**made["metadata"], "labels": {}}}

    for other in (without_reference, without_label):
        assert describe_plan(build_plan(steps, {"on": False}, other)) == {"ConfigMap here/site": "skip"}


@pytest.mark.parametrize(("size", "data"), [("small", "s"), ("large", "l")])
def test_of_variants_of_one_object_the_one_that_holds_takes_it_over(size: str, data: str) -> None:
    small = build_applied_object(build_plan(VARIANTS, {"size": "small"}))
    plan = build_plan(VARIANTS, {"size": size}, small)

    assert sorted(entry.action.value for entry in list_entries(plan)) == ["apply", "skip"]
    assert build_applied_object(plan, "settings")["data"] == {"size": data}


def test_when_no_variant_holds_the_object_is_deleted_once() -> None:
    small = build_applied_object(build_plan(VARIANTS, {"size": "small"}))

    decisions = [entry.action.value for entry in list_entries(build_plan(VARIANTS, {"size": "none"}, small))]
    assert decisions == ["delete", "skip"]


def test_two_entries_that_want_one_object_are_refused_by_both_paths() -> None:
    steps = """
        onCreate: {configMaps: [{name: a}]}
        onReconcile: [{configMaps: [{name: b}]}, {configMaps: [{name: a}]}]
        """

    with pytest.raises(
        StepError, match=r"onReconcile\[1\].configMaps\[0\]: ConfigMap here/a is also declared by .*onCreate"
    ):
        build_plan(steps)


def test_two_elements_that_want_one_object_are_told_by_their_numbers() -> None:
    with pytest.raises(StepError, match=r"\(item 2\): ConfigMap here/site-a is also declared by .* \(item 0\)"):
        build_plan(HOSTS, {"hosts": ["a", "b", "a"]})


@st.composite
def _boxes(draw: st.DrawFn) -> tuple[str, dict[str, bool]]:
    """Generate groups whose entries share few names, each with its own condition, some in a group with one."""
    lines: list[str] = []
    flags: dict[str, bool] = {}
    count = 0

    def flag() -> str:
        nonlocal count
        count += 1
        flags[f"f{count}"] = draw(st.booleans())
        return f"when: [{{field: spec.f{count}, equals: true}}]"

    for step in ("onCreate", "onReconcile"):
        lines.append(f"{step}:")
        for group in range(draw(st.integers(1, 2))):
            entries = [f"{{name: {draw(st.sampled_from('ab'))}, {flag()}}}" for _ in range(draw(st.integers(1, 3)))]
            name = f"{step.lower()}{group}"
            head = f"name: {name}, {flag()}, " if draw(st.booleans()) else f"name: {name}, "
            lines.append(f"  - {{{head}configMaps: [{', '.join(entries)}]}}")
    return "\n".join(lines), flags


@pytest.mark.slow
@given(_boxes())
def test_for_any_conditions_an_object_gets_one_decision_and_is_never_deleted_when_it_is_wanted(
    box: tuple[str, dict[str, bool]],
) -> None:
    steps, flags = box
    template = build_applied_object(build_plan("onReconcile: {configMaps: [{name: a}]}"))
    there = [{**template, "metadata": {**template["metadata"], "name": name}} for name in "ab"]
    try:
        plan = build_plan(steps, flags, *there)
    except StepError as error:
        assert "is also declared by" in str(error)  # two conditions hold at once  # noqa: PT017
        return

    acted = [entry for entry in list_entries(plan) if entry.action is not ObjectAction.SKIP]
    assert len({(*entry.gvk.group_kind, *entry.key) for entry in acted}) == len(acted)


# Contradiction 3: objects of onCreate are not created again.

ONCE_MADE = "onCreate: {configMaps: [{name: a}]}"


def with_marks(*names: str, kind: str = "ConfigMap") -> Object:
    owner = build_owner()
    marks = [compute_mark(owner, GroupVersionKind("", "v1", kind), ObjectKey("here", name)) for name in names]
    owner["metadata"]["annotations"] = {CREATED: json.dumps(marks)}
    return owner


def test_what_was_made_once_and_deleted_by_hand_stays_away() -> None:
    assert describe_plan(build_plan(ONCE_MADE, owner=with_marks("a"))) == {"ConfigMap here/a": "skip"}


def test_the_marks_of_another_owner_count_for_nothing() -> None:
    copied = with_marks("a")
    copied["metadata"]["uid"] = "another"

    assert describe_plan(build_plan(ONCE_MADE, owner=copied)) == {"ConfigMap here/a": "apply"}


@pytest.mark.parametrize("text", ["no JSON", "{}", "[1]", "[" * 10_000])
def test_marks_that_somebody_has_broken_are_none(text: str) -> None:
    owner = build_owner(annotations={CREATED: text})

    assert read_marks(owner) == []


def test_what_on_create_made_is_left_as_it_is_also_when_its_condition_turns_false() -> None:
    steps = "onCreate: {configMaps: [{name: a, when: [{field: spec.on, equals: true}]}]}"
    made = build_applied_object(build_plan(steps, {"on": True}))

    assert describe_plan(build_plan(steps, {"on": True}, made)) == {"ConfigMap here/a": "leave"}
    assert describe_plan(build_plan(steps, {"on": False}, made)) == {"ConfigMap here/a": "skip"}


def test_reconcile_true_keeps_it_as_on_reconcile_does() -> None:
    steps = "onCreate: {configMaps: [{name: a, reconcile: true, when: [{field: spec.on, equals: true}]}]}"
    made = build_applied_object(build_plan(steps, {"on": True}))

    assert describe_plan(build_plan(steps, {"on": True}, made)) == {"ConfigMap here/a": "apply"}
    assert describe_plan(build_plan(steps, {"on": False}, made)) == {"ConfigMap here/a": "delete"}


def test_only_what_is_there_and_ours_is_marked() -> None:
    plan = build_plan("onCreate: {configMaps: [{name: a}, {name: b}, {name: c}]}")
    ours, taken = (to_stored_object(entry.object) for entry in list_entries(plan)[:2] if entry.object is not None)
    taken["metadata"]["labels"] = {}

    assert compute_marks(plan, build_owner(), ours, taken) == [list_entries(plan)[0].mark]
    assert compute_marks(plan, build_owner()) is None


def test_an_object_that_was_made_without_its_mark_being_written_is_marked_later() -> None:
    made = build_applied_object(build_plan(ONCE_MADE))
    plan = build_plan(ONCE_MADE, None, made)

    assert describe_plan(plan) == {"ConfigMap here/a": "leave"}
    assert compute_marks(plan, build_owner(), made) == [list_entries(plan)[0].mark]


def test_old_marks_make_room_but_not_those_of_what_the_file_makes() -> None:
    steps = "onCreate: {configMaps: [{name: a}, {name: b}]}"
    first = build_plan(steps)
    a, b = (entry.mark for entry in list_entries(first))
    made = [to_stored_object(entry.object) for entry in list_entries(first) if entry.object is not None]
    old = [a, *(f"{number:012x}" for number in range(MAX_MARKS_LENGTH - 1))]
    owner = build_owner(annotations={CREATED: json.dumps(old)})

    marks = compute_marks(build_plan(steps, None, *made, owner=owner), owner, *made)

    assert marks is not None
    assert len(marks) == MAX_MARKS_LENGTH
    assert (marks[0], marks[1], marks[-1]) == (a, old[2], b)


# Jobs.


@pytest.mark.parametrize("step", ["onCreate", "onReconcile"])
def test_a_job_runs_once_wherever_it_stands(step: str) -> None:
    steps = f"{step}: {{jobs: [{{name: a, image: b}}]}}"
    plan = build_plan(steps)
    job = build_applied_object(plan)
    (entry,) = list_entries(plan)
    owner = build_owner(annotations={CREATED: f'["{entry.mark}"]'})

    assert describe_plan(build_plan(steps, None, job)) == {"Job here/a": "leave"}
    assert describe_plan(build_plan(steps, owner=owner)) == {"Job here/a": "skip"}


def test_a_job_is_not_deleted_when_its_condition_turns_false() -> None:
    steps = "onReconcile: {jobs: [{name: a, image: b, when: [{field: spec.on, equals: true}]}]}"
    job = build_applied_object(build_plan(steps, {"on": True}))

    assert describe_plan(build_plan(steps, {"on": False}, job)) == {"Job here/a": "skip"}


# Secrets.

PASSWORD = (
    "onCreate: {secrets: [{once: true, stringData: {password: '{{ randomHex(16) }}', user: '{{ status.no.no }}'}}]}"
)


def test_values_that_are_made_once_are_left_without_being_rendered() -> None:
    secret = build_applied_object(
        build_plan("onCreate: {secrets: [{once: true, stringData: {password: '{{ randomHex(16) }}'}}]}")
    )
    (entry,) = list_entries(build_plan(PASSWORD, None, secret))

    assert (entry.action, entry.object, entry.problem) == (ObjectAction.LEAVE, None, "")


def test_a_secret_that_is_made_once_is_made_again_after_somebody_deleted_it() -> None:
    steps = "onCreate: {secrets: [{once: true, stringData: {password: '{{ randomHex(16) }}'}}]}"

    assert describe_plan(build_plan(steps, owner=with_marks("site", kind="Secret"))) == {"Secret here/site": "apply"}


def test_the_server_is_asked_before_values_overwrite_what_a_cache_has_not_seen() -> None:
    steps = "onCreate: {secrets: [{once: true}]}"
    secret = build_applied_object(build_plan(steps))

    assert list_reads(steps) == ["Secret here/site", "live Secret here/site"]
    assert list_reads(steps, None, secret) == ["Secret here/site"]


ROTATED_STEPS = "onCreate: {secrets: [{rotateAfter: 1h, stringData: {password: '{{ randomHex(16) }}'}}]}"


def test_a_value_of_its_age_is_made_anew_and_the_pass_comes_again_then() -> None:
    first = build_plan(ROTATED_STEPS)
    secret = build_applied_object(first)
    assert secret["metadata"]["annotations"][GENERATED_AT] == format_time(NOW)
    assert first.requeue_at == NOW + timedelta(hours=1)

    young = build_plan(ROTATED_STEPS, None, secret, now=NOW + timedelta(minutes=59))
    assert (describe_plan(young), young.requeue_at) == ({"Secret here/site": "leave"}, NOW + timedelta(hours=1))
    old = build_plan(ROTATED_STEPS, None, secret, now=NOW + timedelta(hours=1))
    assert (describe_plan(old), old.requeue_at) == ({"Secret here/site": "apply"}, NOW + timedelta(hours=2))


def test_a_secret_whose_annotation_is_gone_is_as_old_as_the_object() -> None:
    secret = build_applied_object(build_plan(ROTATED_STEPS))
    secret["metadata"]["annotations"] = {}
    secret["metadata"]["creationTimestamp"] = format_time(NOW - timedelta(minutes=30))

    assert build_plan(ROTATED_STEPS, None, secret).requeue_at == NOW + timedelta(minutes=30)


@pytest.mark.parametrize("policy", ["once: true", "rotateAfter: 1h"])
def test_a_new_text_of_the_annotation_makes_new_values_exactly_once(policy: str) -> None:
    steps = f"onCreate: {{secrets: [{{{policy}, stringData: {{key: '{{{{ randomHex(16) }}}}'}}}}]}}"
    first = build_applied_object(build_plan(steps))
    assert describe_plan(build_plan(steps, None, first)) == {"Secret here/site": "leave"}

    first["metadata"]["annotations"][ROTATE] = "now"
    rotated = build_plan(steps, None, first)
    (entry,) = list_entries(rotated)
    assert (entry.action.value, entry.explanation) == ("apply", f"new values: the annotation {ROTATE} requests it")
    assert entry.is_renewed
    second = build_applied_object(rotated)
    assert ROTATE not in second["metadata"]["annotations"]  # the user's own field

    second["metadata"]["annotations"][ROTATE] = "now"
    assert describe_plan(build_plan(steps, None, second)) == {"Secret here/site": "leave"}
    second["metadata"]["annotations"][ROTATE] = "again"
    assert describe_plan(build_plan(steps, None, second)) == {"Secret here/site": "apply"}


def test_a_rotation_by_age_keeps_the_record_of_the_one_by_annotation() -> None:
    first = build_applied_object(build_plan(ROTATED_STEPS))
    first["metadata"]["annotations"][ROTATE] = "now"
    second = build_applied_object(build_plan(ROTATED_STEPS, None, first))
    second["metadata"]["annotations"][ROTATE] = "now"
    later = NOW + timedelta(hours=1)

    third = build_applied_object(build_plan(ROTATED_STEPS, None, second, now=later))

    assert third["metadata"]["annotations"][GENERATED_AT] == format_time(later)
    assert third["metadata"]["annotations"][ROTATED] == second["metadata"]["annotations"][ROTATED]


def test_somebody_elses_secret_is_not_rotated() -> None:
    secret = build_applied_object(build_plan(ROTATED_STEPS))
    secret["metadata"]["labels"] = {}

    plan = build_plan(ROTATED_STEPS, None, secret, now=NOW + timedelta(days=9))
    assert (describe_plan(plan), plan.requeue_at) == ({"Secret here/site": "leave"}, None)


def test_the_values_of_a_secret_show_nowhere() -> None:
    plan = build_plan("onReconcile: {secrets: [{stringData: {password: hunter2}, data: {a: aHVudGVyMg==}}]}")

    assert "hunter2" not in repr(plan)
    assert "aHVudGVyMg" not in repr(plan)
    assert "hunter2" not in str(build_applied_object(plan))
    assert reveal_sensitive(build_applied_object(plan))["stringData"] == {"password": "hunter2"}


def test_what_comes_from_a_secret_is_in_no_name_and_no_label() -> None:
    key = to_sensitive({"data": {"key": "hunter2"}})

    with pytest.raises(StepError, match="names are not confidential") as caught:
        build_plan("onReconcile: {configMaps: [{name: '{{ spec.key.data.key }}'}]}", {"key": key})
    assert "hunter2" not in str(caught.value)
    (entry,) = list_entries(
        build_plan("onReconcile: {configMaps: [{labels: {a: '{{ spec.key.data.key }}'}}]}", {"key": key})
    )
    assert entry.problem.endswith("labels and annotations are not confidential")


# Copies.

COPY = """
onReconcile:
  secrets:
    - name: copy
      fromSecret: {name: "{{ spec.source }}", namespace: vault}
      toNamespaces: "{{ spec.to }}"
      stringData: {more: text}
"""
SOURCE: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "keys", "namespace": "vault"},
    "type": "example.com/keys",
    "data": {"key": "aHVudGVyMg=="},
}


def test_a_secret_is_copied_to_each_namespace_and_owned_only_in_its_owners() -> None:
    plan = build_plan(COPY, {"source": "keys", "to": ["here", "there"]}, SOURCE)

    assert [(str(entry.key), entry.is_owned) for entry in list_entries(plan)] == [
        ("here/copy", True),
        ("there/copy", False),
    ]
    (_, there) = list_entries(plan)
    assert there.object is not None
    assert there.object["type"] == "example.com/keys"
    assert has_sensitive(there.object["data"])
    assert reveal_sensitive(there.object["data"]) == {"key": "aHVudGVyMg=="}
    assert reveal_sensitive(there.object["stringData"]) == {"more": "text"}


def test_a_copy_waits_for_its_source() -> None:
    plan = build_plan(COPY, {"source": "keys", "to": ["there"]})

    (entry,) = list_entries(plan)
    assert (entry.action, entry.blocked, entry.object) == (ObjectAction.APPLY, "waiting for Secret vault/keys", None)


def test_the_copy_in_a_namespace_that_is_no_target_any_more_is_deleted() -> None:
    both = build_plan(COPY, {"source": "keys", "to": ["one", "two"]}, SOURCE)
    copies = [to_stored_object(entry.object, owned=False) for entry in list_entries(both) if entry.object is not None]

    plan = build_plan(COPY, {"source": "keys", "to": ["two"]}, SOURCE, *copies)
    assert describe_plan(plan) == {"Secret two/copy": "apply", "Secret one/copy": "delete"}


def test_a_target_can_be_an_expression_with_a_list() -> None:
    steps = COPY.replace('"{{ spec.to }}"', '[first, "{{ spec.to }}"]')

    plan = build_plan(steps, {"source": "keys", "to": ["here", "there"]}, SOURCE)

    assert [str(entry.key) for entry in list_entries(plan)] == ["first/copy", "here/copy", "there/copy"]


@pytest.mark.parametrize("to", ["there", 3, {"a": "b"}])
def test_targets_are_a_list(to: Any) -> None:
    with pytest.raises(StepError, match=r"toNamespaces: expected a list of namespaces, found "):
        build_plan(COPY, {"source": "keys", "to": to}, SOURCE)


def test_a_config_map_is_copied_with_its_binary_data() -> None:
    source = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "here"},
        "data": {"a": "1", "b": "2"},
        "binaryData": {"c": "AA=="},
    }
    steps = "onReconcile: {configMaps: [{name: copy, fromConfigMap: {name: a}, data: {b: mine}}]}"

    made = build_applied_object(build_plan(steps, None, source))
    assert (made["data"], made["binaryData"]) == ({"a": "1", "b": "mine"}, {"c": "AA=="})


# Waiting, suspension, time.


def test_what_is_waited_for_is_named_and_nothing_is_rendered_before() -> None:
    steps = """
        onReconcile:
          configMaps:
            - waitFor: [{field: spec.ready, equals: true}, {field: status.url}]
              data: {url: "{{ status.url.host }}"}
        """

    (first,) = list_entries(build_plan(steps, {"ready": False}))
    assert (first.blocked, first.object, first.problem) == ("waiting for spec.ready equals true", None, "")
    (second,) = list_entries(build_plan(steps, {"ready": True}))
    assert second.blocked == "waiting for status.url exists"


def test_the_results_of_earlier_steps_end_the_waiting() -> None:
    steps = """
        cross: [{apiVersion: v1, kind: Service, as: db, selector: {name: db}}]
        onReconcile: {configMaps: [{waitFor: [{field: cross.db.found, equals: true}]}]}
        """

    (absent,) = list_entries(build_plan(steps, cross={"db": {"found": False}}))
    (found,) = list_entries(build_plan(steps, cross={"db": {"found": True}}))
    assert (absent.blocked, found.blocked) == ("waiting for cross.db.found equals true", "")


def test_a_group_is_suspended_while_all_its_conditions_hold() -> None:
    steps = "onReconcile: {suspend: [{field: spec.a, equals: true}, {field: spec.b, equals: true}]}"

    assert [build_plan(steps, {"a": True, "b": b}).groups[0].is_suspended for b in (True, False)] == [True, False]
    assert not build_plan("onReconcile: {}").groups[0].is_suspended


def test_a_condition_of_time_says_when_to_come_again() -> None:
    steps = "onReconcile: {configMaps: [{when: [{time: {after: '13:00', before: '14:00'}}]}]}"

    assert build_plan(steps).requeue_at == NOW.replace(hour=13)
    assert build_plan("onReconcile: {configMaps: [{}]}").requeue_at is None


def test_groups_are_called_by_their_names_or_their_step() -> None:
    def names(steps: str) -> list[tuple[str, str]]:
        return [(group.name, group.condition_type) for group in build_plan(steps).groups]

    assert names("onCreate: {}\nonReconcile: {}") == [("created", "CreatedReady"), ("resources", "ResourcesReady")]
    assert names("onReconcile: [{}, {name: webTier}, {}]") == [
        ("resources0", "Resources0Ready"),
        ("webTier", "WebTierReady"),
        ("resources2", "Resources2Ready"),
    ]


# Cluster-scoped kinds, and kinds that the cluster does not serve.


def test_objects_without_a_namespace_have_no_owner_reference() -> None:
    plan = build_plan(
        """
        onReconcile:
          namespaces: [{name: "{{ metadata.name }}"}]
          custom: [{apiVersion: test.konverge.dev/v1, kind: Fleet}, {apiVersion: test.konverge.dev/v1, kind: Boat}]
        """
    )

    assert [(str(entry.key), entry.is_owned) for entry in list_entries(plan)] == [
        ("site", False),
        ("site", False),
        ("here/site", True),
    ]


def test_a_namespace_for_a_kind_without_is_refused() -> None:
    with pytest.raises(StepError, match="expected no namespace for the cluster-scoped kind Fleet; remove it"):
        build_plan("onReconcile: {custom: [{apiVersion: test.konverge.dev/v1, kind: Fleet, namespace: a}]}")


def test_a_kind_that_is_not_served_is_left_to_its_component_to_report() -> None:
    reader = ObjectListReader(unserved=("Boat",))
    steps = "onReconcile: {custom: [{name: '{{ spec.a }}', apiVersion: t/v1, kind: Boat}]}"

    assert describe_plan(build_plan(steps, {"a": "x"}, reader=reader)) == {"Boat here/x": "apply"}


def test_what_does_not_go_with_its_owner_is_left_over() -> None:
    groups = parse_groups(
        """
        onReconcile:
          namespaces: [{}]
          configMaps: [{name: in}, {name: out, namespace: there}]
          services: [{port: 80}]
        """
    )
    planned = list_entries(build_plan(groups))
    reader = ObjectListReader(
        *(to_stored_object(entry.object, owned=entry.is_owned) for entry in planned if entry.object is not None)
    )

    found = asyncio.run(groups.find_leftovers(build_owner(), reader))

    assert [(obj["kind"], obj["metadata"]["name"]) for obj in found] == [("Namespace", "site"), ("ConfigMap", "out")]
    assert [each for each in reader.asked if each.startswith("Service")] == []


def test_what_is_left_over_of_a_kind_that_nobody_can_tell_of_now_is_not_taken_for_nothing() -> None:
    groups = parse_groups(
        "onReconcile: {custom: [{name: '{{ spec.a }}', apiVersion: t/v1, kind: Boat}], secrets: [{}]}"
    )
    reader = ObjectListReader(unserved=("Boat",), error=KindUnreachableError)

    assert describe_plan(build_plan(groups, {"a": "x"}, reader=reader)) == {
        "Boat here/x": "apply",
        "Secret here/site": "apply",
    }
    with pytest.raises(KindUnreachableError):
        asyncio.run(groups.find_leftovers(build_owner(), reader))


@pytest.mark.parametrize(("maker", "ends"), [("a", "skip"), ("b", "delete")])
def test_an_object_that_entries_of_both_steps_name_goes_only_if_the_one_that_removes_has_made_it(
    maker: str, ends: str
) -> None:
    steps = """
        onCreate: {configMaps: [{name: x, when: [{field: spec.a}]}]}
        onReconcile: {configMaps: [{name: x, when: [{field: spec.b}]}]}
    """
    live = build_applied_object(build_plan(steps, {maker: 1}))

    assert [entry.action.value for entry in list_entries(build_plan(steps, {}, live))] == ["skip", ends]


def test_a_namespace_that_the_file_names_no_more_loses_its_object() -> None:
    steps = "onReconcile: {configMaps: [{name: x, toNamespaces: [%s]}]}"
    objects = [
        to_stored_object(each.object, owned=False) for each in list_entries(build_plan(steps % "a, b")) if each.object
    ]

    assert describe_plan(build_plan(steps % "a", None, *objects)) == {
        "ConfigMap a/x": "apply",
        "ConfigMap b/x": "delete",
    }


# Limits.


@pytest.mark.slow
def test_more_objects_than_a_custom_resource_may_have_are_refused_before_any_is_rendered() -> None:
    entry = "{name: '{{ item }}', namespace: '%s', forEach: {field: spec.hosts}, data: {a: '{{ spec.no.no }}'}}"
    lists = ", ".join(entry % f"n{number}" for number in range(6))

    with pytest.raises(StepError, match=r"configMaps\[5\]: expected at most 5000 objects"):
        build_plan(f"onReconcile: {{configMaps: [{lists}]}}", {"hosts": [f"h{number}" for number in range(1000)]})


# Loops in loops.

NESTED = """
onReconcile:
  configMaps:
    - forEach:
        - {field: spec.members, as: member, key: "{{ member.name }}"}
        - {field: member.environments, as: environment}
      data: {who: "{{ member.name }}", where: "{{ environment }}"}
"""
ADA = {"name": "ada", "environments": ["dev", "prod"]}
BOB = {"name": "bob", "environments": ["dev"]}


def test_an_entry_with_loops_in_loops_has_names_of_their_keys() -> None:
    plan = build_plan(NESTED, {"members": [ADA, BOB]})

    assert describe_plan(plan) == {
        "ConfigMap here/site-ada-dev": "apply",
        "ConfigMap here/site-ada-prod": "apply",
        "ConfigMap here/site-bob-dev": "apply",
    }
    assert build_applied_object(plan, "site-ada-prod")["data"] == {"who": "ada", "where": "prod"}


def test_another_order_of_the_items_deletes_nothing_and_a_removed_one_only_its_own() -> None:
    first = build_plan(NESTED, {"members": [ADA, BOB]})
    objects = [build_applied_object(first, f"site-{key}") for key in ("ada-dev", "ada-prod", "bob-dev")]

    turned = build_plan(NESTED, {"members": [BOB, ADA]}, *objects)
    assert set(describe_plan(turned).values()) == {"apply"}
    assert len(describe_plan(turned)) == 3

    fewer = build_plan(NESTED, {"members": [BOB, {**ADA, "environments": ["prod"]}]}, *objects)
    assert describe_plan(fewer) == {
        "ConfigMap here/site-bob-dev": "apply",
        "ConfigMap here/site-ada-prod": "apply",
        "ConfigMap here/site-ada-dev": "delete",
    }


def test_two_items_of_one_key_delete_nothing() -> None:
    with pytest.raises(StepError, match="expected different keys, found 'ada-dev' twice"):
        build_plan(NESTED, {"members": [ADA, {**BOB, "name": "ada"}]})


def test_a_workload_and_its_service_of_one_loop_belong_together() -> None:
    plan = build_plan(
        "onReconcile: {deployments: [{image: a, forEach: {field: spec.names}}], services: [{port: 1, "
        "forEach: {field: spec.names}}]}",
        {"names": ["a", "b"]},
    )
    deployment, service = (entry.object for entry in list_entries(plan) if entry.key.name == "site-a")

    assert deployment is not None
    assert service is not None
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]

"""The next action on a Job or an object of a deletion, and the plan of a deletion, without a cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from konverge._internal.kube.name_validation import validate_label_value
from konverge.kube import Object, build_owner_reference
from konverge_box._internal.steps import StepError, build_scope
from konverge_box._internal.steps.creation_marks import read_marks
from konverge_box._internal.steps.deletion_decisions import (
    DeletionAction,
    compute_requeue_after,
    decide_job,
    decide_target,
    describe_overdue,
)
from konverge_box._internal.steps.deletion_plan import CompiledDeletionGroup, PlannedDeletionGroup, plan_deletion
from konverge_box._internal.steps.labels import ENTRY, MANAGED_BY, OWNER_UID, RAN
from konverge_box._internal.steps.ownership import is_ours
from konverge_box.expressions import EvaluationEnvironment, ExpressionError
from tests.box.file.sample_boxes import load_custom_resource

BEGAN = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER: Object = {
    "apiVersion": "test.konverge.dev/v1",
    "kind": "Web",
    "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
    "spec": {"parts": ["a", "b"], "at": {"x": 1, "w": 2}},
}
CLUSTER_OWNER: Object = {**OWNER, "metadata": {"name": "web", "uid": "u-1"}}
DELETING = {"deletionTimestamp": "2026-01-01T12:00:00Z"}


def job(*verdicts: str, uid: str = "u-1", entry: str = "e", **metadata: Any) -> Object:
    conditions = [{"type": each, "status": "True", "message": "it broke."} for each in verdicts]
    labels = {OWNER_UID: uid, ENTRY: entry}
    return {"metadata": {"name": "j", "labels": labels, **metadata}, "status": {"conditions": conditions}}


@pytest.mark.parametrize(
    ("live", "has_run", "expected"),
    [
        (None, False, (DeletionAction.ACT, "")),
        (None, True, (DeletionAction.NOTHING, "")),
        (job("Failed"), True, (DeletionAction.NOTHING, "")),
        (job(), False, (DeletionAction.WAIT, "Job j runs")),
        (job("Suspended"), False, (DeletionAction.WAIT, "Job j runs")),
        (job("FailureTarget"), False, (DeletionAction.WAIT, "Job j runs")),
        (job("Complete"), False, (DeletionAction.NOTE, "")),
        (job("Complete", **DELETING), False, (DeletionAction.NOTE, "")),
        (job(**DELETING), False, (DeletionAction.WAIT, "Job j is still being deleted, and is then created again")),
        (
            job("Failed", **DELETING),
            False,
            (DeletionAction.WAIT, "Job j is still being deleted, and is then created again"),
        ),
        (
            job("Complete", uid="u-0", **DELETING),
            False,
            (DeletionAction.WAIT, "Job j is still being deleted, and is then created again"),
        ),
        (job("Failed"), False, (DeletionAction.REPORT, "Job j failed: it broke. Delete the Job to run it again")),
    ],
)
def test_what_happens_to_a_job(live: Object | None, has_run: bool, expected: tuple[DeletionAction, str]) -> None:
    assert decide_job(live, OWNER, named="Job j", entry="e", has_run=has_run) == expected


@pytest.mark.parametrize("live", [job("Complete", uid="u-0"), job("Complete", entry="another"), {"metadata": {}}])
def test_a_job_of_that_name_that_is_not_of_this_deletion_has_not_run(live: Object) -> None:
    decision = decide_job(live, OWNER, named="Job j", entry="e", has_run=False)

    assert decision.action is DeletionAction.REPORT
    assert "Give the Job in the box another name" in decision.message


@pytest.mark.parametrize(
    ("owner", "namespace", "label", "reference", "manager", "expected"),
    [
        (OWNER, "shop", "u-1", "ours", "", True),
        (OWNER, "shop", "u-1", "ours, no controller", "Web/web/u-1", False),
        (OWNER, "shop", "u-1", "another's", "Web/web/u-1", False),
        (OWNER, "shop", "u-1", "", "Web/web/u-1", False),
        (OWNER, "shop", "u-0", "ours", "", False),
        (OWNER, "shop", "", "ours", "", False),
        (OWNER, "other", "u-1", "", "Web/web/u-1", True),
        (OWNER, "other", "u-1", "", "Web/an earlier group/u-1", True),
        (OWNER, "other", "u-1", "", "a" * 64, True),
        (OWNER, "other", "u-1", "", "Web/web/u-0", False),
        (OWNER, "other", "u-1", "", "kubectl", False),
        (OWNER, "other", "u-1", "", "", False),
        (OWNER, "other", "u-1", "another's", "Web/web/u-1", False),
        (OWNER, "other", "u-0", "", "Web/web/u-1", False),
        (OWNER, "", "u-1", "", "Web/web/u-1", True),
        (OWNER, "", "u-1", "", "", False),
        (OWNER, "", "", "", "Web/web/u-1", False),
        (CLUSTER_OWNER, "shop", "u-1", "ours", "", True),
        (CLUSTER_OWNER, "shop", "u-1", "", "Web/web/u-1", False),
        (CLUSTER_OWNER, "", "u-1", "", "Web/web/u-1", False),
    ],
)
def test_an_object_is_ours_by_label_and_where_it_can_be_by_reference(
    owner: Object, namespace: str, label: str, reference: str, manager: str, expected: bool
) -> None:
    metadata: Object = {"name": "x", "labels": {OWNER_UID: label} if label else {}}
    if namespace:
        metadata["namespace"] = namespace
    if reference:
        whose = {**owner, "metadata": {**owner["metadata"], "uid": "u-9"}} if reference == "another's" else owner
        metadata["ownerReferences"] = [build_owner_reference(whose, controller="no controller" not in reference)]
    if manager:
        metadata["managedFields"] = [
            {"manager": manager, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
        ]

    assert is_ours({"metadata": metadata}, owner) is expected


def target(**metadata: Any) -> Object:
    labels = {OWNER_UID: "u-1"}
    return {"metadata": {"name": "x", "labels": labels, "ownerReferences": [build_owner_reference(OWNER)], **metadata}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (None, (DeletionAction.NOTHING, "")),
        (target(namespace="shop"), (DeletionAction.ACT, "")),
        (target(namespace="shop", **DELETING), (DeletionAction.WAIT, "X x is being deleted")),
        (
            target(namespace="shop", finalizers=["a/b", "foregroundDeletion"], **DELETING),
            (DeletionAction.WAIT, "X x is being deleted (held by a/b, foregroundDeletion)"),
        ),
        (
            target(namespace="shop", labels={}),
            (DeletionAction.NOTHING, "X x does not belong to this object and is kept"),
        ),
        (
            target(namespace="shop", labels={}, **DELETING),
            (DeletionAction.NOTHING, "X x does not belong to this object and is kept"),
        ),
    ],
)
def test_what_happens_to_an_object(live: Object | None, expected: tuple[DeletionAction, str]) -> None:
    assert decide_target(live, OWNER, named="X x") == expected


@pytest.mark.parametrize(
    ("seconds", "is_late", "again"),
    [(0, False, 15), (50, False, 10), (59.5, False, 0.5), (60, True, 60), (900, True, 60)],
)
def test_the_next_look_is_in_time_to_say_that_it_is_late(seconds: float, is_late: bool, again: float) -> None:
    now, minute = BEGAN + timedelta(seconds=seconds), timedelta(minutes=1)

    assert bool(describe_overdue(BEGAN, now, minute)) is is_late
    assert compute_requeue_after(BEGAN, now, minute) == timedelta(seconds=again)


def test_being_late_says_how_to_get_out() -> None:
    message = describe_overdue(BEGAN, BEGAN + timedelta(minutes=5), timedelta(minutes=5))

    assert message == (
        "Not complete after 5m. The deletion continues; "
        "to delete the object without it, remove the finalizer of the object"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, []), ('["a"]', ["a"]), ("nonsense", []), ('{"a": 1}', []), ("[1, null, {}]", []), ("[" * 100_000, [])],
)
def test_a_note_that_is_none_of_ours_counts_as_none(text: str | None, expected: list[str]) -> None:
    annotations = {} if text is None else {RAN: text}

    assert read_marks({"metadata": {"annotations": annotations}}, RAN) == expected


def plan_groups(on_delete: str, owner: Object = OWNER, box_name: str = "shops") -> tuple[PlannedDeletionGroup, ...]:
    lines = "\n".join(f"    {line}" for line in on_delete.strip("\n").splitlines())
    declared = load_custom_resource(f"onDelete:\n  groups:\n{lines}\n").on_delete
    assert declared is not None
    groups = [
        CompiledDeletionGroup(each, f"groups[{i}]", each.name or "", box_name) for i, each in enumerate(declared.groups)
    ]
    return plan_deletion(tuple(groups), build_scope(owner, EvaluationEnvironment(now=BEGAN)), owner)


def test_a_job_carries_whose_it_is_and_neither_a_reference_nor_an_end_by_time() -> None:
    ((group),) = plan_groups("- run: [{name: bye, image: i, ttlSecondsAfterFinished: 5, labels: {mine: 'yes'}}]")

    (found,) = group.jobs
    metadata = found.object["metadata"]
    assert metadata["namespace"] == "shop"
    assert metadata["labels"] == {"mine": "yes", MANAGED_BY: "shops", OWNER_UID: "u-1", ENTRY: found.entry}
    assert "ownerReferences" not in metadata
    assert "ttlSecondsAfterFinished" not in found.object["spec"]


def test_a_job_of_a_box_whose_name_is_too_long_for_a_label_is_one_that_a_server_takes() -> None:
    (group,) = plan_groups("- run: [{image: i}]", box_name="b" * 100)

    assert validate_label_value(group.jobs[0].object["metadata"]["labels"][MANAGED_BY]) == []


def test_that_a_job_has_run_counts_for_this_very_owner() -> None:
    later = {**OWNER, "metadata": {**OWNER["metadata"], "uid": "u-2"}}
    entries = [plan_groups("- run: [{image: i}]", owner)[0].jobs[0].entry for owner in (OWNER, OWNER, later)]

    assert entries[0] == entries[1] != entries[2]


def test_jobs_are_repeated_and_asked_for_their_conditions() -> None:
    (group,) = plan_groups("""
- run:
    - name: "bye-{{ part }}"
      image: i
      forEach: {field: spec.parts, as: part}
      when: [{field: part, notEquals: a}]
    - {name: "at-{{ item }}-{{ value }}", image: i, forEach: {field: spec.at}}
    - {name: never, image: i, when: [{field: spec.absent}]}
""")

    assert [each.key.name for each in group.jobs] == ["bye-b", "at-w-2", "at-x-1"]


def test_a_group_whose_conditions_do_not_hold_is_left_out() -> None:
    groups = plan_groups("""
- name: one
  when: [{field: spec.absent}]
  delete: {configMaps: [{name: a}]}
- name: two
  delete: {configMaps: [{name: "{{ metadata.name }}-b", namespace: other}]}
""")

    assert [group.name for group in groups] == ["two"]
    assert [(each.gvk.kind, each.namespace, each.name) for each in groups[0].targets] == [
        ("ConfigMap", "other", "web-b")
    ]


def test_two_jobs_of_one_name_are_refused_since_the_second_would_count_as_run() -> None:
    with pytest.raises(StepError, match=r"Job shop/web is also declared by .*groups\[0\]\.run\[0\];"):
        plan_groups("- run: [{image: i}]\n- run: [{image: j}]")


def test_a_mistake_in_the_last_group_is_told_before_anything_is_done() -> None:
    with pytest.raises(ExpressionError, match=r"groups\[1\]\.delete\.configMaps\[0\]\.name"):
        plan_groups("- delete: {configMaps: [{name: a}]}\n- delete: {configMaps: [{name: '{{ spec.absent }}'}]}")


def test_a_job_of_an_owner_without_namespace_needs_one() -> None:
    with pytest.raises(StepError, match="expected a namespace for Job bye, found none: Web is cluster-scoped"):
        plan_groups("- run: [{name: bye, image: i}]", CLUSTER_OWNER)

"""The conditions that a reconcile reports, and the search for stale conditions."""

from typing import Any

from konverge.kube import Condition, Object
from konverge_box._internal.runtime.box_conditions import (
    MAX_MESSAGE_LENGTH,
    build_denied_condition,
    build_failed_condition,
    build_ready_condition,
    build_validation_conditions,
    find_stale_types,
    find_suspect_types,
    is_stale_field,
)
from konverge_box._internal.steps.validation import RuleViolation, RuleViolations

OWNER: Object = {"metadata": {"name": "a", "generation": 4}}
GOOD = Condition("AReady", "True", "Healthy", "fine")
LATE = Condition("BReady", "False", "Creating", "one of two")
OFF = Condition("CReady", "True", "Disabled", "off")


def test_ready_sums_up_all_that_is_at_work() -> None:
    found = build_ready_condition(OWNER, [("a", GOOD), ("b", LATE)])

    assert (found.status, found.reason, found.message) == (
        "False",
        "Creating",
        "1 of 2 parts is not ready: b (Creating: one of two).",
    )
    assert found.observed_generation == 4


def test_ready_names_every_part_that_holds_it_up() -> None:
    late = [(f"group{number}", Condition("X", "False", "Creating", "x" * 400)) for number in range(12)]

    waiting = build_ready_condition(OWNER, [("a", GOOD), *late])
    failed = build_failed_condition(OWNER, "y" * 2_000, [("a", GOOD), *late])
    only = build_failed_condition(OWNER, "no image", [("b", LATE)])

    for found in (waiting, failed):
        assert all(f"group{number}" in found.message for number in range(12)), found.message
        assert len(found.message) == MAX_MESSAGE_LENGTH
    assert only.message == "no image"


def test_what_is_off_does_not_hide_what_is_at_work() -> None:
    mixed, off = build_ready_condition(OWNER, [("a", GOOD), ("c", OFF)]), build_ready_condition(OWNER, [("c", OFF)])

    assert (mixed.reason, mixed.message) == ("Healthy", "1 part is healthy; 1 is disabled (c).")
    assert (off.reason, off.message) == ("Disabled", "The part c is disabled.")


def test_a_box_without_resources_is_ready_when_its_pass_ends() -> None:
    found = build_ready_condition(OWNER, [], ["status: no value"])

    assert (found.status, found.reason, found.message) == ("True", "Reconciled", "status: no value")


def test_no_message_is_longer_than_its_bound() -> None:
    violation = RuleViolation("spec.a", "x" * 400, "spec.crds")
    many = RuleViolations(denied=(violation,) * 50, warned=(violation,) * 50)
    messages = [
        build_failed_condition(OWNER, "x" * 5000).message,
        build_denied_condition(OWNER, many).message,
        build_ready_condition(OWNER, [("a", GOOD)], ["x" * 5000]).message,
        *(each.message for each in build_validation_conditions(OWNER, many, can_deny=True, can_warn=True)),
    ]

    assert [len(message) for message in messages] == [MAX_MESSAGE_LENGTH] * 5


def test_conditions_of_validation_are_there_for_the_rules_that_there_are() -> None:
    warned = RuleViolations(warned=(RuleViolation("spec.a", "no owner", "spec.crds"),))

    both = build_validation_conditions(OWNER, warned, can_deny=True, can_warn=True)
    assert [(each.type, each.status, each.reason) for each in both] == [
        ("ValidationFailed", "False", "ValidationPassed"),
        ("ValidationWarning", "True", "WarnRuleViolation"),
    ]
    assert [each.type for each in build_validation_conditions(OWNER, warned, can_deny=True, can_warn=False)] == [
        "ValidationFailed"
    ]
    assert build_validation_conditions(OWNER, warned, can_deny=False, can_warn=False) == []


def build_managed_entry(manager: str, *types: str) -> dict[str, Any]:
    keys: dict[str, Any] = {f'k:{{"type":"{each}"}}': {} for each in types}
    return {"manager": manager, "fieldsV1": {"f:status": {"f:conditions": keys}}}


def test_a_condition_that_only_we_have_written_is_stale_and_no_other() -> None:
    conditions = [
        {"type": kind, "reason": reason}
        for kind, reason in [
            ("Ready", "Healthy"),
            ("OldReady", "Healthy"),
            ("CloudReady", "Ready"),
            ("SharedReady", "Healthy"),
            ("TheirReady", "Healthy"),
            ("WordyReady", "NoReasonOfOurs"),
            ("Progressing", "Healthy"),
            ("NewReady", "Healthy"),
        ]
    ]
    owner: Object = {"metadata": {"name": "a"}, "status": {"conditions": [*conditions, "odd", {"type": 3}]}}
    suspected = find_suspect_types(owner, {"Ready", "NewReady"})
    assert suspected == ["OldReady", "CloudReady", "SharedReady", "TheirReady"]

    owner["metadata"]["managedFields"] = [
        build_managed_entry("konverge", "Ready", "OldReady", "SharedReady"),
        build_managed_entry("another", "SharedReady", "TheirReady"),
        {"manager": "odd", "fieldsV1": 3},
    ]
    assert find_stale_types(owner, suspected) == ["OldReady"]


def test_without_a_record_nothing_is_stale() -> None:
    assert find_stale_types({"metadata": {}}, ["OldReady"]) == []
    assert (
        find_stale_types({"metadata": {"managedFields": [build_managed_entry("another", "OldReady")]}}, ["OldReady"])
        == []
    )


def test_a_field_of_the_status_is_stale_if_only_we_have_written_it() -> None:
    def writer(manager: str, *fields: str) -> dict[str, Any]:
        return {"manager": manager, "fieldsV1": {"f:status": {f"f:{each}": {} for each in fields}}}

    ours = build_managed_entry("konverge", "Ready")
    assert is_stale_field({"metadata": {"managedFields": [ours, writer("konverge", "providers")]}}, "providers")
    for others in ([writer("another", "providers")], [writer(each, "providers") for each in ("konverge", "else")], []):
        assert not is_stale_field({"metadata": {"managedFields": [ours, *others]}}, "providers")
    assert not is_stale_field({"metadata": {"managedFields": [writer("konverge", "providers")]}}, "providers")

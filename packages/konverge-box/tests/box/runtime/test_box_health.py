"""The states started, healthy and degraded, and the dependencies between custom resources."""

from datetime import UTC, datetime

import pytest

from konverge.kube import ObjectKey
from konverge_box._internal.runtime.box_health import BoxHealth, BoxReconcileResult, Wanted

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


def health(wanted: Wanted = "healthy", threshold: int = 2) -> BoxHealth:
    return BoxHealth({"app": {"db": wanted}, "db": {}}, {"app": threshold, "db": threshold})


def test_a_custom_resource_has_started_when_each_object_of_the_beginning_had_a_pass_however_it_ended() -> None:
    found = health("started", threshold=5)
    found.start({"db": [A, B], "app": []})
    assert found.find_unmet("app") == ("db", "started")

    found.record_reconcile("db", A, BoxReconcileResult.SUCCESS, at=NOW)
    assert found.find_unmet("app") == ("db", "started")
    found.record_reconcile("db", B, BoxReconcileResult.ERROR, error="broken", at=NOW)

    assert found.find_unmet("app") is None


def test_one_that_has_no_objects_has_started() -> None:
    found = health()
    assert found.find_unmet("app") == ("db", "healthy")
    found.start({})

    assert found.find_unmet("app") is None


def test_an_object_that_goes_is_not_waited_for() -> None:
    found = health()
    found.start({"db": [A, B]})
    found.record_reconcile("db", A, BoxReconcileResult.SUCCESS, at=NOW)
    found.remove_missing("db", [A, B])
    assert found.find_unmet("app") == ("db", "healthy")

    found.remove_missing("db", [A])
    assert found.find_unmet("app") is None


def test_objects_that_only_waited_have_not_had_their_pass() -> None:
    found = health()
    found.start({"db": [A]})
    found.record_waiting("db", A)

    assert found.find_unmet("app") == ("db", "healthy")


def test_failures_in_a_row_degrade_and_one_success_ends_it() -> None:
    found = health(threshold=2)
    found.start({})
    for key in (A, B):
        found.record_reconcile("db", key, BoxReconcileResult.ERROR, error=f"cannot do {key.name}", at=NOW)

    assert found.resources["db"].state == "degraded"
    assert found.find_unmet("app") == ("db", "healthy")
    assert found.describe_unmet("db", "healthy") == (
        "waits until db is healthy: 2 reconciles in a row have failed, the last with: cannot do b"
    )
    found.record_reconcile("db", A, BoxReconcileResult.SUCCESS, at=NOW)
    assert found.resources["db"].state == "healthy"
    assert found.resources["db"].last_error == "cannot do b"
    assert found.find_unmet("app") is None


@pytest.mark.parametrize("result", [BoxReconcileResult.SUCCESS, BoxReconcileResult.DENIED])
def test_what_is_no_failure_of_the_box_ends_the_row(result: BoxReconcileResult) -> None:
    found = health(threshold=2)
    found.start({})
    for each in (BoxReconcileResult.ERROR, result, BoxReconcileResult.ERROR):
        found.record_reconcile("db", A, each, error="broken", at=NOW)

    assert not found.resources["db"].is_degraded


def test_who_waited_is_told_once_when_it_need_not_any_more() -> None:
    found = health()
    found.start({"db": [A]})
    found.record_waiting("app", B)
    assert found.take_unblocked() == {}
    found.record_reconcile("db", A, BoxReconcileResult.SUCCESS, at=NOW)

    assert found.take_unblocked() == {"app": {B}}
    assert found.take_unblocked() == {}


def test_errors_are_kept_in_short() -> None:
    found = health()
    found.record_reconcile("db", A, BoxReconcileResult.ERROR, error="x" * 10_000, at=NOW)

    assert len(found.resources["db"].last_error) == 500


def test_a_changed_file_changes_thresholds_and_who_waits_and_keeps_what_happened() -> None:
    found = health(threshold=1)
    found.start({})
    found.record_reconcile("db", A, BoxReconcileResult.ERROR, error="broken", at=NOW)
    found.configure({"db": {}, "app": {}}, {"db": 3, "app": 3})

    assert found.find_unmet("app") is None
    assert (found.resources["db"].failures, found.resources["db"].is_degraded) == (1, False)

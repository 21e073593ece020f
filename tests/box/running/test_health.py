"""Who is started, healthy, degraded, and who waits for whom."""

from datetime import UTC, datetime

import pytest

from konverge.box.running.health import BoxHealth, PassResult, Wanted
from konverge.kube import ObjectKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)
A, B = ObjectKey("default", "a"), ObjectKey("default", "b")


def health(wanted: Wanted = "healthy", threshold: int = 2) -> BoxHealth:
    return BoxHealth({"app": {"db": wanted}, "db": {}}, {"app": threshold, "db": threshold})


def test_a_custom_resource_has_started_when_each_object_of_the_beginning_had_a_pass_however_it_ended() -> None:
    found = health("started", threshold=5)
    found.begin({"db": [A, B], "app": []})
    assert found.unmet("app") == ("db", "started")

    found.passed("db", A, PassResult.SUCCESS, at=NOW)
    assert found.unmet("app") == ("db", "started")
    found.passed("db", B, PassResult.ERROR, error="broken", at=NOW)

    assert found.unmet("app") is None


def test_one_that_has_no_objects_has_started() -> None:
    found = health()
    assert found.unmet("app") == ("db", "healthy")
    found.begin({})

    assert found.unmet("app") is None


def test_an_object_that_goes_is_not_waited_for() -> None:
    found = health()
    found.begin({"db": [A, B]})
    found.passed("db", A, PassResult.SUCCESS, at=NOW)
    found.sift("db", [A, B])
    assert found.unmet("app") == ("db", "healthy")

    found.sift("db", [A])
    assert found.unmet("app") is None


def test_objects_that_only_waited_have_not_had_their_pass() -> None:
    found = health()
    found.begin({"db": [A]})
    found.waits("db", A)

    assert found.unmet("app") == ("db", "healthy")


def test_failures_in_a_row_degrade_and_one_success_ends_it() -> None:
    found = health(threshold=2)
    found.begin({})
    for key in (A, B):
        found.passed("db", key, PassResult.ERROR, error=f"cannot do {key.name}", at=NOW)

    assert found.of["db"].state == "degraded"
    assert found.unmet("app") == ("db", "healthy")
    assert found.told("db", "healthy") == (
        "waits until db is healthy: 2 passes in a row have failed, the last with: cannot do b"
    )
    found.passed("db", A, PassResult.SUCCESS, at=NOW)
    assert found.of["db"].state == "healthy"
    assert found.of["db"].last_error == "cannot do b"
    assert found.unmet("app") is None


@pytest.mark.parametrize("result", [PassResult.SUCCESS, PassResult.DENIED])
def test_what_is_no_failure_of_the_box_ends_the_row(result: PassResult) -> None:
    found = health(threshold=2)
    found.begin({})
    for each in (PassResult.ERROR, result, PassResult.ERROR):
        found.passed("db", A, each, error="broken", at=NOW)

    assert not found.of["db"].is_degraded


def test_who_waited_is_told_once_when_it_need_not_any_more() -> None:
    found = health()
    found.begin({"db": [A]})
    found.waits("app", B)
    assert found.freed() == {}
    found.passed("db", A, PassResult.SUCCESS, at=NOW)

    assert found.freed() == {"app": {B}}
    assert found.freed() == {}


def test_errors_are_kept_in_short() -> None:
    found = health()
    found.passed("db", A, PassResult.ERROR, error="x" * 10_000, at=NOW)

    assert len(found.of["db"].last_error) == 500


def test_a_changed_file_changes_thresholds_and_who_waits_and_keeps_what_happened() -> None:
    found = health(threshold=1)
    found.begin({})
    found.passed("db", A, PassResult.ERROR, error="broken", at=NOW)
    found.change({"db": {}, "app": {}}, {"db": 3, "app": 3})

    assert found.unmet("app") is None
    assert (found.of["db"].failures, found.of["db"].is_degraded) == (1, False)

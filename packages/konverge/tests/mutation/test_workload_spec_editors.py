"""The editors of what workloads and tasks have beside their pods: what was there, what is done, what is there then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import CronJobSpecEditor, DaemonSetSpecEditor, JobSpecEditor, ReplicaSetSpecEditor

ROLLING: Object = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def case(before: Object, edit: Callable[[Any], None], after: Object) -> Any:
    return pytest.param(before, edit, after, id=next(iter(after)))


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case(
            {"updateStrategy": {"type": "OnDelete"}},
            lambda e: e.set_update_strategy(ROLLING),
            {"updateStrategy": ROLLING},
        ),
        case({}, lambda e: e.set_min_ready_seconds(5), {"minReadySeconds": 5}),
        case({"revisionHistoryLimit": 10}, lambda e: e.set_revision_history_limit(0), {"revisionHistoryLimit": 0}),
    ],
)
def test_daemon_set_spec(before: Object, edit: Callable[[DaemonSetSpecEditor], None], after: Object) -> None:
    edit(DaemonSetSpecEditor(before))
    assert before == after


def test_a_strategy_is_copied_on_its_way_in() -> None:
    editor, strategy = DaemonSetSpecEditor({}), {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    editor.set_update_strategy(strategy)
    editor.raw()["updateStrategy"]["rollingUpdate"]["maxSurge"] = 2
    assert strategy["rollingUpdate"] == {"maxSurge": 1}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"replicas": 1}, lambda e: e.set_replicas(3), {"replicas": 3}),
        case({}, lambda e: e.set_min_ready_seconds(5), {"minReadySeconds": 5}),
    ],
)
def test_replica_set_spec(before: Object, edit: Callable[[ReplicaSetSpecEditor], None], after: Object) -> None:
    edit(ReplicaSetSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"completions": 1}, lambda e: e.set_completions(3), {"completions": 3}),
        case({}, lambda e: e.set_parallelism(2), {"parallelism": 2}),
        case({"backoffLimit": 6}, lambda e: e.set_backoff_limit(0), {"backoffLimit": 0}),
        case({}, lambda e: e.set_active_deadline_seconds(60), {"activeDeadlineSeconds": 60}),
        case({}, lambda e: e.set_ttl_seconds_after_finished(0), {"ttlSecondsAfterFinished": 0}),
        case({}, lambda e: e.set_completion_mode("Indexed"), {"completionMode": "Indexed"}),
    ],
)
def test_job_spec(before: Object, edit: Callable[[JobSpecEditor], None], after: Object) -> None:
    edit(JobSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"schedule": "@daily"}, lambda e: e.set_schedule("0 3 * * 1-5"), {"schedule": "0 3 * * 1-5"}),
        case({}, lambda e: e.set_concurrency_policy("Forbid"), {"concurrencyPolicy": "Forbid"}),
        case({}, lambda e: e.set_starting_deadline_seconds(60), {"startingDeadlineSeconds": 60}),
        case({}, lambda e: e.set_successful_jobs_history_limit(0), {"successfulJobsHistoryLimit": 0}),
        case({}, lambda e: e.set_failed_jobs_history_limit(2), {"failedJobsHistoryLimit": 2}),
        case({}, lambda e: e.set_time_zone("Europe/Berlin"), {"timeZone": "Europe/Berlin"}),
    ],
)
def test_cron_job_spec(before: Object, edit: Callable[[CronJobSpecEditor], None], after: Object) -> None:
    edit(CronJobSpecEditor(before))
    assert before == after

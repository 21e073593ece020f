"""The editors of what workloads and tasks have beside their pods: what was there, what is done, what is there then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from konverge.kube import Object
from konverge.mutation import CronJobSpecEditor, DaemonSetSpecEditor, JobSpecEditor, ReplicaSetSpecEditor
from konverge.types import apps_v1

ROLLING: Object = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}


def case(before: Object, edit: Callable[[Any], None], after: Object) -> Any:
    return pytest.param(before, edit, after, id=next(iter(after)))


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case(
            {"updateStrategy": {"type": "OnDelete"}},
            lambda e: e.set(updateStrategy=ROLLING),
            {"updateStrategy": ROLLING},
        ),
    ],
)
def test_daemon_set_spec(before: Object, edit: Callable[[DaemonSetSpecEditor], None], after: Object) -> None:
    edit(DaemonSetSpecEditor(before))
    assert before == after


def test_a_strategy_is_copied_on_its_way_in() -> None:
    strategy: apps_v1.DaemonSetUpdateStrategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}
    editor = DaemonSetSpecEditor({})
    editor.set(updateStrategy=strategy)
    editor.raw()["updateStrategy"]["rollingUpdate"]["maxSurge"] = 2
    assert strategy["rollingUpdate"] == {"maxSurge": 1}


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"replicas": 1}, lambda e: e.set(replicas=3), {"replicas": 3}),
    ],
)
def test_replica_set_spec(before: Object, edit: Callable[[ReplicaSetSpecEditor], None], after: Object) -> None:
    edit(ReplicaSetSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"completions": 1}, lambda e: e.set(completions=3), {"completions": 3}),
    ],
)
def test_job_spec(before: Object, edit: Callable[[JobSpecEditor], None], after: Object) -> None:
    edit(JobSpecEditor(before))
    assert before == after


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        case({"schedule": "@daily"}, lambda e: e.set(schedule="0 3 * * 1-5"), {"schedule": "0 3 * * 1-5"}),
    ],
)
def test_cron_job_spec(before: Object, edit: Callable[[CronJobSpecEditor], None], after: Object) -> None:
    edit(CronJobSpecEditor(before))
    assert before == after
